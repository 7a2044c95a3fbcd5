"""Seconds of a federated round of GCFL's network on whole graphs, as a share of the machine's matrix rate.

    python benchmarks/graphs_speed.py --tudataset FOLDER [--institutions 10] [--rounds 10] [--threads 1] [--plain 2]
        [--operations]
    python benchmarks/graphs_speed.py --connectomes 0.1 [--rounds 10] [--threads 1] [--plain 2] [--operations]

FOLDER is a data set in TU text format, as PROTEINS with its `raw`. The split is that of Xie et al. (2021): each of M
institutions has min(50, N / M) graphs in a row, every other graph goes to an institution at random. `--connectomes`
makes up correlations of 200 regions for 1,035 subjects in 17 institutions of the sizes of ABIDE's sites; the number is
the share of connections that are edges. A fifth of each institution's graphs is not trained on and scored after a
round. FedAvg of the convolutions, one local epoch in batches of 128 graphs. GFLOP counts the matrix products of a
round, for the fast engine those that it forms; `share` is their rate over the machine's, `of needed` that of the
network as it is written. Seconds are medians over the rounds, `least` the fastest round; with one thread those of the
processor, else of the wall. `--operations` lists torch's operations in local training; it slows them by a microsecond
each.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from matrix_rate import Stopwatch, clock_of
from torch.overrides import TorchFunctionMode

from brainfed.engines import parameters_by_wire_name
from brainfed.engines.graphs import GraphClients, GraphCohort
from brainfed.federation import FederationSettings
from brainfed.federation.strategies import FedAvg
from brainfed.graphs import ConnectomeSettings, adjacency, joined, matrices, read_data_set, strongest
from brainfed.models import GIN, SHARED
from brainfed.runtime import Streams
from brainfed.samples import GraphSamples
from reference.module_clients import ModuleClients
from reference.plain_graphs import plain_cohort

STREAMS = Streams(0)
SITES = (175, 140, 98, 71, 63, 56, 56, 52, 48, 47, 39, 37, 36, 34, 30, 27, 26)
"""Subjects of ABIDE's sites."""
REGIONS = 200
IDLE = 0.1
"""Seconds after a product of several threads, which wait for the next one busily."""


def read(folder: Path) -> tuple[GraphSamples, np.ndarray]:
    """Graphs with one-hot node labels, or degrees where there are none, and their classes."""
    labels = np.loadtxt(folder / "raw" / f"{folder.name}_graph_labels.txt", dtype=np.int64)
    data = read_data_set(folder / "raw", folder.name, len(labels))
    return GraphSamples(**joined([data])), np.unique(labels, return_inverse=True)[1]


