"""What is computed from region series: the kind of connectivity, and which of its values are used."""

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
    selection: Literal["none", "rfe"] = setting(
        "none",
        "none: all connections; rfe: recursive feature elimination with a ridge classifier on the training labels of "
        "each fold. Every institution ranks by itself, the mean rank decides; central methods use the same features.",
    )
    selected: int = setting(2000, "Connections that `selection: rfe` keeps.", minimum=1)

    @property
    def fitted(self) -> bool:
        """Whether something is fitted on training subjects, so that every fold has features of its own."""
        return self.connectivity == "tangent" or self.reads_labels

    @property
    def reads_labels(self) -> bool:
        """Whether true diagnoses of training subjects are used."""
        return self.selection == "rfe"

    def __post_init__(self) -> None:
        """Refuse to transform what is no correlation."""
        if self.connectivity == "tangent" and self.fisher_z:
            raise ValueError(
                "fisher_z: expected false with connectivity tangent, whose values are no correlations, found true; "
                "leave it out or choose pearson or partial"
            )
