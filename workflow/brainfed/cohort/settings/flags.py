"""What is told about a subject that stays."""

from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FlagSettings:
    """Limits beyond which a subject or a site is listed among the issues; it is kept."""

    mean_fd: float = setting(0.2, "Mean framewise displacement in mm above which a subject moved much.", minimum=0)
    kept_seconds: float = setting(
        240.0, "Length in s after scrubbing below which a scan is short (Parkes 2018: four minutes).", minimum=0
    )
    unlike: float = setting(
        3.5,
        "Robust z below minus this: a subject's connectivity is unlike the others' (Iglewicz and Hoaglin 1993).",
        minimum=0,
    )
    alike: float = setting(
        0.999,
        "Correlation of connectivity above which two subjects count as one person: same fold, same institution.",
        minimum=0.9,
        maximum=1,
    )
    site_effect: float = setting(
        0.8, "Cohen's d of a site against all others from which a significant difference is told.", minimum=0
    )
