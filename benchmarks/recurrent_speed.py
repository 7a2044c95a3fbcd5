"""What share of the machine's matrix rate GAHFL's recurrent classifiers reach, five folds side by side.

    python benchmarks/recurrent_speed.py [KIND ...] [--threads 1] [--folds 5] [--batch 256] [--regions 200]
        [--repetitions 5]

A training step is a forward and a backward pass without the optimiser's step. The matrix rate is that of the products
of all time points with the input weights, as one batched product, measured between the steps. `share` counts the
products of the recurrent layer as work (with the series, forward and for the weights' gradient; with the states, these
and back in time), `projection` those with the series alone, and all else is time. `scoring` keeps no gates. Beside them
stand torch's own networks in a loop over the folds.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
from matrix_rate import clock_of

from brainfed.models import KINDS, Kind, RecurrentClassifier, Workspace, fold_logits
from brainfed.runtime import Streams

HIDDEN, STEPS = 32, 90


def milliseconds(work: list[Callable[[], object]], repetitions: int) -> list[float]:
    """Median time of each piece of work, all in turn after one round that is not counted."""
    clock = clock_of(torch.device("cpu"))
    laps: list[list[float]] = [[] for _ in work]
    for _ in range(repetitions + 1):
        for piece, found in zip(work, laps, strict=True):
            start = clock()
            piece()
            found.append((clock() - start) * 1e3)
    return [statistics.median(found[1:]) for found in laps]


def measure(kind: Kind, folds: int, batch: int, regions: int, repetitions: int) -> str:
    plain = [RecurrentClassifier(kind, regions, hidden=HIDDEN) for _ in range(folds)]
    for fold, network in enumerate(plain):
        network.start(Streams(0), fold)
    named = [dict(network.named_parameters()) for network in plain]
    parameters = {name: torch.stack([one[name].detach() for one in named]).requires_grad_() for name in named[0]}
    x, workspace = torch.randn(folds, batch, STEPS, regions), Workspace()
    width = (3 if kind == "gru" else 4) * HIDDEN
    factor, out = torch.randn(folds, regions, width), torch.empty(folds, batch * STEPS, width)

    def forward() -> torch.Tensor:
        return fold_logits(kind, parameters, x, None, workspace)

    def score() -> None:
        with torch.no_grad():
            forward()

    def step_of_torch() -> None:
        for network, series in zip(plain, x, strict=True):
            network(series).sum().backward()

    def product() -> None:
        torch.bmm(x.flatten(1, 2), factor, out=out)

    step, scoring, beside, gemm = milliseconds(
        [lambda: forward().sum().backward(), score, step_of_torch, product], repetitions
    )
    directions = 2 if kind == "bilstm" else 1
    once = 2 * folds * batch * STEPS * width / 1e6
    projection, recurrence = 2 * directions * once * regions, 3 * directions * once * HIDDEN
    rate, rates = once * regions / gemm, [(projection + recurrence) / step, projection / step]
    shares = f"{rates[0] / rate:6.2f} {rates[1] / rate:11.2f}"
    return f"{kind:8} {rate:6.0f} {rates[0]:9.0f} {shares} {step:8.0f} {scoring:8.0f} {beside:10.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--regions", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    size = f"{arguments.folds} folds, batch {arguments.batch}, {STEPS} time points"
    print(f"{arguments.threads} thread(s), {size}; GFLOP/s, ms")
    shares = f"{'GEMM':>6} {'training':>9} {'share':>6} {'projection':>11}"
    print(f"{'kind':8} {shares} {'step':>8} {'scoring':>8} {'torch step':>10}")
    for kind in arguments.kinds:
        print(measure(kind, arguments.folds, arguments.batch, arguments.regions, arguments.repetitions), flush=True)


if __name__ == "__main__":
    main()
