"""Settings of features and of region series."""

from dataclasses import dataclass, fields
from typing import Literal

from brainfed.runtime import setting

# Settings of features: kind of connectivity or structural measures, harmonisation and selection.

CovariateName = Literal["age", "sex"]


@dataclass(frozen=True)
class OneViewSettings:
    """Settings of features of one kind."""

    connectivity: Literal["pearson", "partial", "tangent"] = setting(
        "pearson",
        "pearson: correlation; partial: partial correlation, Ledoit-Wolf; tangent: deviation of the subject's "
        "covariance from a `reference`.",
    )
    reference: Literal["institution", "training", "all", "identity"] = setting(
        "institution",
        "Of tangent features, the log-Euclidean mean covariance of: the institution's training subjects (of all others "
        "where it has none); the training subjects of all institutions, which send the sum of theirs; or all subjects, "
        "labels unseen. `training` replaces `all` under `protocol: inductive` and where subjects are left out "
        "(`split.share`, `split.held_back`), and both others under leave-one-site-out. identity: the identity matrix; "
        "a row is then the logarithm of the subject's own covariance, and depends on no other subject.",
    )
    shrinkage: float = setting(
        0.0,
        "Of tangent features: share of the identity in every covariance, beside the shrinkage of Ledoit and Wolf.",
        minimum=0,
        maximum=0.99,
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
        "connectivity: of region series; morphometry: FreeSurfer's measures (`freesurfer` of the cohort).",
    )

    @property
    def tangent(self) -> bool:
        """Whether they are tangent features."""
        return self.kind == "connectivity" and self.connectivity == "tangent"

    @property
    def fitted(self) -> bool:
        """Whether training subjects fit the features, so that every fold has its own."""
        fitted_reference = self.tangent and self.reference in ("institution", "training")
        return fitted_reference or self.harmonise != "none" or self.reads_labels

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
        """Refuse settings of connectivity with morphometry, and settings of correlations with tangent features."""
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
        if not self.tangent and (self.shrinkage or self.reference != OneViewSettings.reference):
            key = "shrinkage" if self.shrinkage else "reference"
            raise ValueError(
                f"{key}: expected connectivity: tangent beside it, found "
                f"{self.connectivity if self.kind == 'connectivity' else self.kind}; leave it out or choose tangent"
            )


@dataclass(frozen=True)
class ViewSettings(OneViewSettings):
    """Settings of one of several views of a subject."""

    weight: float = setting(
        1.0,
        "Weight of the view: its share of the mean squared norm of a subject, relative to the other views, once the "
        "view is centred and scaled to norm 1.",
        minimum=0,
    )
    centre: Literal["all", "site"] = setting(
        "all",
        "Mean that is subtracted: of all training subjects, or of those of the subject's site. Report both values of "
        "`split.stratify` with `site`.",
    )
    unseen_site: Literal["own", "all"] = setting(
        "own",
        "With `centre: site`, the mean that is subtracted at a site without training subjects: of its own tested "
        "subjects, which its institution computes at home, their diagnoses unread, or of all training subjects. `all` "
        "replaces `own` under `protocol: inductive`.",
    )
    standardise: bool = setting(False, "Divide every column by its standard deviation over all training subjects.")
    clip: float | None = setting(None, "Largest absolute value of a column after that; none: no limit.", minimum=0)

    def __post_init__(self) -> None:
        """Refuse a limit that leaves nothing."""
        super().__post_init__()
        if self.clip == 0:
            raise ValueError("clip: expected a limit above 0, found 0; write none for no limit")

    @property
    def features(self) -> "FeatureSettings":
        """Settings of the features that the view reads."""
        return FeatureSettings(**{field.name: getattr(self, field.name) for field in fields(OneViewSettings)})


@dataclass(frozen=True)
class FeatureSettings(OneViewSettings):
    """Settings of imaging features."""

    views: dict[str, ViewSettings] = setting(
        factory=dict,
        description="Several views of a subject by name, side by side: `{connectome: {connectivity: tangent}, "
        "thickness: {kind: morphometry, weight: 0.15}}`, for methods that weigh them. The keys above then have no "
        "effect. A subject may lack views, except the first.",
    )

    def __post_init__(self) -> None:
        """Refuse views without any weight."""
        super().__post_init__()
        if self.views and not any(view.weight for view in self.views.values()):
            raise ValueError(
                f"views: expected a weight above 0 in one view or more, found 0 in all {len(self.views)}; raise one"
            )

    @property
    def fitted(self) -> bool:
        """Whether training subjects fit the features, or one of the views."""
        if self.views:
            return any(view.fitted for view in self.views.values())
        return super().fitted

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the cohort's data that they read."""
        return frozenset(view.kind for view in self.views.values()) or frozenset([self.kind])


@dataclass(frozen=True)
class SeriesSettings:
    """Settings of the region series that a method reads, for methods whose samples are series."""

    scale: Literal["zscore", "zscore_runs"] = setting(
        "zscore",
        "How each region of a subject gets mean 0 and variance 1. zscore: over the whole series; zscore_runs: within "
        "each of its runs, which `source: bids` may have joined. A region without signal is 0.",
    )
