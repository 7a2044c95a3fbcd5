"""What share of the machine's matrix rate the generators of missing neighbours reach.

    python benchmarks/inpainting_speed.py [--method fedni] [--threads 1] [--device cpu] [--features 19900] [--rounds 3]
        [--precision bfloat16]

Trains FedNI's generator and discriminator, or FedSage+'s generators, of five institutions on correlations of a made-up
cohort of ABIDE's size (1035 subjects) on its own population graph, and prints their rate beside that of a large square
float32 product, which is measured after every unit of work and its time taken out. Only products with an axis of d are
counted as work. All time of the rounds is counted as time: masks, Adam, the narrow layers, weight noise, averaging; the
held-out masks after FedNI's last round are left out. FedSage+ trains `--rounds` local epochs and as many federated
rounds for each institution. The share stands for the method's own number of rounds: the first, which holds the set-up,
and the median of the others so many times. The last column is what five repeats would take at that rate, one after the
other.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from made_up_cohort import CC200_FEATURES, MadeUpCohort
from matrix_rate import Stopwatch

from brainfed.inpainting import FedSageSettings, InpaintingSettings
from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.runtime.jobs import Run

REPEATS = 5


def settings_of(method: str, rounds: int, precision: str) -> tuple[Any, int]:
    """Settings of so many rounds, and the method's own number; FedSage+ has as many local epochs."""
    if method == "fedsage":
        sage = FedSageSettings()
        assert sage.rounds == sage.local_epochs
        return replace(sage, rounds=rounds, local_epochs=rounds), sage.rounds
    known = InpaintingSettings()
    return replace(known, rounds=rounds, precision=precision), known.rounds


def seconds_of(laps: Sequence[float], rounds: int, own: int) -> float:
    """Seconds of `own` rounds in place of `rounds`, for each training: its first lap holds its set-up."""
    assert len(laps) % rounds == 0, (len(laps), rounds)
    trainings = [laps[start : start + rounds] for start in range(0, len(laps), rounds)]
    return sum(first + statistics.median(others) * (own - 1) for first, *others in trainings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="fedni", choices=["fedni", "fedsage"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--features", type=int, default=CC200_FEATURES)
    parser.add_argument("--rounds", type=int, default=3, help="at least 2")
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32", "bfloat16"], help="of fedni")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device, method = torch.device(arguments.device), {"fedni": fedni, "fedsage": fedsage}[arguments.method]
    inputs = MadeUpCohort(arguments.features).inpainting_inputs()
    rounds = max(2, arguments.rounds)
    settings, own = settings_of(arguments.method, rounds, arguments.precision)
    watch = Stopwatch(device)
    run = Run(device=arguments.device, progress=watch.progress)
    result = method.train(inputs, settings, run)
    work, seconds = result.counts["operations"] * own / rounds, seconds_of(watch.laps, rounds, own)
    rate = work / seconds / 1e9
    print(
        f"{arguments.method} on {arguments.device}, {arguments.threads} thread(s), d = {arguments.features}, "
        f"{arguments.precision}\n"
        f"{'matrix rate':>12} {'GFLOP/s':>8} {'of it':>6} {'TFLOP a repeat':>15} {'minutes for five repeats':>25}\n"
        f"{watch.gemm:12.0f} {rate:8.0f} {rate / watch.gemm:6.2f} {work / 1e12:15.1f} "
        f"{seconds * REPEATS / 60:25.1f}"
    )


if __name__ == "__main__":
    main()
