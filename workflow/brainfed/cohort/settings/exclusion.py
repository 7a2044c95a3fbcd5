"""Who is left out for the quality of a scan: rules are asked in the order of the fields, the first that hits counts.

None of them reads connectivity: who looks unlike the others is told, not left out, because what is learnt from
must not choose who is tested.
"""

from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class ExclusionSettings:
    """Limits of quality; none: nobody is left out for it. A subject whose measure is not known stays."""

    min_volumes: int | None = setting(None, "Fewest volumes left after scrubbing.", minimum=2)
    min_kept_seconds: float | None = setting(
        None, "Shortest scan left after scrubbing, in s; needs the repetition time.", minimum=0
    )
    min_kept_share: float | None = setting(
        None, "Smallest fraction of the acquired volumes left after scrubbing.", minimum=0, maximum=1
    )
    mean_fd: float | None = setting(None, "Largest mean framewise displacement in mm.", minimum=0)
    min_coverage: float | None = setting(
        None, "Smallest mean over regions of the fraction of a region that was seen.", minimum=0, maximum=1
    )
    max_barely_seen_regions: int | None = setting(
        None, "Most regions that were seen less than the cohort's `min_coverage`, unseen ones included.", minimum=0
    )
    max_constant_regions: int | None = setting(None, "Most regions without signal, constant or unseen.", minimum=0)
    min_tsnr: float | None = setting(
        None,
        "Smallest median over regions of the temporal signal-to-noise ratio of their means, in the volumes that are "
        "kept and about a linear trend. It depends on the atlas: larger regions have a higher one.",
        minimum=0,
    )
