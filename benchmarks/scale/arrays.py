"""Bytes of the largest arrays of each step, by formula, and the size at which they fill a memory.

Measured peaks are compared with them. n subjects, M institutions, d features, F folds, T rounds, R regions.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping

from brainfed.engines.stacked import DENSE_NUMBERS, STACK_BYTES
from brainfed.graphs import BLOCK_ENTRIES, EXACT_RANK, OVERSAMPLES, GraphSettings
from brainfed.methods.gcn.declaration import FedGCNSettings
from scale.work import Axis, Changed, Work

PASSES = 26
"""Over the features of this cohort, until its components stay the same."""
CLASSES = 2
SINGLE, DOUBLE = 4, 8
"""Bytes of a number."""
LARGEST_SIZE = 1 << 40

Bytes = dict[str, float]
"""What an array holds -> its bytes."""


def arrays_of_connectivity(work: Work) -> Bytes:
    """Series and features of all subjects."""
    n = work.subjects
    return {"series": SINGLE * n * work.volumes * work.regions, "features": SINGLE * n * work.features}


def arrays_of_graph(work: Work) -> Bytes:
    """Pages of the features' file, and what finds the components: of everybody, or of each institution."""
    n, d, own = work.subjects, work.features, work.subjects // work.institutions
    dimensions = GraphSettings().embedding_dimensions
    pages = {"pages of the features' file": SINGLE * n * d}
    if work.scope == "local":
        kept = DOUBLE * work.institutions * min(dimensions, own - 1) * d
        fitting = (SINGLE + 4 * DOUBLE) * own * d
        return pages | {"components of all institutions": kept, "fitting of one institution": fitting}
    if min(n, d) <= EXACT_RANK:
        return pages | {"centred features": DOUBLE * n * d}
    basis = 2 * DOUBLE * PASSES * (dimensions + OVERSAMPLES) * d
    return pages | {"basis of the components": basis, "blocks of features": 2 * SINGLE * BLOCK_ENTRIES}


def arrays_of_training(work: Work) -> Bytes:
    """The larger of two moments: an institution's features are propagated; noise is drawn for its weights."""
    n, d, own = work.subjects, work.features, work.subjects // work.institutions
    folds, parameters = _folds_at_once(work), _parameters(work.features)
    models = work.institutions * folds
    dense = work.institutions * own**2
    stays = {
        "pages of the features' file": SINGLE * n * d,
        "A X": SINGLE * (n + models) * d,
        "means and deviations": (2 * DOUBLE + SINGLE) * models * d,
        "graph": SINGLE * dense if dense <= DENSE_NUMBERS else 0,
        "scores of all rounds": 3 * DOUBLE * CLASSES * work.rounds * work.folds * n,
    }
    loading = {"one institution's features": 2 * SINGLE * own * d}
    training = {
        "weights, gradients and Adam's moments": 4 * SINGLE * models * parameters,
        # The server's model and the scaled weights of one institution; the plain network, the noise of each thread.
        "further models": SINGLE * (2 * folds + 1 + work.threads) * parameters,
    }
    return stays | max(loading, training, key=lambda arrays: sum(arrays.values()))


def _parameters(features: int) -> int:
    """Of one network."""
    first, second = FedGCNSettings().hidden
    return (features + 1) * first + (first + 1) * second + (second + 1) * CLASSES


def _folds_at_once(work: Work) -> int:
    """As many as the engine trains side by side."""
    fit = max(1, STACK_BYTES // (SINGLE * (4 * work.institutions + 2) * _parameters(work.features)))
    stacks = -(-work.folds // fit)
    return -(-work.folds // stacks)


ARRAYS: Mapping[str, Callable[[Work], Bytes]] = {
    "connectivity": arrays_of_connectivity,
    "graph": arrays_of_graph,
    "training": arrays_of_training,
}


def mib(arrays: Bytes) -> float:
    return sum(arrays.values()) / 2**20


def first_to_fill(axis: Axis, changed: Changed, memory: float) -> tuple[int, str, str, float]:
    """The size at which the first step of an axis has arrays of `memory` MiB.

    Returns:
        The size, the step, the largest of its arrays, and the share of this array.
    """

    def filling(step: str) -> int:
        sizes = range(1, LARGEST_SIZE)
        return sizes[bisect_left(sizes, memory, key=lambda size: mib(ARRAYS[step](axis.work(size, changed))))]

    step = min(axis.steps, key=filling)
    arrays = ARRAYS[step](axis.work(filling(step), changed))
    largest = max(arrays, key=lambda name: arrays[name])
    return filling(step), step, largest, arrays[largest] / sum(arrays.values())
