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
    """One row of a table: a method, its settings, and the stages that it rests on.

    Attributes:
        name: as in the config.
        method: what it varies.
        settings: of the method, resolved.
        stages: kind -> the stage, those that its job reads and those that these are made of.
    """

    name: str
    method: Method
    settings: dict[str, Any]
    stages: Mapping[str, Stage]

    def stage(self, kind: str) -> Stage | None:
        """The stage of that kind, None where it rests on none."""
        return self.stages.get(kind)

    def stage_settings(self) -> dict[str, dict[str, Any]]:
        """Key of every kind -> the settings of its stage, none where there is none."""
        return {kind.key: self.stages[kind.name].values if kind.name in self.stages else {} for kind in registry.KINDS}


@dataclass(frozen=True)
class Experiment:
    """One table: variants on cohorts under a regime.

    Attributes:
        name: of its files.
        group: as the config calls it; several experiments where its split is swept.
        settings: as the config gives them.
        cohorts: by name.
        regime: who is tested when.
        split: institutions, folds and repeats.
        variants: in the order of the table.
        default: whether it is part of a run that names nothing.
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
        """How often it is repeated."""
        return self.split.repeats
