"""Seconds of the same work by other libraries and by ours, in one run on one machine.

    python benchmarks/peers.py [--threads 1] [--only ridge tangent ...] [--quick]

Both sides of a row get the same data from a fixed seed, the same initial weights and the same number of threads;
noise and dropout are off. Their results must agree to the tolerance before either is timed; else the script ends with
an error. Seconds are those of the wall, the least of three runs after one that warms up, both sides in turn. `in float64`
is the largest difference where both sides compute in float64, of rows that are timed in float32. MiB are what a
run adds to the peak of the process. Flower's engine needs Ray (`pip install "flwr[simulation]"`) and is left out
without it. `--quick` takes tiny sizes, to try the script.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping

import torch
from matrix_rate import Stopwatch
from peers.comparison import Comparison, DifferentResults
from peers.extraction import extraction
from peers.ridge import inner_folds, leave_one_out
from peers.tangent import tangent
from threadpoolctl import threadpool_limits

COMPARISONS: Mapping[str, Callable[[bool, int], Comparison]] = {
    "tangent": tangent,
    "ridge": lambda quick, _: leave_one_out(quick),
    "ridge-inner": lambda quick, _: inner_folds(quick),
    "extraction": lambda quick, _: extraction(quick),
}
HEADER = ("comparison", "peer", "peer s", "ours s", "times as fast", "difference", "tolerance", "in float64")
MEMORY = ("peer MiB", "ours MiB")


def machine(threads: int) -> str:
    """Cores, threads and matrix rates."""
    rates = [Stopwatch(torch.device("cpu"), dtype) for dtype in (torch.float32, torch.float64)]
    single, double = (max(watch.rate() for _ in range(3)) for watch in rates)
    return (
        f"{os.cpu_count()} cores, {threads} thread(s), square product of 2,048 at {single:.0f} GFLOP/s "
        f"({double:.0f} in float64)"
    )


def row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def row_of(found: Comparison) -> str:
    exact = "" if found.exact is None else f"{found.exact:.0e}"
    return row((
        found.name, f"{found.peer}; {found.what}", f"{found.theirs:.3g}", f"{found.ours:.3g}", f"{found.ratio:.1f}",
        f"{found.difference:.0e}", f"{found.tolerance:.0e}", exact, f"{found.their_peak:.0f}", f"{found.our_peak:.0f}",
    ))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=[*COMPARISONS], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with threadpool_limits(arguments.threads):
        print(f"{machine(arguments.threads)}\n")
        print(row((*HEADER, *MEMORY)))
        print(row(("---", "---", *["---:"] * 8)), flush=True)
        for name in arguments.only:
            try:
                print(row_of(COMPARISONS[name](arguments.quick, arguments.threads)), flush=True)
            except DifferentResults as error:
                sys.exit(f"{error}.")


if __name__ == "__main__":
    main()
