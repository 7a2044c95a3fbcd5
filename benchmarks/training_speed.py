"""What share of the machine's matrix rate training reaches.

    python benchmarks/training_speed.py [VARIANT ...] [--threads 1] [--device cpu] [--rounds 3] [--features 19900]

Trains the variants (default: all of Table V) on random numbers of ABIDE's size (1035 subjects, 19,900 connections,
five institutions, five folds side by side), and prints their rate beside that of a large square product, which is
measured after every round and its time taken out. Counted as work are the products with an axis of d alone, forward
and backward (of a linear model: the Gram matrices of its fits, in float64, against the rate in float64); all else is
time: noise, Adam, averaging, scoring after each round. `share` has the set-up in it and stands for the variant's own
number of rounds: set-up, plus that many of the rounds measured. `nan`: nobody counts the operations of this variant.
"""

import argparse
import logging
from dataclasses import replace

import numpy as np
import torch
from made_up_cohort import CC200_FEATURES, MadeUpCohort
from matrix_rate import Stopwatch

from brainfed.inpainting import FusedGraph
from brainfed.methods import METHODS, SHIPPED_VARIANTS, inpainter_of
from brainfed.runtime import resolve, restore
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs

LINEAR = ("ridge-local", "ridge-central", "svm-local", "svm-central", "logistic-local", "logistic-central")
TRAINED = ("logistic-federated", "localgcn", "centralgcn", "fedmlp", "fedgcn", "fedsage-plus", "fedni")
UNCOUNTED = ("logistic-federated",)
"""Trained until it converges, whatever `--rounds` says; nobody counts its operations."""


def with_copies(inputs: MethodInputs) -> MethodInputs:
    """The same with a generated node for every second subject, half of its features, joined to it alone."""
    parent = np.arange(0, len(inputs.subjects), 2)
    new, graph = len(inputs.subjects) + np.arange(len(parent)), inputs.graphs[0]
    fused = FusedGraph(
        row=np.concatenate([graph.row, parent, new, new]),
        column=np.concatenate([graph.column, new, parent, new]),
        weight=np.concatenate([graph.weight, np.ones(3 * len(parent), np.float32)]),
        features=np.asarray(inputs.features[0][parent] / 2, dtype=np.float32),
        institution=inputs.institution[parent],
        parent=parent,
        sex=np.full(len(parent), -1),
        age=np.full(len(parent), np.nan),
        count=np.ones(len(inputs.subjects)),
    )
    return replace(inputs, graphs=(), fused=(fused,))


def gram_operations(inputs: MethodInputs, training: str) -> int:
    """Multiplications and additions of the Gram matrices of all fits."""
    d = inputs.features[0].shape[1]
    groups = [inputs.members(m) for m in range(len(inputs.institutions))]
    pools = groups if training == "local" else [np.arange(len(inputs.subjects))]
    sizes = [int(inputs.training(fold)[pool].sum()) for fold in range(inputs.folds) for pool in pools]
    return sum(2 * size**2 * d for size in sizes)


def measure(variant: str, inputs: MethodInputs, device: torch.device, rounds: int) -> tuple[float, float, float, float]:
    """GFLOP/s at the variant's own number of rounds and in a round, the machine's, and seconds of all rounds.

    Without a rate for `UNCOUNTED`.
    """
    named = dict(SHIPPED_VARIANTS[variant])
    method = METHODS[named.pop("method")]
    settings = restore(method.settings, named)
    linear = variant in LINEAR
    if inpainter_of(method) is not None:
        inputs = with_copies(inputs)
    whole = 1
    if hasattr(settings, "rounds"):
        whole, settings = settings.rounds, replace(settings, rounds=rounds)
    elif hasattr(settings, "curve_every"):
        whole = settings.epochs // settings.curve_every
        settings = replace(settings, epochs=rounds * settings.curve_every)
    train = resolve(method.entry)
    watch = Stopwatch(device, torch.float64 if linear else torch.float32)
    outcome = train(inputs, settings, Run(device=str(device), progress=watch.progress))
    if linear:
        work = gram_operations(inputs, settings.training)
        return work / watch.seconds / 1e9, work / watch.seconds / 1e9, watch.gemm, watch.seconds
    if variant in UNCOUNTED:
        return float("nan"), float("nan"), watch.gemm, watch.seconds
    work = outcome.counts["first_layer_operations"] / rounds
    lap = float(np.median(watch.laps[1:]))
    seconds = watch.laps[0] + lap * (whole - 1)
    return work * whole / seconds / 1e9, work / lap / 1e9, watch.gemm, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", default=[*TRAINED, *LINEAR], metavar="VARIANT")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3, help="at least 2")
    parser.add_argument("--features", type=int, default=CC200_FEATURES)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(arguments.threads)
    inputs, device = MadeUpCohort(arguments.features).method_inputs(), torch.device(arguments.device)
    print(f"{device}, {arguments.threads} thread(s), d = {arguments.features}; GFLOP/s")
    print(f"{'variant':18} {'GEMM':>6} {'training':>9} {'share':>6} {'share of a round':>17} {'seconds a repeat':>17}")
    for variant in arguments.variants:
        rate, in_round, gemm, seconds = measure(variant, inputs, device, max(2, arguments.rounds))
        shares = f"{rate / gemm:6.2f} {in_round / gemm:17.2f}"
        print(f"{variant:18} {gemm:6.0f} {rate:9.0f} {shares} {seconds:17.1f}", flush=True)


if __name__ == "__main__":
    main()
