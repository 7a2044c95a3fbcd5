"""What is computed from region series: the kind of connectivity."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FeatureSettings:
    """Imaging features (spec fedni, section 1)."""

    connectivity: Literal["pearson", "partial", "tangent"] = setting(
        "pearson",
        "pearson: correlation; partial: partial correlation, Ledoit-Wolf; tangent: deviation from the "
        "institution's reference, fitted on its training subjects.",
    )
    fisher_z: bool = setting(False, "Transform correlations by artanh (pearson and partial).")
