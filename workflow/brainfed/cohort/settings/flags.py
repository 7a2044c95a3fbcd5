"""Settings of the issues of included subjects."""

from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FlagSettings:
    """Limits of quality; subjects and sites beyond them are kept and listed among the issues."""

    mean_fd: float = setting(0.2, "Mean framewise displacement in mm above which motion is high.", minimum=0)
    kept_seconds: float = setting(
        240.0, "Length in s after scrubbing below which a scan is short (Parkes 2018: four minutes).", minimum=0
    )
    unlike: float = setting(
        3.5,
        "Connectivity with a robust z below minus this is unlike the others' (Iglewicz and Hoaglin 1993).",
        minimum=0,
    )
    alike: float = setting(
        0.999,
        "Correlation of connectivity above which two subjects count as one person: same fold, same institution.",
        minimum=0.9,
        maximum=1,
    )
    site_effect: float = setting(
        0.8, "Cohen's d of a site against all others from which a significant difference is listed.", minimum=0
    )
