"""Exponents of cost along an axis, and their figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

COSTS = {"CPU seconds": "CPU seconds", "MiB": "peak memory, MiB"}
"""Name -> label."""
MARKERS = "os^"

Rows = Mapping[int, Mapping[str, float]]
"""Size -> costs of its process, by name."""


class Power(NamedTuple):
    """cost = before + factor * size^exponent."""

    before: float
    factor: float
    exponent: float


def upper_half(sizes: Sequence[int]) -> list[int]:
    """The larger half of the sizes, the middle one among them; at least two."""
    return sorted(sizes)[min(len(sizes) // 2, len(sizes) - 2) :]


def power(rows: Rows, cost: str) -> Power:
    """Least squares of log (cost - cost before the work) over log size in the upper half of the sizes."""
    sizes = upper_half([*rows])
    before = [rows[size][f"{cost} before"] for size in sizes]
    beyond = np.array([rows[size][cost] for size in sizes]) - before
    exponent, logarithm = np.polyfit(np.log(sizes), np.log(beyond), 1)
    return Power(float(np.mean(before)), float(np.exp(logarithm)), float(exponent))


def draw(path: Path, axis: str, steps: Mapping[str, Rows]) -> None:
    """CPU seconds and memory of every step over sizes, both axes logarithmic, with the fitted lines."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": axis}
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, (cost, name) in zip(figure.subplots(1, 2), COSTS.items(), strict=True):
        for (step, rows), marker in zip(steps.items(), MARKERS, strict=False):
            sizes, fitted = [*rows], upper_half([*rows])
            before, factor, exponent = power(rows, cost)
            label = f"{step}: exponent {exponent:.2f}"
            (line,) = axes.plot(sizes, [row[cost] for row in rows.values()], marker, markersize=5, label=label)
            between = np.geomspace(fitted[0], fitted[-1])
            axes.plot(between, before + factor * between**exponent, color=line.get_color(), linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel=axis, ylabel=name)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        low, high = axes.get_ylim()
        axes.set_ylim(low / 1.3, high * 1.3)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=8)
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
