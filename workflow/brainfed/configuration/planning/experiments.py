"""Variants and experiments: rows and tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.project import ExperimentSettings
from brainfed.configuration.stages import registry
from brainfed.configuration.stages.regime import Regime
from brainfed.configuration.stages.stage import Stage
from brainfed.methods.method import Method


@dataclass(frozen=True)
class Variant:
    """One row of a table: a method, its settings, and its stages.

    Attributes:
        name: name in the config.
        method: its method.
        settings: resolved settings of the method.
        stages: kind -> stage, for the stages that its job reads and their parents.
    """

    name: str
    method: Method
    settings: dict[str, Any]
    stages: Mapping[str, Stage]

    def stage(self, kind: str) -> Stage | None:
        """The stage of that kind; None if it has none."""
        return self.stages.get(kind)

    @property
    def harmonises(self) -> bool:
        """Whether ComBat harmonises its features, or a view of them."""
        features = self.stage("features")
        return features is not None and any(
            one.settings.harmonise != "none" for one in (features, *features.parents) if one.kind is features.kind
        )

    def stage_settings(self) -> dict[str, dict[str, Any]]:
        """Key of every kind -> the settings of its stage, empty without one."""
        return {kind.key: self.stages[kind.name].values if kind.name in self.stages else {} for kind in registry.KINDS}


@dataclass(frozen=True)
class Experiment:
    """One table: variants on cohorts under a regime.

    Attributes:
        name: name in paths.
        group: name in the config; a swept split gives several experiments one group.
        settings: settings in the config.
        cohorts: cohorts by name.
        regime: split, protocol and labels.
        split: institutions, folds and repeats.
        variants: in the order of the table.
        default: whether a run without targets includes it.
    """

    name: str
    group: str
    settings: ExperimentSettings
    cohorts: tuple[str, ...]
    regime: Regime
    split: SplitSettings
    variants: tuple[Variant, ...]
    default: bool

    @property
    def repeats(self) -> int:
        """Number of repeats."""
        return self.split.repeats
