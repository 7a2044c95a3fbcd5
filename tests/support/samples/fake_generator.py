"""Small population graphs, and a generator with given numbers and nodes, for tests of fusing."""

from dataclasses import dataclass, field

import numpy as np

from brainfed.graphs import Graph, GraphSettings, build_graph
from brainfed.inpainting import FusingSettings, Generated, InpaintingInputs
from brainfed.runtime import Streams

NO_CAP = FusingSettings(cap=None)


@dataclass
class FakeGenerator:
    """Predicts given numbers and draws given nodes, one row a generated node."""

    number: list[float]
    features: np.ndarray
    sex: list[int] = field(default_factory=list)
    age: list[float] = field(default_factory=list)
    requests: list[list[int]] = field(default_factory=list)

    def counts(self):
        return np.array(self.number, dtype=float)

    def draw(self, parents):
        self.requests.append(parents.tolist())
        g = len(parents)
        sex = np.array(self.sex[:g] or [0] * g, dtype=np.int64)
        age = np.array(self.age[:g] or [np.nan] * g, dtype=float)
        return Generated(np.asarray(self.features[:g], dtype=np.float32), sex, age)


def inputs_of(features, institution, *, sex=None, age=None, site=None, fitted=None, seed=1, part="all", **options):
    """Subjects and the population graph that is built from them."""
    n = len(features)
    features = np.asarray(features, dtype=np.float32)
    institution = np.asarray(institution, dtype=np.int64)
    site = np.zeros(n, np.int64) if site is None else np.asarray(site)
    sex = np.zeros(n, np.int64) if sex is None else np.asarray(sex)
    age = np.full(n, np.nan) if age is None else np.asarray(age, dtype=float)
    settings = GraphSettings(**{"k": 2, "embedding_dimensions": 50, "scope": "local", **options})
    streams = Streams(seed)
    known = {"site": site, "sex": sex, "age": age, "settings": settings, "streams": streams}
    graph = build_graph(features, institution, **known, training=fitted)
    return InpaintingInputs(
        subjects=tuple(f"sub-{index:02d}" for index in range(n)),
        institutions=tuple(f"site-{index}" for index in range(int(institution.max()) + 1)),
        institution=institution,
        features=features,
        graph=Graph(graph.row, graph.column, graph.weight, n),
        graph_settings=settings,
        site=site,
        sex=sex,
        age=age,
        fitted=np.ones(n, dtype=bool) if fitted is None else fitted,
        part=part,
        streams=streams,
    )


def cohort(seed, n=30, d=6, institutions=3, inductive=False, **options):
    """Random subjects, some phenotypes missing, and a generator with three nodes a subject."""
    rng = np.random.default_rng(seed)
    inputs = inputs_of(
        rng.normal(size=(n, d)),
        np.arange(n) % institutions,
        sex=rng.integers(-1, 2, n),
        age=np.where(rng.random(n) < 0.1, np.nan, rng.uniform(8, 20, n)),
        site=rng.integers(-1, 3, n),
        fitted=rng.random(n) < 0.7 if inductive else None,
        seed=seed,
        **{"k": 3, **options},
    )
    limit = 3 * n
    features, sex = rng.normal(size=(limit, d)), rng.integers(-1, 2, limit).tolist()
    age = np.where(rng.random(limit) < 0.1, np.nan, rng.uniform(8, 20, limit)).tolist()
    number = np.where(inputs.fitted, rng.uniform(0, 3.4, n), 0.0).tolist()
    return inputs, FakeGenerator(number, features, sex, age)


def dense(fused, nodes):
    adjacency = np.zeros((nodes, nodes))
    adjacency[fused.row, fused.column] = fused.weight
    return adjacency


def line(*positions, number, features, sex=None, new_sex=(), k=2, **options):
    """One institution of subjects on a line; all of sex 0 by default."""
    inputs = inputs_of([[x] for x in positions], [0] * len(positions), sex=sex, k=k, phenotypes=("sex",), **options)
    return inputs, FakeGenerator(number, np.array(features, dtype=float)[:, None], list(new_sex))
