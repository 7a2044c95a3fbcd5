"""What a plan is made of: regimes, the stages that variants share, variants and experiments.

A shared stage is called `slug-digest` after its own resolved settings and those of the stages above
it, so two variants that share it share its files, and switching a setting back finds the old result.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.project import ExperimentSettings
from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.inpainting.settings import FusingSettings
from brainfed.methods.inpainter import Inpainter
from brainfed.methods.method import Method


def stage_name(slug: str, content: Any) -> str:
    """`slug-digest` over canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Regime:
    """Who is tested when, and what may be seen: one row of the evaluation's two axes.

    `unseen` says that whole institutions are tested which nothing was trained on (leave one site out).
    """

    name: str
    split: str
    protocol: str
    labels: str
    unseen: bool

    @property
    def generates(self) -> bool:
        """Whether a generator may be trained: not where an unseen institution's features would train it."""
        return not self.unseen or self.protocol == "inductive"


@dataclass(frozen=True)
class FeatureStage:
    """Imaging features; `split` is empty unless they are fitted on training subjects.

    `whole` are those that a fold harmonises or selects from, where every fold has the same.
    """

    name: str
    settings: FeatureSettings
    split: str
    whole: "FeatureStage | None" = None

    @property
    def fitted(self) -> bool:
        """Whether every fold has features of its own."""
        return bool(self.split)


@dataclass(frozen=True)
class GraphStage:
    """A population graph."""

    name: str
    settings: GraphSettings
    features: FeatureStage
    split: str
    protocol: str

    @property
    def by_fold(self) -> bool:
        """Whether every fold has a graph of its own."""
        return self.features.fitted or self.settings.fitted or self.protocol == "inductive"


@dataclass(frozen=True)
class InpaintingStage:
    """A trained generator of missing neighbours; `settings` are those of its inpainter."""

    name: str
    inpainter: Inpainter
    settings: dict[str, Any]
    graph: GraphStage

    @property
    def by_fold(self) -> bool:
        """Whether every fold has a generator of its own."""
        return self.graph.by_fold

    @property
    def max_generated(self) -> int | None:
        """Generated nodes of one subject at most: FedSage+'s number of targets; None where nothing limits them."""
        named = self.inpainter.max_generated
        return int(self.settings[named]) if named else None


@dataclass(frozen=True)
class FusingStage:
    """Graphs of real and generated nodes."""

    name: str
    settings: FusingSettings
    inpainting: InpaintingStage

    @property
    def by_fold(self) -> bool:
        """Whether every fold has a fused graph of its own."""
        return self.inpainting.by_fold

    @property
    def split(self) -> str:
        """Name of the split behind the graph."""
        return self.inpainting.graph.split


@dataclass(frozen=True)
class Variant:
    """One row of a table: a method, its settings, and the stages that it reads.

    A method with an inpainter reads the features and the fused graph; `graph` is what the latter is made of.
    """

    name: str
    method: Method
    settings: dict[str, Any]
    features: FeatureStage | None
    graph: GraphStage | None
    fused: FusingStage | None

    def stages(self) -> dict[str, dict[str, Any]]:
        """Name of every stage -> its settings, none where it reads none."""
        return {
            "features": asdict(self.features.settings) if self.features else {},
            "graph": asdict(self.graph.settings) if self.graph else {},
            "inpainting": self.fused.inpainting.settings if self.fused else {},
            "fusing": asdict(self.fused.settings) if self.fused else {},
        }


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
