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

    def __post_init__(self) -> None:
        """Refuse to transform what is no correlation."""
        if self.connectivity == "tangent" and self.fisher_z:
            raise ValueError(
                "fisher_z: expected false with connectivity tangent, whose values are no correlations, found true; "
                "leave it out or choose pearson or partial"
            )
