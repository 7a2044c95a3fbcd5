"""Settings of features: kind of connectivity or structural measures, harmonisation and selection."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting

CovariateName = Literal["age", "sex"]


@dataclass(frozen=True)
class FeatureSettings:
    """Settings of imaging features."""

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
        "combat: ComBat removes differences of acquisition sites in mean and variance. Every institution fits it "
        "on its own training subjects, over its own sites; central methods use the same features. A site with fewer "
        "than 5 training subjects in the institution (10 without harmonise_bayes) is unchanged, with a line in the "
        "log; so is an institution of one such site.",
    )
    harmonise_covariates: tuple[CovariateName, ...] = setting(
        ("age", "sex"),
        "Effects that `harmonise: combat` keeps; the mean of the institution's training subjects replaces a missing "
        "value. The diagnosis cannot be kept, as it is unknown for test subjects.",
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
        """Whether training subjects fit the features, so that every fold has its own."""
        tangent = self.kind == "connectivity" and self.connectivity == "tangent"
        return tangent or self.harmonise != "none" or self.reads_labels

    @property
    def correlations(self) -> bool:
        """Whether all values are between -1 and 1: correlations without transform and harmonisation."""
        plain = self.connectivity in ("pearson", "partial") and not self.fisher_z
        return self.kind == "connectivity" and plain and self.harmonise == "none"

    @property
    def reads_labels(self) -> bool:
        """Whether the features depend on labels of training subjects."""
        return self.selection == "rfe"

    def __post_init__(self) -> None:
        """Refuse settings of connectivity with morphometry, and the Fisher transform of tangent features."""
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
