"""Small cohorts for the tests of methods: what a method is given, with a known effect and nothing else."""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.model_selection import StratifiedKFold

from brainfed.graphs import Graph
from brainfed.runtime import IntArray, Streams
from brainfed.samples import MethodInputs, Phenotypes

NEIGHBOURS = 3


def method_inputs(
    subjects: int = 60,
    dimensions: int = 30,
    institutions: int = 3,
    folds: int = 3,
    effect: float = 1.0,
    seed: int = 0,
    protocol: Literal["transductive", "inductive"] = "transductive",
    split: Literal["random", "leave-one-site-out"] = "random",
    diagnosis: IntArray | None = None,
    features: NDArray[np.float32] | None = None,
) -> MethodInputs:
    """A cohort of `subjects` people, institutions in turn, half of each patients.

    Args:
        subjects: n.
        dimensions: d.
        institutions: M, of equal size but for the remainder.
        folds: F, stratified by diagnosis inside each institution; M under leave-one-site-out, where
            fold f tests institution f.
        effect: how much higher the first fifth of a patient's features lie, in standard deviations.
        seed: of everything that is drawn.
        protocol: `transductive`: one graph, the nearest neighbours in the institution. `inductive`: a
            graph a fold, in which a tested subject receives from training subjects and sends to nobody.
        split: how folds are made.
        diagnosis: (n,) labels that take the place of those drawn; the features are made from these.
        features: (n, d) that take the place of those drawn; graphs are made from these.
    """
    rng = np.random.default_rng(seed)
    institution = np.arange(subjects) % institutions
    if diagnosis is None:
        diagnosis = balanced(institution, np.random.default_rng([seed, 1]))
    noise = rng.standard_normal((subjects, dimensions)) + rng.standard_normal((institutions, dimensions))[institution]
    if features is None:
        noise[:, : max(dimensions // 5, 1)] += effect * diagnosis[:, None]
        features = noise.astype(np.float32)
    fold = institution.copy() if split == "leave-one-site-out" else _folds(institution, diagnosis, folds, seed)
    count = int(fold.max()) + 1
    return MethodInputs(
        subjects=tuple(f"sub-{index:04d}" for index in range(subjects)),
        institutions=tuple(f"site-{index}" for index in range(institutions)),
        institution=institution,
        fold=fold,
        labels=_masked(diagnosis, fold),
        features=(features,),
        graphs=_graphs(features, institution, fold, count, protocol),
        phenotypes=Phenotypes(
            site=institution.copy(),
            sex=rng.integers(0, 2, subjects),
            age=rng.uniform(8, 40, subjects),
            mean_fd=rng.gamma(2.0, 0.05, subjects),
        ),
        streams=Streams(seed),
        classes=max(2, int(diagnosis.max()) + 1),
    )


def diagnosis_of(inputs: MethodInputs) -> IntArray:
    """(n,) true labels: every subject is a training subject of some other fold."""
    return inputs.labels.max(axis=0)


def relabelled(inputs: MethodInputs, diagnosis: IntArray) -> MethodInputs:
    """The same cohort, split and graphs with other true labels (n,)."""
    classes = max(inputs.classes, int(diagnosis.max()) + 1)
    return replace(inputs, labels=_masked(diagnosis, inputs.fold), classes=classes)


def scrambled(inputs: MethodInputs, fold: int) -> MethodInputs:
    """The same cohort with the true labels of the subjects tested in `fold` turned round."""
    diagnosis = diagnosis_of(inputs)
    return relabelled(inputs, np.where(inputs.tested(fold), 1 - diagnosis, diagnosis))


def balanced(institution: IntArray, rng: np.random.Generator) -> IntArray:
    """(n,) labels in random order, half of each institution's (rounded down) 1.

    Also the null: permuted labels must keep each institution's share, or the stratified folds make
    the institution itself tell the label.
    """
    diagnosis = np.zeros(len(institution), dtype=np.int64)
    for index in np.unique(institution):
        members = rng.permutation(np.flatnonzero(institution == index))
        diagnosis[members[: len(members) // 2]] = 1
    return diagnosis


def _masked(diagnosis: IntArray, fold: IntArray) -> IntArray:
    tested = np.arange(int(fold.max()) + 1)[:, None] == fold
    return np.where(tested, -1, diagnosis).astype(np.int64)


def _folds(institution: IntArray, diagnosis: IntArray, folds: int, seed: int) -> IntArray:
    fold = np.zeros(len(institution), dtype=np.int64)
    for index in np.unique(institution):
        members = np.flatnonzero(institution == index)
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for number, (_, held_out) in enumerate(splitter.split(members, diagnosis[members])):
            fold[members[held_out]] = number
    return fold


def _graphs(
    features: NDArray[np.float32], institution: IntArray, fold: IntArray, folds: int, protocol: str
) -> tuple[Graph, ...]:
    everybody = np.ones(len(features), dtype=bool)
    if protocol == "transductive":
        return (_graph(features, institution, everybody),)
    return tuple(_graph(features, institution, fold != index) for index in range(folds))


def _graph(features: NDArray[np.float32], institution: IntArray, sends: NDArray[np.bool_]) -> Graph:
    """Each subject's nearest senders in its institution, symmetric among senders, self-loops of 1."""
    similarity = np.exp(-(cdist(features, features) ** 2) / (4.0 * features.shape[1]))
    similarity[institution[:, None] != institution] = 0
    similarity[:, ~sends] = 0
    np.fill_diagonal(similarity, 0)
    threshold = np.sort(similarity, axis=1)[:, -NEIGHBOURS][:, None]
    adjacency = np.where((similarity >= threshold) & (similarity > 0), similarity, 0)
    adjacency[np.ix_(sends, sends)] = np.maximum(adjacency, adjacency.T)[np.ix_(sends, sends)]
    np.fill_diagonal(adjacency, 1)
    row, column = np.nonzero(adjacency)
    return Graph(row, column, adjacency[row, column].astype(np.float32), len(features))
