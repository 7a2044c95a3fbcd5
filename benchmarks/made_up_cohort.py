"""A cohort of ABIDE's size made of random numbers, for measurements that no result depends on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs import Graph, GraphSettings, build_graph
from brainfed.inpainting import InpaintingInputs
from brainfed.runtime import Streams
from brainfed.samples import MethodInputs, Phenotypes

ABIDE_SUBJECTS, CC200_FEATURES, INSTITUTIONS, FOLDS = 1035, 19_900, 5, 5
SOURCES = 30


@dataclass(frozen=True)
class MadeUpCohort:
    """Correlated features in (-1, 1), ages and sexes at random, institutions in turn.

    Attributes:
        features: d.
        subjects: n.
        repeat: number of the split; all repeats share features, ages, sexes and diagnoses.
        stored: what the features were rounded to.
    """

    features: int = CC200_FEATURES
    subjects: int = ABIDE_SUBJECTS
    repeat: int = 0
    stored: str = "float32"

    @cached_property
    def rows(self) -> NDArray[np.float32]:
        """(n, d), float32 again."""
        random = np.random.default_rng(0)
        sources = random.standard_normal((self.subjects, SOURCES), dtype=np.float32)
        mixed = sources @ random.standard_normal((SOURCES, self.features), dtype=np.float32)
        return np.tanh(mixed / 15).astype(self.stored).astype(np.float32)

    @cached_property
    def institution(self) -> NDArray[np.int64]:
        """(n,) codes."""
        return np.random.default_rng([1, self.repeat]).permutation(self.subjects) % INSTITUTIONS

    @cached_property
    def phenotypes(self) -> Phenotypes:
        """Site, sex and age; nobody moves."""
        random = np.random.default_rng(2)
        sex, age = random.integers(0, 2, self.subjects), random.uniform(7, 40, self.subjects)
        return Phenotypes(random.integers(0, 20, self.subjects), sex, age, np.zeros(self.subjects))

    @cached_property
    def graph(self) -> Graph:
        """The population graph of the default settings, inside institutions."""
        known = self.phenotypes
        graph = build_graph(
            self.rows,
            self.institution,
            site=known.site,
            sex=known.sex,
            age=known.age,
            settings=GraphSettings(),
            streams=self.streams,
        )
        return Graph(graph.row, graph.column, graph.weight, self.subjects)

    @property
    def streams(self) -> Streams:
        """Of the repeat."""
        return Streams(0, self.repeat)

    def method_inputs(self) -> MethodInputs:
        """What a classifier is given."""
        fold = np.random.default_rng([3, self.repeat]).permutation(self.subjects) % FOLDS
        truth = np.random.default_rng(4).integers(0, 2, self.subjects)
        return MethodInputs(
            subjects=tuple(f"s{number:05d}" for number in range(self.subjects)),
            institutions=tuple(f"institution-{number}" for number in range(INSTITUTIONS)),
            institution=self.institution,
            fold=fold,
            labels=np.where(np.arange(FOLDS)[:, None] == fold, -1, truth),
            features=(self.rows,),
            graphs=(self.graph,),
            phenotypes=self.phenotypes,
            streams=self.streams,
        )

    def inpainting_inputs(self) -> InpaintingInputs:
        """What a generator of missing neighbours is given."""
        inputs, known = self.method_inputs(), self.phenotypes
        return InpaintingInputs(
            subjects=inputs.subjects,
            institutions=inputs.institutions,
            institution=self.institution,
            features=self.rows,
            graph=self.graph,
            graph_settings=GraphSettings(),
            site=known.site,
            sex=known.sex,
            age=known.age,
            fitted=np.ones(self.subjects, dtype=bool),
            part="all",
            streams=self.streams,
        )
