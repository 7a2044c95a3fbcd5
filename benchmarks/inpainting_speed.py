"""What share of the machine's matrix rate the generators of missing neighbours reach.

    python benchmarks/inpainting_speed.py [--method fedni] [--threads 1] [--device cpu] [--features 19900] [--rounds 2]
        [--precision bfloat16]

Trains FedNI's generator and discriminator, or FedSage+'s generators, of five institutions on correlations of a made-up
cohort of ABIDE's size (1035 subjects) on its own population graph, and prints their rate beside that of a large square
float32 product, which is measured after every unit of work and its time taken out. Only products with an axis of d are
counted as work, all time is counted as time: masks, Adam, the narrow layers, weight noise, averaging. FedSage+ trains
`--rounds` local epochs and as many federated rounds. The last column is what five repeats of the method's own number of
rounds would take at that rate, one after the other.
"""

import argparse
from dataclasses import replace
from typing import Any

import torch
from made_up_cohort import CC200_FEATURES, MadeUpCohort
from matrix_rate import Stopwatch

from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.runtime.jobs.run import Run

REPEATS = 5


def settings_of(method: str, rounds: int, precision: str) -> tuple[Any, float]:
    """Settings of so many rounds, and how many times as many the method has of its own."""
    if method == "fedsage":
        known = FedSageSettings()
        return replace(known, rounds=rounds, local_epochs=rounds), known.rounds / rounds
    known = InpaintingSettings()
    return replace(known, rounds=rounds, precision=precision), known.rounds / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="fedni", choices=["fedni", "fedsage"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--features", type=int, default=CC200_FEATURES)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32", "bfloat16"], help="of fedni")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device, method = torch.device(arguments.device), {"fedni": fedni, "fedsage": fedsage}[arguments.method]
    inputs = MadeUpCohort(arguments.features).inpainting_inputs()
    settings, more = settings_of(arguments.method, arguments.rounds, arguments.precision)
    watch = Stopwatch(device)
    run = Run(device=arguments.device, progress=watch.progress)
    result = method.train(inputs, settings, run)
    rate = result.counts["operations"] / watch.seconds / 1e9
    print(
        f"{arguments.method} on {arguments.device}, {arguments.threads} thread(s), d = {arguments.features}, "
        f"{arguments.precision}\n"
        f"{'matrix rate':>12} {'GFLOP/s':>8} {'of it':>6} {'TFLOP a repeat':>15} {'minutes for five repeats':>25}\n"
        f"{watch.gemm:12.0f} {rate:8.0f} {rate / watch.gemm:6.2f} {result.counts['operations'] * more / 1e12:15.1f} "
        f"{watch.seconds * more * REPEATS / 60:25.1f}"
    )


if __name__ == "__main__":
    main()
