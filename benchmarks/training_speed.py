"""What share of the machine's matrix rate training reaches.

    python benchmarks/training_speed.py [--threads 2] [--device cpu] [--rounds 3]

Trains FedMLP and FedGCN on random numbers of ABIDE's size (1035 subjects, 19,900 connections, five
institutions, five folds side by side) and prints their rate beside that of a large square product,
measured in the same run, before and after. Only the first layer's products are counted as work, all
time is counted as time: noise, averaging, scoring after each round included.
"""

import argparse
import logging
import time

import numpy as np
import torch
from matrix_rate import matrix_rate, synchronise

from brainfed.graphs.graph import Graph
from brainfed.methods.fedgcn import FedGCNSettings
from brainfed.methods.fedmlp import FedMLPSettings
from brainfed.runtime.run import Run
from brainfed.runtime.streams import Streams
from brainfed.training import fedgcn, fedmlp
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.people import Phenotypes

SUBJECTS, CONNECTIONS, INSTITUTIONS, FOLDS, NEIGHBOURS = 1035, 19_900, 5, 5, 15


def random_inputs() -> MethodInputs:
    """Noise of ABIDE's size; every institution a ring graph with 15 neighbours a node."""
    random = np.random.default_rng(0)
    institution = np.arange(SUBJECTS) % INSTITUTIONS
    fold = (np.arange(SUBJECTS) // INSTITUTIONS) % FOLDS
    truth = random.integers(0, 2, SUBJECTS)
    offsets = range(-(NEIGHBOURS // 2), NEIGHBOURS // 2 + 1)
    groups = [np.flatnonzero(institution == name) for name in range(INSTITUTIONS)]
    edges = [np.stack([members, np.roll(members, offset)]) for members in groups for offset in offsets]
    row, column = np.concatenate(edges, axis=1)
    return MethodInputs(
        subjects=tuple(f"s{number:04d}" for number in range(SUBJECTS)),
        institutions=tuple(f"institution-{number}" for number in range(INSTITUTIONS)),
        institution=institution,
        fold=fold,
        labels=np.where(np.arange(FOLDS)[:, None] == fold, -1, truth),
        features=(random.standard_normal((SUBJECTS, CONNECTIONS), dtype=np.float32) * 0.2 + 0.3,),
        graphs=(Graph(row, column, np.ones(len(row), np.float32), SUBJECTS),),
        phenotypes=Phenotypes(institution, institution, np.zeros(SUBJECTS), np.zeros(SUBJECTS)),
        streams=Streams(0),
    )


def timed(train: object, settings: object, inputs: MethodInputs, run: Run) -> tuple[Outcome, float]:
    synchronise(torch.device(run.device))
    start = time.perf_counter()
    outcome = train(inputs, settings, run)  # type: ignore[operator]
    synchronise(torch.device(run.device))
    return outcome, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    inputs, run = random_inputs(), Run(device=arguments.device, progress=lambda *_: None)
    before = matrix_rate(device)
    rows = []
    for name, train, kind in (("FedMLP", fedmlp.train, FedMLPSettings), ("FedGCN", fedgcn.train, FedGCNSettings)):
        _, setup = timed(train, kind(rounds=1, local_epochs=1), inputs, run)
        outcome, seconds = timed(train, kind(rounds=arguments.rounds), inputs, run)
        rows.append((name, outcome.counts["first_layer_operations"] / seconds / 1e9, seconds, setup))
    after = matrix_rate(device)
    gemm = (before + after) / 2
    print(
        f"{arguments.device}, {arguments.threads} threads; matrix rate {before:.0f} before, {after:.0f} after (GFLOP/s)"
    )
    print(f"{'method':8} {'GFLOP/s':>8} {'of matrix rate':>15} {'seconds':>8} {'of which set-up and 1 epoch':>28}")
    for name, rate, seconds, setup in rows:
        print(f"{name:8} {rate:8.0f} {rate / gemm:15.2f} {seconds:8.1f} {setup:28.1f}")


if __name__ == "__main__":
    main()
