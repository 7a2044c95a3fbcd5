"""Whether GCFL finds institutions of two kinds on made-up graphs, and what its thresholds depend on.

    python benchmarks/client_kinds.py [--rounds 60] [--eps1 0.045] [--eps2 0.06] [--seed 0] [--threads 1]

Eight institutions of 60 graphs, three folds. `one rule`: dense graphs are patients everywhere. `one rule, other`:
graphs whose like nodes are joined are patients. `two rules`: institutions have the one and the other in turn.
`contrary`: dense graphs are patients in every second institution, sparse ones in the others. Columns, over the folds:
norm of the mean update of all institutions / largest norm of an update, in rounds 20, 40 and the last (means); the
rounds of the first cut; numbers of clusters at the end; folds with clusters, none of which has institutions of two
rules; accuracy after the last round.
"""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from graphs_speed import table

from brainfed.engines import train_networks
from brainfed.engines.graphs import GraphTraining
from brainfed.federation import Message
from brainfed.federation.strategies import GCFL, GradientNorms, UpdateCosine
from brainfed.methods.gcfl.declaration import GCFL as METHOD
from brainfed.methods.gcfl.declaration import LAYERS, GCFLSettings
from brainfed.models import GIN
from brainfed.runtime.jobs import Run
from support.samples.kinds_of_graphs import ALIKE, EVEN, TURNED, TWO_KINDS, kinds_of_graphs, unmixed

POPULATIONS = {
    "one rule": EVEN,
    "one rule, other": (ALIKE,) * len(EVEN),
    "two rules": TWO_KINDS,
    "contrary": TURNED,
}
CUTS = [
    {"similarity": similarity, "clustering": clustering}
    for similarity in ("updates", "gradient_norms")
    for clustering in ("minimum_cut", "balanced")
]
OPTIMISERS = (
    {"learning_rate": 3e-3},
    {"learning_rate": 3e-4},
    {"optimiser_state": "reset"},
)
BALANCED = CUTS[1]


class Recorded(GCFL):
    """GCFL that keeps the norms of all rounds.

    Attributes:
        norms: (T, 2, F) of the mean update of all institutions, and the largest of an update.
    """

    norms: tuple[np.ndarray, ...] = ()

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Keep a round's norms, then aggregate."""
        parts = [
            (torch.stack([replies[code].tensors[name] for code in self.institutions]) - sent).flatten(2)
            for name, sent in self.tensors.items()
        ]
        updates = torch.cat(parts, dim=2).double()
        self.norms += (torch.stack([updates.mean(dim=0).norm(dim=1), updates.norm(dim=2).amax(dim=0)]).numpy(),)
        super().aggregate(number, replies)


def trained(rules: tuple[str, ...], settings: GCFLSettings, seed: int) -> list[str]:
    """The cells of one training."""
    inputs, truth = kinds_of_graphs(rules, seed=seed)
    plus, servers = settings.similarity == "gradient_norms", []

    def server(institutions: tuple[int, ...], start: Mapping[str, Tensor]) -> GCFL:
        similarity = GradientNorms(settings.sequence) if plus else UpdateCosine()
        options = {"eps1": settings.eps1, "eps2": settings.eps2, "clustering": settings.clustering}
        servers.append(Recorded(institutions, start, similarity, first_round=settings.first_cut, **options))
        return servers[0]

    network = partial(GIN, hidden=settings.hidden, layers=LAYERS, dropout=settings.dropout)
    training = GraphTraining(
        inputs,
        settings,
        Run(),
        "federated",
        METHOD.crossing.tensors,
        server=server,
        network=network,
        sends_gradient_norm=plus,
    )
    outcome = train_networks(training)
    norms, clusters = np.array(servers[0].norms).mean(axis=2), outcome.clusters
    numbers = [min(20, settings.rounds), min(40, settings.rounds), settings.rounds]
    cut = [np.flatnonzero(fold.any(axis=1)) for fold in clusters.swapaxes(0, 1)]
    found = sum(bool(own.any()) and unmixed(own, rules) for own in clusters[-1])
    right = outcome.scores[inputs.fold, np.arange(len(truth))].argmax(axis=1) == truth
    return [
        *(f"{mean:.3f}/{largest:.3f}" for mean, largest in norms[np.array(numbers) - 1]),
        " ".join(str(rounds[0] + 1) if len(rounds) else "-" for rounds in cut),
        " ".join(str(len(set(own))) for own in clusters[-1].tolist()),
        f"{found} of {inputs.folds}" if len(set(rules)) > 1 else "",
        f"{right.mean():.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--eps1", type=float, default=0.045)
    parser.add_argument("--eps2", type=float, default=0.06)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    common = {"rounds": arguments.rounds, "eps1": arguments.eps1, "eps2": arguments.eps2, "sequence": 10}
    parts = ("20", "40", "last", "first cut", "clusters", "found", "accuracy")
    rows = [("institutions", "method", "cut", "optimiser", *parts)]
    runs = [(name, cut, {}) for name in ("two rules", "contrary", "one rule") for cut in CUTS]
    runs.append(("one rule, other", BALANCED, {}))
    runs += [(name, BALANCED, optimiser) for name in ("two rules", "one rule") for optimiser in OPTIMISERS]
    for name, cut, optimiser in runs:
        settings = GCFLSettings(**common, **cut, **optimiser)
        method = "GCFL+" if cut["similarity"] == "gradient_norms" else "GCFL"
        about = f"{settings.learning_rate:g} {settings.optimiser_state}"
        rows.append((name, method, cut["clustering"], about, *trained(POPULATIONS[name], settings, arguments.seed)))
        print(*rows[-1], file=sys.stderr, flush=True)
    table(rows)


if __name__ == "__main__":
    main()