def connectomes(density: float, count: int = sum(SITES), regions: int = REGIONS) -> tuple[GraphSamples, np.ndarray]:
    """Correlations of made-up series as graphs, and two classes at random."""
    rng = np.random.default_rng(0)
    features = np.tanh(0.3 * rng.standard_normal((count, regions * (regions - 1) // 2), dtype=np.float32))
    joined = adjacency(strongest(features, regions, ConnectomeSettings(density=density)), regions)
    graph, source, target = np.nonzero(joined)
    nodes = matrices(features, regions).reshape(-1, regions)
    edge_start = np.concatenate([[0], np.cumsum(np.bincount(graph, minlength=count))])
    graphs = GraphSamples(
        np.arange(count + 1) * regions, nodes, edge_start, source, target, np.ones(len(source), dtype=np.float32)
    )
    return graphs, rng.integers(0, 2, count)


def paper_owners(graphs: int, institutions: int) -> np.ndarray:
    """(n,) institution of each graph in the paper's split."""
    row = min(50, graphs // institutions)
    rest = np.random.default_rng(123).integers(0, institutions, graphs - row * institutions)
    return np.concatenate([np.repeat(np.arange(institutions), row), rest])


def cohort_of(graphs: GraphSamples, classes: np.ndarray, owner: np.ndarray) -> GraphCohort:
    """Institutions, with the labels of a fifth of each hidden."""
    rng, labels = np.random.default_rng(123), classes.copy()
    members = [np.flatnonzero(owner == place) for place in range(owner.max() + 1)]
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
        nodes, features, hidden = sizes[trained].sum(), own[0].nodes.shape[1], sizes[~trained].sum()
        layers = 6 * width**2
        if clients is None:
            total += 2 * nodes * (2 * features * width + 3 * layers) + 2 * hidden * (features * width + layers)
            continue
        graphs = clients.graphs[place][0]
        blocks = graphs.blocks(np.flatnonzero(trained))
        distinct = sum(len(block.row) for block in blocks)
        narrow = graphs.rows.shape[1] * width
        scored = graphs.scored(np.flatnonzero(~trained), 3)
        first = sum(len(block.row) for block in scored)
        later = sum(len(bags.start) - 1 for block in scored for bags in block.layers)
        total += 2 * distinct * (2 * narrow + 3 * width**2) + 2 * nodes * 12 * width**2
        total += 2 * first * (narrow + width**2) + 2 * later * 2 * width**2
    return total / 1e9


def measured(clients: GraphClients | ModuleClients, rounds: int) -> tuple[dict[str, float], float]:
    """Seconds of the parts of a round, and GFLOP/s of a square product measured between rounds."""
    watch, clock, laps = Stopwatch(torch.device("cpu")), clock_of(torch.device("cpu")), []
    server = FedAvg(clients.institutions, clients.start(), "subjects")
    for number in range(rounds):
        watch.rates.append(watch.rate())
        time.sleep(IDLE)
        moments = [clock()]
        replies = clients.fit(number, server.choose(number))
        moments.append(clock())
        server.aggregate(number, replies)
        clients.receive(server.broadcast(number + 1))
        moments.append(clock())
        clients.score(number)
        laps.append(np.diff([*moments, clock()]))
    parts = np.array(laps)[1 if rounds > 1 else 0 :]
    found = dict(zip(("training", "averaging", "scoring"), np.median(parts, axis=0).tolist(), strict=True))
    whole = parts.sum(axis=1)
    return found | {"round": float(np.median(whole)), "least": float(whole.min())}, watch.gemm


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
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--tudataset", type=Path)
    source.add_argument("--connectomes", type=float, metavar="DENSITY")
    parser.add_argument("--institutions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plain", type=int, default=2, help="rounds of the plain engine; 0: none")
    parser.add_argument("--operations", action="store_true", help="also list those of local training")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.tudataset:
        name, (graphs, classes) = arguments.tudataset.name, read(arguments.tudataset)
        owner = paper_owners(len(classes), arguments.institutions)
    else:
        name, (graphs, classes) = "connectomes", connectomes(arguments.connectomes)
        owner = np.repeat(np.arange(len(SITES)), SITES)
    cohort, rounds = cohort_of(graphs, classes, owner), max(arguments.rounds, arguments.plain)
    settings = FederationSettings(
        rounds=rounds, local_epochs=1, batch=128, weight_decay=5e-4, optimiser_state="keep", noise=0.0
    )
    modules = networks(cohort)
    shares = [name for name in parameters_by_wire_name(modules[0][0]) if name.startswith(SHARED)]
    fast = GraphClients(modules, cohort, settings, STREAMS, shares)
    needed, done = operations(cohort, None), operations(cohort, fast)
    parts = ("training", "averaging", "scoring", "round", "least")
    rows = [("engine", *parts, "GFLOP", "GEMM GFLOP/s", "share", "of needed")]
    found = {"fast": (done, *measured(fast, arguments.rounds))}
    if arguments.plain:
        plain = ModuleClients(modules, plain_cohort(cohort, modules, STREAMS), settings, STREAMS, shares)
        found["plain"] = (needed, *measured(plain, arguments.plain))
    for engine, (work, seconds, gemm) in found.items():
        rate, needs = work / seconds["round"] / gemm, needed / seconds["round"] / gemm
        cells = [f"{value:.4f}" for value in seconds.values()]
        rows.append((engine, *cells, f"{work:.2f}", f"{gemm:.0f}", f"{rate:.2f}", f"{needs:.2f}"))
    shape = f"{len(classes)} graphs, {graphs.node_start[-1]} nodes, {len(graphs.source)} edges"
    print(f"{name}: {shape}, {len(cohort.graphs)} institutions, {arguments.threads} thread(s)")
    table(rows)
    if arguments.operations:
        torch.set_num_threads(1)
        list_operations(fast, arguments.rounds)


if __name__ == "__main__":
    main()
