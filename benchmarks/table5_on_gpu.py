"""How long one device trains everything of Table V that trains by gradient: five repeats of five folds a method.

    python benchmarks/table5_on_gpu.py [--device cuda] [--threads 8] [--precision tf32]
    python benchmarks/table5_on_gpu.py --side-by-side --threads 3
    python benchmarks/table5_on_gpu.py --device cpu --features 500 --rounds 2     (a trial of the script)

Random numbers of ABIDE's size (1035 subjects, 19,900 connections, five institutions), stored as float16, 41 MB.
Every repeat has its own institutions, folds and graph, as in the workflow; FedNI and FedSage+ train their generators,
fuse, and train on the fused graphs. Counted as work are the products with an axis of d, as time all of training with
its set-up, but not the making of cohorts, graphs and fused graphs. Weight noise is drawn on the host, on so many
threads.

`--side-by-side` gives every repeat a process of its own on the one device, like jobs that share a GPU
(BRAINFED_JOBS_PER_GPU), and prints the seconds of the wall from when all are warm to the end of the last, fusing among
them: steps are short beside what Python takes to start them, so that one process leaves the device idle most of the
time.
"""

import argparse
import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from queue import Empty
from typing import Any

import torch
from made_up_cohort import CC200_FEATURES, MadeUpCohort
from matrix_rate import Stopwatch, clock_of, synchronise

from brainfed.inpainting import FusingSettings, fuse
from brainfed.methods import METHODS, Inpainter, Method, inpainter_of
from brainfed.runtime import ArrayFile, resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs

TRAINED = ("localgcn", "centralgcn", "fedmlp", "fedgcn", "fedsage-plus", "fedni")
REPEATS = 5
Ended = tuple[int, float, float, int]
"""Repeat, when it started and ended, operations."""


def settings_of(kind: type, precision: str, rounds: int) -> Any:
    """A method's (or a generator's) own settings, cut to some rounds where asked, in a precision where it has one."""
    settings = kind()
    changed = {"precision": precision} if hasattr(settings, "precision") else {}
    if rounds and hasattr(settings, "curve_every"):
        return replace(settings, epochs=rounds * settings.curve_every, **changed)
    return replace(settings, **({"rounds": rounds} if rounds else {}), **changed)


class Table:
    """Seconds and operations by what was trained."""

    def __init__(self, run: Run, precision: str, rounds: int) -> None:
        self.run, self.precision, self.rounds = run, precision, rounds
        self.clock = clock_of(torch.device(run.device))
        self.seconds: dict[str, float] = {}
        self.operations: dict[str, int] = {}

    def train(self, name: str, work: str, start: Callable[[], Any]) -> Any:
        """Call `start` and add its time and its count `work` to the row `name`."""
        device = torch.device(self.run.device)
        synchronise(device)
        began = self.clock()
        result = start()
        synchronise(device)
        self.seconds[name] = self.seconds.get(name, 0.0) + self.clock() - began
        self.operations[name] = self.operations.get(name, 0) + result.counts[work]
        return result

    def repeat(self, cohort: MadeUpCohort, names: Sequence[str] = TRAINED) -> None:
        """Train the methods on one split."""
        plain = cohort.method_inputs()
        for name in names:
            method = METHODS[name]
            inpainter = inpainter_of(method)
            inputs = plain if inpainter is None else self._mended(method, inpainter, cohort, plain)
            train, settings = resolve(method.entry), settings_of(method.settings, self.precision, self.rounds)
            self.train(name, "first_layer_operations", lambda: train(inputs, settings, self.run))  # noqa: B023

    def _mended(self, method: Method, inpainter: Inpainter, cohort: MadeUpCohort, plain: MethodInputs) -> MethodInputs:
        """The cohort with generated nodes, by a generator that is trained first."""
        inputs, settings = cohort.inpainting_inputs(), settings_of(inpainter.settings, self.precision, self.rounds)
        train, load = resolve(inpainter.train), resolve(inpainter.load)
        trained = self.train(f"{method.name}: generator", "operations", lambda: train(inputs, settings, self.run))
        generator = load(inputs, settings, ArrayFile(trained.arrays, {}), self.run)
        most = getattr(settings, inpainter.max_generated) if inpainter.max_generated else inputs.graph_settings.k
        fused = fuse(inputs, generator, FusingSettings(**method.options.get("fused", {})), most)
        return replace(plain, graphs=(), fused=(fused,))


