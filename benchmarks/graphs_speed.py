"""Seconds of a federated round of GCFL's network on whole graphs, as a share of the machine's matrix rate.

    python benchmarks/graphs_speed.py --tudataset FOLDER [--institutions 10] [--rounds 10] [--threads 1] [--plain 2]
        [--operations]

FOLDER is a data set in TU text format, as PROTEINS with its `raw`. The split is that of Xie et al. (2021): each of M
institutions has min(50, N / M) graphs in a row, every other graph goes to an institution at random; a fifth of each is
not trained on. FedAvg of the convolutions, one local epoch in batches of 128 graphs; all graphs scored after a round.
GFLOP counts the matrix products of a round, for the fast engine those that it forms; `share` is their rate over the
machine's, `of needed` that of the network as it is written. With one thread seconds are those of the processor, else of
the wall. `--operations` lists torch's operations in local training; it slows them by a microsecond each.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matrix_rate import Stopwatch
from torch.overrides import TorchFunctionMode

from brainfed.engines.graphs.clients import GraphClients
from brainfed.engines.graphs.cohort import GraphCohort
from brainfed.engines.graphs.plain import plain_cohort
from brainfed.engines.modules import ModuleClients
from brainfed.engines.parameter_names import parameters_by_wire_name
from brainfed.federation.schedule import FederationSettings
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.models.gin import GIN, SHARED
from brainfed.runtime.streams import Streams
from brainfed.samples.graph_samples import GraphSamples

STREAMS = Streams(0)


def read(folder: Path) -> tuple[GraphSamples, np.ndarray]:
    """Graphs with one-hot node labels, or degrees where there are none, and their classes."""
    stem = folder / "raw" / folder.name
    edges = np.loadtxt(f"{stem}_A.txt", delimiter=",", dtype=np.int64) - 1
    graph = np.loadtxt(f"{stem}_graph_indicator.txt", dtype=np.int64) - 1
    _, classes = np.unique(np.loadtxt(f"{stem}_graph_labels.txt", dtype=np.int64), return_inverse=True)
    labels = Path(f"{stem}_node_labels.txt")
    values = np.loadtxt(labels, dtype=np.int64) if labels.exists() else np.bincount(edges[:, 0], minlength=len(graph))
    _, kinds = np.unique(values, return_inverse=True)
    start = np.concatenate([[0], np.cumsum(np.bincount(graph))])
    edges = edges[np.argsort(graph[edges[:, 0]], kind="stable")]
    own = graph[edges[:, 0]]
    edge_start = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=len(classes)))])
    inside = edges - start[own][:, None]
    nodes = np.eye(kinds.max() + 1, dtype=np.float32)[kinds]
    weight = np.ones(len(edges), dtype=np.float32)
    return GraphSamples(start, nodes, edge_start, inside[:, 0], inside[:, 1], weight), classes


def cohort_of(graphs: GraphSamples, classes: np.ndarray, institutions: int) -> GraphCohort:
    """The paper's split, with the labels of a fifth of every institution hidden."""
    rng = np.random.default_rng(123)
    row = min(50, len(classes) // institutions)
    rest = rng.integers(0, institutions, len(classes) - row * institutions)
    owner = np.concatenate([np.repeat(np.arange(institutions), row), rest])
    labels = classes.copy()
    members = [np.flatnonzero(owner == place) for place in range(institutions)]
    for own in members:
        labels[rng.permutation(own)[: len(own) // 5]] = -1
    return GraphCohort.of([graphs], labels[None], members, (0,), int(classes.max()) + 1)


def networks(cohort: GraphCohort) -> list[list[GIN]]:
    features = cohort.graphs[0][0].nodes.shape[1]
    found = [[GIN(features, cohort.classes)] for _ in cohort.graphs]
    for place, (module,) in enumerate(found):
        module.start(STREAMS, 0, place)
    return found


def operations(cohort: GraphCohort, clients: GraphClients | None) -> float:
    """GFLOP of the matrix products in a round; of the fast engine, or of the network as it is written."""
    width, total = 64, 0.0
    for place, own in enumerate(cohort.graphs):
        sizes, trained = np.diff(own[0].node_start), (cohort.labels[place, 0, : cohort.subjects[place]] >= 0).numpy()
        nodes, features, every = sizes[trained].sum(), own[0].nodes.shape[1], sizes.sum()
        layers = 6 * width**2
        if clients is None:
            total += 2 * nodes * (2 * features * width + 3 * layers) + 2 * every * (features * width + layers)
            continue
        graphs = clients.graphs[place][0]
        blocks = graphs.blocks(np.flatnonzero(trained))
        distinct = sum(len(block.row) for block in blocks)
        narrow = graphs.rows.shape[1] * width
        scored = sum(len(bags.start) - 1 for bags in graphs.scored.layers)
        total += 2 * distinct * (2 * narrow + 3 * width**2) + 2 * nodes * 12 * width**2
        total += 2 * len(graphs.rows) * (narrow + width**2) + 2 * scored * 2 * width**2
    return total / 1e9


def measured(clients: GraphClients | ModuleClients, rounds: int) -> tuple[dict[str, float], float]:
    """Median seconds of the parts of a round, and GFLOP/s of a square product measured between rounds."""
    watch, laps = Stopwatch(torch.device("cpu")), []
    server = FedAvg(clients.institutions, clients.start(), "subjects")
    for number in range(rounds):
        watch.restart()
        replies = clients.fit(number, server.choose(number))
        watch.progress(0, 0, "")
        server.aggregate(number, replies)
        clients.receive(server.broadcast(number + 1))
        watch.progress(0, 0, "")
        clients.score(number)
        watch.progress(0, 0, "")
        laps.append(watch.laps.copy())
    parts = np.array(laps)[1 if rounds > 1 else 0 :]
    found = dict(zip(("training", "averaging", "scoring"), np.median(parts, axis=0).tolist(), strict=True))
    return found | {"round": statistics.median(parts.sum(axis=1).tolist())}, watch.gemm


class Operations(TorchFunctionMode):
    """Processor seconds and calls of torch's operations, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[float]] = defaultdict(list)

    def __torch_function__(self, function, _types, arguments=(), options=None):
        start = time.process_time()
        result = function(*arguments, **(options or {}))
        self.found[function.__name__].append(time.process_time() - start)
        return result


def list_operations(clients: GraphClients, rounds: int) -> None:
    """Print the dearest operations of local training, a round."""
    with Operations() as operations:
        for number in range(rounds):
            clients.fit(number, clients.institutions)
    rows = [("operation", "ms", "calls")]
    for name, seconds in sorted(operations.found.items(), key=lambda item: -sum(item[1]))[:12]:
        rows.append((name, f"{1e3 * sum(seconds) / rounds:.2f}", f"{len(seconds) / rounds:.0f}"))
    table(rows)


def table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tudataset", type=Path, required=True)
    parser.add_argument("--institutions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plain", type=int, default=2, help="rounds of the plain engine; 0: none")
    parser.add_argument("--operations", action="store_true", help="also list those of local training")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    graphs, classes = read(arguments.tudataset)
    cohort, rounds = cohort_of(graphs, classes, arguments.institutions), max(arguments.rounds, arguments.plain)
    settings = FederationSettings(
        rounds=rounds, local_epochs=1, batch=128, weight_decay=5e-4, optimiser_state="keep", noise=0.0
    )
    modules = networks(cohort)
    shares = [name for name in parameters_by_wire_name(modules[0][0]) if name.startswith(SHARED)]
    fast = GraphClients(modules, cohort, settings, STREAMS, shares)
    needed, done = operations(cohort, None), operations(cohort, fast)
    rows = [("engine", "training", "averaging", "scoring", "round", "GFLOP", "GEMM GFLOP/s", "share", "of needed")]
    found = {"fast": (done, *measured(fast, arguments.rounds))}
    if arguments.plain:
        plain = ModuleClients(modules, plain_cohort(cohort, modules, STREAMS), settings, STREAMS, shares)
        found["plain"] = (needed, *measured(plain, arguments.plain))
    for name, (work, seconds, gemm) in found.items():
        rate, needs = work / seconds["round"] / gemm, needed / seconds["round"] / gemm
        cells = [f"{value:.4f}" for value in seconds.values()]
        rows.append((name, *cells, f"{work:.2f}", f"{gemm:.0f}", f"{rate:.2f}", f"{needs:.2f}"))
    shape = f"{len(classes)} graphs, {graphs.node_start[-1]} nodes, {len(graphs.source)} edges"
    print(f"{arguments.tudataset.name}: {shape}, {arguments.institutions} institutions, {arguments.threads} thread(s)")
    table(rows)
    if arguments.operations:
        torch.set_num_threads(1)
        list_operations(fast, arguments.rounds)


if __name__ == "__main__":
    main()
