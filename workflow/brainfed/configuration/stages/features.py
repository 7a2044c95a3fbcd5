"""The stages of features, region series and public subjects."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from brainfed.cohort.settings import PublicSettings
from brainfed.configuration import defaults_of
from brainfed.configuration.stages._stage import NOTHING, Regime, Stage, StageKind
from brainfed.imaging import FeatureSettings, OneViewSettings, SeriesSettings, ViewSettings
from brainfed.methods import Method
from brainfed.runtime import UserError

One = TypeVar("One", bound=OneViewSettings)


class Features(StageKind):
    """`features/{features}/all.safetensors`, or `repeat-{r}/fold-{f}.safetensors` instead."""

    name = key = folder = role = "features"
    settings = FeatureSettings
    reads_split = False
    further = ("covariances",)
    shown = "feature_files"
    reads = "features"
    manual = "keys of [features](#features) | the project's | Settings that differ; for methods that read features."

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """The features that a method declares; a method of connectomes reads every connection."""
        whole = {"kind": "connectivity", "selection": "none"} if "connectomes" in method.needs else {}
        return {**whole, **method.options.get(self.name, NOTHING)}

    def slug(self, stage: Stage) -> str:
        """The measure of connectivity, another kind of features, or several views."""
        settings: FeatureSettings = stage.settings
        kind = settings.connectivity if settings.kind == "connectivity" else settings.kind
        return "views" if settings.views else kind

    def settled(
        self, settings: FeatureSettings, method: Method, above: Mapping[str, Any], where: str
    ) -> FeatureSettings:
        """Without the settings of an unused selection or harmonisation; of several views nothing else.

        Raises:
            UserError: there are several views, and the method reads one.
        """
        if settings.views:
            if not method.capabilities.views:
                raise UserError(
                    f"{where}.features.views: method {method.name!r} reads one kind of features, found "
                    f"{len(settings.views)} views; name its settings without `views`, or choose another method."
                )
            views = {name: _effective(view) for name, view in settings.views.items()}
            one_mean = {
                name: replace(view, unseen_site=ViewSettings.unseen_site)
                for name, view in views.items()
                if view.centre != "site"
            }
            return FeatureSettings(views=views | one_mean)
        return _effective(settings)

    def under(self, settings: FeatureSettings, method: Method, regime: Regime, where: str) -> FeatureSettings:
        """Hide tested subjects' scans.

        Raises:
            UserError: true diagnoses select features of a null control, or others enter those of a private method.
        """
        if method.capabilities.own_features and (key := _fit_to_others(settings)):
            raise UserError(
                f"{where}.features.{key}: expected {WITHOUT_FIT[key]}, as method {method.name!r} reads each "
                f"subject alone, found {getattr(settings, key)}; set it in the features of this variant."
            )
        if settings.views:
            hidden = {name: _hidden(view, regime) for name, view in settings.views.items()}
            for name, view in hidden.items():
                self.under(view.features, method, regime, f"{where}.features.views.{name}")
            return replace(settings, views=hidden)
        settings = replace(settings, reference=_reference(settings, regime))
        if regime.labels == "permuted" and settings.reads_labels:
            raise UserError(true_labels(f"{where}.features.selection"))
        return settings

    def shared(self, values: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
        """All settings; but not the reference of tangent features alone, where it is the institution's."""
        if pooled:
            return dict(values)
        alone = {key: value for key, value in values.items() if key != "reference"}
        return alone | (
            {"views": {name: self.shared(view, pooled=False) for name, view in values["views"].items()}}
            if "views" in values
            else {}
        )

    def shortened(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Of several views, the settings of each that differ from the defaults."""
        if not values.get("views"):
            return dict(values)
        return {"views": {name: _changed(view, ViewSettings) for name, view in values["views"].items()}}

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """Sites and covariates for harmonisation, diagnoses for selection."""
        settings: FeatureSettings = stage.settings
        if settings.views:
            return ()
        scanned = ("site", *settings.harmonise_covariates) if settings.harmonise != "none" else ()
        return (*scanned, *(("diagnosis",) if settings.reads_labels else ()))

    def sources(self, settings: FeatureSettings) -> Sequence[FeatureSettings]:
        """The views; or the features that a fold harmonises or selects from, if all folds share them."""
        if settings.views:
            return [view.features for view in settings.views.values()]
        below = replace(settings, **UNSELECTED, **UNHARMONISED)
        return [below] if settings.fitted and not below.fitted else []

    def content(self, stage: Stage) -> list[Any]:
        """The settings, and the split if the features are fitted; of views each, in order, and its features."""
        settings: FeatureSettings = stage.settings
        if not settings.views:
            return [stage.chosen, stage.split]
        views = zip(settings.views.items(), stage.parents, strict=True)
        return [[[name, parent.name, _scaling(view)] for (name, view), parent in views], stage.split]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """(n, d) features."""
        return subjects * width(stage, regions)

    def numbers_of_all_parts(self, stage: Stage, subjects: int, regions: int) -> float:
        """Of tangent features, two triangles of (R, R) a subject: its covariance and the logarithm."""
        if stage.settings.views:
            return sum(self.numbers_of_all_parts(view, subjects, regions) for view in stage.parents)
        return subjects * regions * (regions + 1) if stage.settings.tangent else 0

    def folders(self, stage: Stage) -> list[str]:
        """Its own folder, and that of the covariances of tangent features."""
        settings: FeatureSettings = stage.settings
        own = f"{self.folder}/{stage.name}"
        return [own, covariances_folder(settings.shrinkage)] if settings.tangent else [own]


FEATURES = Features()
UNSELECTED: dict[str, Any] = {name: getattr(FeatureSettings, name) for name in ("selection", "selected")}
UNHARMONISED: dict[str, Any] = {
    name: getattr(FeatureSettings, name) for name in ("harmonise", "harmonise_covariates", "harmonise_bayes")
}
"""Defaults, of features without selection and without harmonisation."""
WITHOUT_FIT = {"reference": "identity", "harmonise": "none", "selection": "none"}
"""Values of settings with which no other subject enters a subject's features."""


def covariances_folder(shrinkage: float | str) -> str:
    """Folder of the covariances with this shrinkage, which tangent features of all references share."""
    return f"covariances/shrinkage-{shrinkage}"


def width(features: Stage, regions: int) -> int:
    """Number of features of a subject with this number of regions; FreeSurfer's few measures count as 0."""
    settings: FeatureSettings = features.settings
    if settings.views:
        return sum(width(view, regions) for view in features.parents)
    if settings.kind == "morphometry":
        return 0
    connections = regions * (regions + 1 if settings.tangent else regions - 1) // 2
    return min(settings.selected, connections) if settings.reads_labels else connections


def _fit_to_others(settings: OneViewSettings) -> str:
    """The setting under which other subjects enter the features of a subject; empty without one."""
    if settings.tangent and settings.reference != WITHOUT_FIT["reference"]:
        return "reference"
    return next((key for key in ("harmonise", "selection") if getattr(settings, key) != WITHOUT_FIT[key]), "")


def _changed(values: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The values that differ from the defaults of their settings."""
    usual = defaults_of(kind)
    return {key: value for key, value in values.items() if value != usual[key]}


def _scaling(view: ViewSettings) -> dict[str, Any]:
    """The settings of a view beside those of its features that differ from the defaults."""
    of_features = defaults_of(OneViewSettings)
    return {key: value for key, value in _changed(asdict(view), ViewSettings).items() if key not in of_features}


def _hidden(view: ViewSettings, regime: Regime) -> ViewSettings:
    """A view that no test subject centres under the inductive protocol."""
    moved = view.centre == "site" and regime.protocol == "inductive"
    return replace(view, reference=_reference(view, regime), unseen_site="all" if moved else view.unseen_site)


def _reference(settings: OneViewSettings, regime: Regime) -> Any:
    """The reference of tangent features; hidden scans enter none, and an unseen site can be scored by other models."""
    if settings.reference == "identity":
        return settings.reference
    hidden = regime.unseen or regime.partial or regime.protocol == "inductive"
    moved = (settings.reference == "all" and hidden) or (settings.tangent and regime.unseen)
    return "training" if moved else settings.reference


def true_labels(key: str) -> str:
    """Error message for a selection by diagnoses in a null control."""
    return (
        f"{key}: expected no rfe under `labels: permuted`, found rfe, which is fitted on the true "
        "diagnoses; leave the variant out of the experiment with permuted labels."
    )


def _effective(settings: One) -> One:
    """The settings, with an unused selection and harmonisation at their defaults."""
    unused = {} if settings.reads_labels else UNSELECTED
    return replace(settings, **unused, **({} if settings.harmonise != "none" else UNHARMONISED))


class Series(StageKind):
    """`series/{series}/all.safetensors`, which all repeats, folds and protocols share."""

    name = key = folder = role = "series"
    settings = SeriesSettings
    reads_split = False
    timed = False
    holds_series = True
    reads = "region series"
    manual = "keys of [series](#series) | the project's | Settings that differ; for methods of region series."

    def slug(self, stage: Stage) -> str:
        """How a series is scaled."""
        settings: SeriesSettings = stage.settings
        return settings.scale.replace("_", "-")

    def content(self, stage: Stage) -> list[Any]:
        """The settings."""
        return [stage.chosen]


SERIES = Series()


class Public(StageKind):
    """`public/{public}/repeat-{r}/all.parquet`, the public subjects of all folds, under either protocol."""

    name = key = folder = role = "public"
    settings = PublicSettings
    file = "{part}.parquet"
    reads_protocol = False
    timed = False
    reads = "{public} subjects"
    manual = "keys of [public](#public) | the project's | Settings that differ; for methods with public subjects."

    def slug(self, stage: Stage) -> str:
        """The share of public subjects."""
        settings: PublicSettings = stage.settings
        return f"{100 * settings.ratio:g}-percent"

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """The diagnosis: public subjects are labelled, and of all classes alike; the site as in the split above."""
        return ("site", "diagnosis")

    def content(self, stage: Stage) -> list[Any]:
        """The split, and the settings."""
        return [stage.split, stage.chosen]


PUBLIC = Public()