def measure(arguments: argparse.Namespace, run: Run) -> None:
    """One after the other, with their work as a share of the device's matrix rate."""
    watch = Stopwatch(torch.device(arguments.device))
    table = Table(run, arguments.precision, arguments.rounds)
    Table(run, arguments.precision, 1).repeat(MadeUpCohort(arguments.features, stored="float16"))
    for repeat in range(arguments.repeats):
        table.repeat(MadeUpCohort(arguments.features, repeat=repeat, stored="float16"))
        watch.rates.append(watch.rate())
    print(f"float32 GEMM {watch.gemm:.0f} GFLOP/s; {arguments.repeats} repeats of 5 folds, after a round to warm up")
    print(f"{'trained':24} {'seconds':>8} {'TFLOP':>8} {'GFLOP/s':>8} {'of GEMM':>8}")
    table.seconds["together"] = sum(table.seconds.values())
    table.operations["together"] = sum(table.operations.values())
    for name, seconds in table.seconds.items():
        work = table.operations[name] / 1e9
        print(f"{name:24} {seconds:8.2f} {work / 1e3:8.2f} {work / seconds:8.0f} {work / seconds / watch.gemm:8.2f}")


def train_repeat(arguments: argparse.Namespace, repeat: int, warm: Barrier, ended: "Queue[Ended]") -> None:
    """All methods of one repeat, in this process, from when all processes are warm."""
    torch.set_num_threads(arguments.threads)
    run = Run(device=arguments.device, progress=lambda *_, **__: None)
    cohort = MadeUpCohort(arguments.features, repeat=repeat, stored="float16")
    Table(run, arguments.precision, 1).repeat(cohort)
    print(f"repeat {repeat} is warm", flush=True)
    warm.wait()
    table, start = Table(run, arguments.precision, arguments.rounds), time.monotonic()
    for name in TRAINED:
        table.repeat(cohort, [name])
        print(f"repeat {repeat}: {name} ended after {time.monotonic() - start:.1f} s", flush=True)
    ended.put((repeat, start, time.monotonic(), sum(table.operations.values())))


def measure_side_by_side(arguments: argparse.Namespace) -> None:
    """All repeats at once, each in a process of its own."""
    # NumPy's own threads, in the processes that start now.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(arguments.threads))
    context = multiprocessing.get_context("spawn")
    warm, ended = context.Barrier(arguments.repeats), context.Queue()
    jobs = [
        context.Process(target=train_repeat, args=(arguments, repeat, warm, ended), daemon=True)
        for repeat in range(arguments.repeats)
    ]
    for job in jobs:
        job.start()
    rows: list[Ended] = []
    while len(rows) < len(jobs):
        try:
            rows.append(ended.get(timeout=1))
        except Empty:
            if any(job.exitcode for job in jobs):
                raise SystemExit("a process failed; its last words are above") from None
    start, end = min(row[1] for row in rows), max(row[2] for row in rows)
    print(f"{len(rows)} repeats of 5 folds, a process each")
    print(f"{'repeat':24} {'seconds':>8} {'TFLOP':>8}")
    for repeat, began, finished, work in sorted(rows):
        print(f"{repeat:<24} {finished - began:8.2f} {work / 1e12:8.2f}")
    work = sum(row[3] for row in rows) / 1e9
    print(f"{'together':24} {end - start:8.2f} {work / 1e3:8.2f}   {work / (end - start):.0f} GFLOP/s")


def options(description: str | None) -> argparse.ArgumentParser:
    """The options of the training of Table V on a device."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--features", type=int, default=CC200_FEATURES)
    return parser


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rounds", type=int, default=0, help="of every training; 0: each method's own number")
    parser.add_argument("--side-by-side", action="store_true", help="a process a repeat, all at once")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(arguments.threads)
    run = Run(device=arguments.device, progress=lambda *_, **__: None)
    name = torch.cuda.get_device_name() if run.device.startswith("cuda") else run.device
    print(f"{name}, {arguments.threads} threads, d = {arguments.features}, {arguments.precision} products")
    if arguments.side_by_side:
        measure_side_by_side(arguments)
    else:
        measure(arguments, run)


if __name__ == "__main__":
    main()
