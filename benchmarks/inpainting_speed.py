"""What share of the machine's matrix rate FedNI's inpainting reaches.

    python benchmarks/inpainting_speed.py [--threads 1] [--device cpu] [--features 19900] [--rounds 2]
        [--precision bfloat16]

Trains generator and discriminator of five institutions on correlations of a made-up cohort of ABIDE's size
(1035 subjects) on its own population graph, and prints their rate beside that of a large square float32
product, measured in the same run, before and after. Only products with an axis of d are counted as work, all time is
counted as time: masks, Adam, the narrow layers, weight noise, averaging. The last column is what five
repeats of thirty rounds would take at that rate, one after the other.
"""

import argparse
import time

import numpy as np
import torch
from matrix_rate import matrix_rate, synchronise

from brainfed.graphs.graph import Graph
from brainfed.graphs.population import build_graph
from brainfed.graphs.settings import GraphSettings
from brainfed.inpainting import fedni
from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.runtime.run import Run
from brainfed.runtime.streams import Streams

SUBJECTS, INSTITUTIONS, REPEATS, ROUNDS = 1035, 5, 5, 30


def made_up_inputs(features: int) -> InpaintingInputs:
    """Correlated features in (-1, 1), ages and sexes at random, institutions in turn."""
    random = np.random.default_rng(0)
    sources = random.standard_normal((SUBJECTS, 30), dtype=np.float32)
    rows = np.tanh(sources @ random.standard_normal((30, features), dtype=np.float32) / 15)
    institution = np.arange(SUBJECTS) % INSTITUTIONS
    sex, age = random.integers(0, 2, SUBJECTS), random.uniform(7, 40, SUBJECTS)
    settings, streams = GraphSettings(), Streams(0)
    graph = build_graph(
        rows, institution, site=institution, sex=sex, age=age, settings=settings, streams=streams
    )  # fmt: skip
    return InpaintingInputs(
        subjects=tuple(f"s{number:04d}" for number in range(SUBJECTS)),
        institutions=tuple(f"institution-{number}" for number in range(INSTITUTIONS)),
        institution=institution,
        features=rows,
        graph=Graph(graph.row, graph.column, graph.weight, SUBJECTS),
        graph_settings=settings,
        site=institution,
        sex=sex,
        age=age,
        fitted=np.ones(SUBJECTS, dtype=bool),
        part="all",
        streams=streams,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--features", type=int, default=19_900)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    inputs = made_up_inputs(arguments.features)
    run = Run(device=arguments.device, progress=lambda *_: None)
    fedni.train(inputs, InpaintingSettings(rounds=1, local_epochs=1, precision=arguments.precision), run)
    before = matrix_rate(device)
    synchronise(device)
    start = time.perf_counter()
    result = fedni.train(inputs, InpaintingSettings(rounds=arguments.rounds, precision=arguments.precision), run)
    synchronise(device)
    seconds = time.perf_counter() - start
    gemm = (before + matrix_rate(device)) / 2
    rate = result.counts["operations"] / seconds / 1e9
    whole = seconds / arguments.rounds * ROUNDS * REPEATS
    print(
        f"{arguments.device}, {arguments.threads} thread(s), d = {arguments.features}, {arguments.precision}\n"
        f"{'matrix rate':>12} {'GFLOP/s':>8} {'of it':>6} {'TFLOP a repeat':>15} {'minutes for five repeats':>25}\n"
        f"{gemm:12.0f} {rate:8.0f} {rate / gemm:6.2f} "
        f"{result.counts['operations'] / arguments.rounds * ROUNDS / 1e12:15.1f} {whole / 60:25.1f}"
    )


if __name__ == "__main__":
    main()
