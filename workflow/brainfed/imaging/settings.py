"""What the features are: connectivity of region series or measures of structure, and which values are used."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting

CovariateName = Literal["age", "sex"]


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
        "none: all features; rfe: recursive feature elimination with a ridge classifier on the training labels of "
        "each fold. Every institution ranks by itself, the mean rank decides; central methods use the same features.",
    )
    selected: int = setting(2000, "Features that `selection: rfe` keeps.", minimum=1)
    harmonise: Literal["none", "combat"] = setting(
        "none",
        "combat: ComBat removes what differs between acquisition sites in mean and variance. Every institution fits it "
        "on its own training subjects, over its own sites; central methods use the same features. A site of which "
        "the institution has fewer than 5 training subjects (10 without harmonise_bayes) is left as it is, and the log "
        "says so; so is an institution of one such site.",
    )
    harmonise_covariates: tuple[CovariateName, ...] = setting(
        ("age", "sex"),
        "Effects that `harmonise: combat` keeps; a missing value counts as the mean of the institution's training "
        "subjects. The diagnosis is none of them: it would have to be known of the subjects to be tested.",
    )
    harmonise_bayes: bool = setting(
        True, "Shrink a site's shift and scale in one feature towards those in its others (empirical Bayes)."
    )
    kind: Literal["connectivity", "morphometry"] = setting(
        "connectivity",
        "connectivity: of region series; morphometry: the measures of a cohort with `source: freesurfer`.",
    )

    @property
    def fitted(self) -> bool:
        """Whether something is fitted on training subjects, so that every fold has features of its own."""
        tangent = self.kind == "connectivity" and self.connectivity == "tangent"
        return tangent or self.harmonise != "none" or self.reads_labels

    @property
    def correlations(self) -> bool:
        """Whether all values lie between -1 and 1: correlations that nothing transforms or harmonises."""
        plain = self.connectivity in ("pearson", "partial") and not self.fisher_z
        return self.kind == "connectivity" and plain and self.harmonise == "none"

    @property
    def reads_labels(self) -> bool:
        """Whether true diagnoses of training subjects are used."""
        return self.selection == "rfe"

    def __post_init__(self) -> None:
        """Refuse to transform what is no correlation."""
        if self.kind == "morphometry" and (self.connectivity != "pearson" or self.fisher_z):
            raise ValueError(
                "kind: expected connectivity beside settings of it, found morphometry with "
                f"{'fisher_z: true' if self.fisher_z else f'connectivity: {self.connectivity}'}; leave that out"
            )
        if self.connectivity == "tangent" and self.fisher_z:
            raise ValueError(
                "fisher_z: expected false with connectivity tangent, whose values are no correlations, found true; "
                "leave it out or choose pearson or partial"
            )
