"""Settings of exclusion by the quality of scans; the first rule that applies, in the order of the fields, counts.

No rule reads connectivity: subjects with odd connectivity are listed, not excluded, because features must not choose
the tested subjects.
"""

from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class ExclusionSettings:
    """Limits of quality; none: no limit. Subjects with an unknown measure stay."""

    min_volumes: int | None = setting(None, "Fewest volumes after scrubbing.", minimum=2)
    min_kept_seconds: float | None = setting(
        None, "Shortest scan after scrubbing, in s; needs the repetition time.", minimum=0
    )
    min_kept_share: float | None = setting(
        None, "Smallest fraction of the acquired volumes after scrubbing.", minimum=0, maximum=1
    )
    mean_fd: float | None = setting(None, "Largest mean framewise displacement in mm.", minimum=0)
    min_coverage: float | None = setting(None, "Smallest mean coverage of regions.", minimum=0, maximum=1)
    max_barely_seen_regions: int | None = setting(
        None, "Most regions below the cohort's `min_coverage`, unseen ones included.", minimum=0
    )
    max_constant_regions: int | None = setting(None, "Most regions without signal, constant or unseen.", minimum=0)
    min_tsnr: float | None = setting(
        None,
        "Smallest temporal signal-to-noise ratio: median over region means, in the kept volumes, about a linear "
        "trend. It depends on the atlas: larger regions have a higher one.",
        minimum=0,
    )
