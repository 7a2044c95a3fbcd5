"""Imaging features: the same for all repeats, or one a fold if they are fitted on training subjects."""

from dataclasses import replace
from typing import Any

from brainfed.configuration.stages.regime import Regime
from brainfed.configuration.stages.stage import Stage, StageKind
from brainfed.imaging.settings import FeatureSettings
from brainfed.methods.method import Method
from brainfed.runtime.errors import UserError


class Features(StageKind):
    """`features/{features}/all.safetensors`, or `repeat-{r}/fold-{f}.safetensors` instead."""

    name = key = folder = role = "features"
    shown = "feature_files"
    reads = "features"
    manual = "keys of [features](#features) | the project's | Settings that differ; for methods that read features."

    def settings_class(self, method: Method) -> type[Any]:
        """The same for all methods."""
        del method
        return FeatureSettings

    def slug(self, stage: Stage) -> str:
        """The measure of connectivity, or another kind of features."""
        settings: FeatureSettings = stage.settings
        return settings.connectivity if settings.kind == "connectivity" else settings.kind

    def settled(self, settings: FeatureSettings, *_: Any) -> FeatureSettings:
        """Without the settings of an unused selection or harmonisation."""
        kept = settings if settings.reads_labels else _unselected(settings)
        return kept if kept.harmonise != "none" else _unharmonised(kept)

    def under(self, settings: FeatureSettings, method: Method, regime: Regime, where: str) -> FeatureSettings:
        """Reject features that are selected by the true diagnoses in a null control."""
        del method
        if regime.labels == "permuted" and settings.reads_labels:
            raise UserError(true_labels(f"{where}.features.selection"))
        return settings

    def reads_split(self, settings: FeatureSettings) -> bool:
        """True if the features are fitted."""
        return settings.fitted

    def fitted(self, settings: FeatureSettings) -> bool:
        """True under tangent, ComBat and RFE."""
        return settings.fitted

    def whole(self, settings: FeatureSettings) -> FeatureSettings | None:
        """The features that a fold harmonises or selects from, if all folds share them."""
        below = _unharmonised(_unselected(settings))
        return below if settings.fitted and not below.fitted else None

    def content(self, stage: Stage) -> list[Any]:
        """The settings, and the split if the features are fitted."""
        return [stage.values, stage.split]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """(n, d) features."""
        return subjects * width(stage, regions)


FEATURES = Features()


def width(features: Stage, regions: int) -> int:
    """Number of features of a subject with this number of regions."""
    settings: FeatureSettings = features.settings
    connections = regions * (regions - 1) // 2
    return min(settings.selected, connections) if settings.reads_labels else connections


def true_labels(key: str) -> str:
    """Error message for a selection by diagnoses in a null control."""
    return (
        f"{key}: expected no rfe under `labels: permuted`, found rfe, which is fitted on the true "
        "diagnoses; leave the variant out of the experiment with permuted labels."
    )


def _unselected(settings: FeatureSettings) -> FeatureSettings:
    """The same without selection by labels."""
    return replace(settings, selection=FeatureSettings.selection, selected=FeatureSettings.selected)


def _unharmonised(settings: FeatureSettings) -> FeatureSettings:
    """The same without harmonisation."""
    return replace(
        settings,
        harmonise=FeatureSettings.harmonise,
        harmonise_covariates=FeatureSettings.harmonise_covariates,
        harmonise_bayes=FeatureSettings.harmonise_bayes,
    )
