"""Seconds of the same work by other libraries and by ours, in one run on one machine.

    python benchmarks/peers.py [--threads 1] [--only ridge tangent ...] [--quick]

Both sides of a row get the same data from a fixed seed, the same initial weights and the same number of threads. Noise
on weights and dropout are off. Their results must agree to the tolerance before either is timed; else the row is left
out and the script ends with an error. Seconds are those of the wall, the least of three runs after one that warms up,
both sides in turn. `in float64` is the largest difference where both sides compute in float64, of rows that are timed
in float32. MiB are what a run adds to the memory of the process at its peak. Flower's engine needs Ray, which `pip
install "flwr[simulation]==1.41.0"` installs; without it its rows give the reason. `--quick` takes tiny sizes, to try
the script. `--only` takes some of: fedmlp fedgcn gcfl fedsage tangent ridge ridge-inner extraction fedmlp-flower
fedgcn-flower.
"""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec

import torch
from matrix_rate import Stopwatch
from peers.classifiers import fedgcn, fedmlp
from peers.comparison import Comparison, DifferentResultsError, LeftOutError
from peers.extraction import extraction
from peers.fedsage import fedsage
from peers.gcfl import gcfl
from peers.ridge import inner_folds, leave_one_out
from peers.tangent import tangent
from threadpoolctl import threadpool_limits


def by_flower(quick: bool, threads: int, *, graph: bool) -> Comparison:
    """Rounds in Flower's simulation engine, which runs its clients on Ray alone."""
    if missing := [name for name in ("flwr", "ray") if find_spec(name) is None]:
        raise LeftOutError(f"Flower's simulation engine needs {' and '.join(missing)}, which is not installed")
    from peers.flower import flower

    return flower(quick, threads, graph=graph)


COMPARISONS: Mapping[str, Callable[[bool, int], Comparison]] = {
    "fedmlp": lambda quick, _: fedmlp(quick),
    "fedgcn": lambda quick, _: fedgcn(quick),
    "gcfl": lambda quick, _: gcfl(quick),
    "fedsage": lambda quick, _: fedsage(quick),
    "tangent": tangent,
    "ridge": lambda quick, _: leave_one_out(quick),
    "ridge-inner": lambda quick, _: inner_folds(quick),
    "extraction": lambda quick, _: extraction(quick),
    "fedmlp-flower": partial(by_flower, graph=False),
    "fedgcn-flower": partial(by_flower, graph=True),
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


def mib(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0f}"


def row_of(found: Comparison) -> str:
    exact = "" if found.exact is None else f"{found.exact:.0e}"
    return row((
        found.name, f"{found.peer}; {found.what}", f"{found.theirs:.3g}", f"{found.ours:.3g}", f"{found.ratio:.1f}",
        f"{found.difference:.0e}", f"{found.tolerance:.0e}", exact, mib(found.their_peak), mib(found.our_peak),
    ))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=[*COMPARISONS], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
    different = []
    with threadpool_limits(arguments.threads):
        print(f"{machine(arguments.threads)}\n")
        print(row((*HEADER, *MEMORY)))
        print(row(("---", "---", *["---:"] * 8)), flush=True)
        for name in arguments.only:
            try:
                print(row_of(COMPARISONS[name](arguments.quick, arguments.threads)), flush=True)
            except LeftOutError as error:
                print(row((name, f"left out: {error}", *[""] * 8)), flush=True)
            except DifferentResultsError as error:
                different.append(str(error))
    if different:
        sys.exit(f"No time where results differ: {'; '.join(different)}.")


if __name__ == "__main__":
    main()
