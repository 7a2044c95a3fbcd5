"""Settings of region series as samples, for methods that read the signal itself."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class SeriesSettings:
    """Settings of the region series that a method reads, for methods whose samples are series."""

    scale: Literal["zscore", "zscore_runs"] = setting(
        "zscore",
        "How each region of a subject gets mean 0 and variance 1. zscore: over the whole series; zscore_runs: within "
        "each of its runs, which `source: bids` may have joined. A region without signal is 0.",
    )
