"""The table of one axis: a row for each size and step as it is measured, the exponents, and what breaks first."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from scale.arrays import ARRAYS, first_to_fill, mib
from scale.cohort import write_cohort
from scale.growth import COSTS, draw, power, upper_half
from scale.process import Costs, apart
from scale.steps import STEPS
from scale.work import Axis, Changed, Work

MEMORY = 16 * 1024
"""MiB of the machine that is asked about."""
HEADER = ("step", "seconds", "CPU seconds", "peak MiB", "expected MiB", "")


def follow(
    axis: Axis, sizes: Sequence[int], changed: Changed, rate: float, place: Path | None, plots: Path | None
) -> None:
    """Measure an axis and print what is found.

    Args:
        axis: it.
        sizes: along the axis.
        changed: numbers of the work that replace the axis's own.
        rate: GFLOP of a square product in a CPU second.
        place: folder for the made-up files; None: the system's.
        plots: folder for the figure; None: no figure.
    """
    print(f"\n{row([axis.name, *HEADER])}")
    print(row(["---:", "---", *["---:"] * 4, "---"]), flush=True)
    steps: dict[str, dict[int, Costs]] = {step: {} for step in axis.steps}
    for size in sizes:
        for step, found in measured(axis, size, changed, place).items():
            steps[step][size] = found
            print(printed(size, step, found, axis.work(size, changed), rate), flush=True)
    if len(sizes) > 1:
        print(f"\nExponents from {upper_half(sizes)[0]:,} {axis.name} on:")
        for step, rows in steps.items():
            print(f"- {step}: {', '.join(f'{cost} {power(rows, cost).exponent:.2f}' for cost in COSTS)}")
        if plots:
            draw(plots / f"scale-{axis.name}.svg", axis.name, steps)
    size, step, largest, share = first_to_fill(axis, changed, MEMORY)
    print(f"\n{MEMORY // 1024} GiB: filled first in {step}, at {size:,} {axis.name}; {share:.0%} are {largest}.")


def measured(axis: Axis, size: int, changed: Changed, place: Path | None) -> dict[str, Costs]:
    """Step -> costs of its process."""
    work = axis.work(size, changed)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        write_cohort(Path(folder), work)
        for step in axis.prepared:
            apart(STEPS[step], Path(folder), work)
        return {step: apart(STEPS[step], Path(folder), work) for step in axis.steps}


def row(cells: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def printed(size: int, step: str, found: Mapping[str, float], work: Work, rate: float) -> str:
    """One row of the table."""
    costs = [f"{found[name]:.3g}" for name in ("seconds", "CPU seconds")]
    expected = found["MiB before"] + mib(ARRAYS[step](work))
    return row([f"{size:,}", step, *costs, f"{found['MiB']:,.0f}", f"{expected:,.0f}", _further(found, rate)])


def _further(found: Mapping[str, float], rate: float) -> str:
    """What one step alone counts."""
    if "edges" in found:
        return f"{found['edges']:,.0f} edges"
    if "GFLOP" in found:
        return f"{found['GFLOP']:,.0f} GFLOP, share {found['GFLOP'] / found['training CPU seconds'] / rate:.2f}"
    return ""


def matrix_rate(threads: int, size: int = 2048) -> float:
    """GFLOP of a square product in a CPU second."""
    torch.set_num_threads(threads)
    left, right = (torch.randn(size, size) for _ in range(2))
    seconds = []
    for _ in range(4):
        start = time.process_time()
        torch.mm(left, right)
        seconds.append(time.process_time() - start)
    return 2 * size**3 / min(seconds) / 1e9
