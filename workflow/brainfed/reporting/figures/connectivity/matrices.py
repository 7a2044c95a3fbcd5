"""Connectivity of two groups (patients and controls): mean matrices, their difference, the spread of effect sizes."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats
from scipy.cluster.hierarchy import leaves_list, linkage

from brainfed.imaging.connectivity import to_matrices
from brainfed.reporting.figures.connectivity.group_connectivity import GroupConnectivity, networks
from brainfed.reporting.figures.style import COLD, FAINT, HALF, INK, WARM, WIDE, new_figure, placed_figure
from brainfed.reporting.rounding import significant_digits

ABOVE, BELOW, GAP = 0.35, 0.85, 0.14
"""Inches over and under the matrices, and between them."""


def means_figure(contrasts: Sequence[GroupConnectivity]) -> Figure:
    """Mean correlation of two groups and their difference on its own scale, one row a contrast."""
    left = 1.05 if networks(contrasts[0].regions) else 0.2
    side = (WIDE - left - 2 * GAP - 0.15) / 3
    height = (ABOVE + side + BELOW) * len(contrasts)
    figure = placed_figure(WIDE, height)
    order = drawing_order(contrasts[0])
    for row, groups in enumerate(reversed(contrasts)):
        bottom = BELOW + row * (ABOVE + side + BELOW)
        shared = _limit(np.concatenate([groups.patients, groups.controls]))
        difference = groups.patients - groups.controls
        first, second = (_capitalised(groups.words.many[code]) for code in (1, 0))
        panels = (
            (f"{first} (n = {groups.counts[0]})", groups.patients, shared, "mean correlation"),
            (f"{second} (n = {groups.counts[1]})", groups.controls, shared, "mean correlation"),
            (f"{first} minus {groups.words.many[0]}", difference, _limit(difference), "difference of means"),
        )
        for number, (title, values, limit, unit) in enumerate(panels):
            place = ((left + number * (side + GAP)) / WIDE, bottom / height, side / WIDE, side / height)
            axes = figure.add_axes(place)
            image = axes.imshow(
                to_matrices(values, diagonal=np.nan)[np.ix_(order, order)], cmap="RdBu_r", vmin=-limit, vmax=limit,
                interpolation="nearest",
            )  # fmt: skip
            axes.set_title(title)
            _network_ticks(axes, groups.regions, names=number == 0)
            bar = figure.colorbar(image, cax=axes.inset_axes((0.15, -0.14, 0.7, 0.03)), orientation="horizontal")
            bar.outline.set_visible(False)
            bar.set_label(unit)
            bar.set_ticks(
                [-limit, 0, limit], labels=[f"\u2212{significant_digits(limit, 2)}", "0", significant_digits(limit, 2)]
            )
    return figure


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]


def drawing_order(groups: GroupConnectivity) -> NDArray[np.int64]:
    """(R,) the order of the atlas if region names have networks; else correlated regions are adjacent.

    The clustering is of the mean over patients and controls alike (average linkage of 1 - r).
    """
    if networks(groups.regions) or len(groups.regions) < 3:
        return np.arange(len(groups.regions))
    overall = np.average([groups.patients, groups.controls], axis=0, weights=groups.counts)
    return np.asarray(leaves_list(linkage(1 - overall, "average", optimal_ordering=True)), dtype=np.int64)


def _limit(values: NDArray[np.float64]) -> float:
    """A round symmetric limit for nearly all values."""
    return max(float(f"{np.quantile(np.abs(values), 0.995):.1g}"), 0.01)


def _network_ticks(axes: Axes, regions: tuple[str, ...], *, names: bool) -> None:
    runs = networks(regions)
    axes.tick_params(length=0)
    axes.set_xticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if not runs:
        axes.set_yticks([])
        axes.set_xlabel(f"{len(regions)} regions, clustered by their overall mean", fontsize=7.5)
        return
    for _, start, _ in runs[1:]:
        axes.axhline(start - 0.5, color="white", linewidth=0.8)
        axes.axvline(start - 0.5, color="white", linewidth=0.8)
    axes.set_yticks([(start + end - 1) / 2 for _, start, end in runs], [name if names else "" for name, _, _ in runs])
    axes.tick_params(axis="y", labelsize=7)


def effects_figure(contrasts: Sequence[GroupConnectivity]) -> Figure:
    """Histogram of Cohen's d over connections, against its distribution for equal groups."""
    figure = new_figure(HALF, 2.9 * len(contrasts))
    for row, groups in enumerate(contrasts):
        _effects(figure.add_subplot(len(contrasts), 1, row + 1), groups)
    return figure


def _effects(axes: Axes, groups: GroupConnectivity) -> None:
    reach = 1.05 * float(np.abs(groups.effect).max() or 1)
    edges = np.linspace(-reach, reach, 61)
    axes.hist(groups.effect, list(edges), color="#9aa7c7", edgecolor="white", linewidth=0.3)
    grid = np.linspace(-reach, reach, 400)
    expected = stats.norm.pdf(grid, scale=groups.chance_sd) * len(groups.effect) * (edges[1] - edges[0])
    axes.plot(grid, expected, color=INK)
    axes.margins(y=0.22)
    top = int(np.argmax(expected))
    axes.annotate(
        "expected if the\ngroups did not differ", (grid[top + 45], expected[top + 45]), (28, 14),
        textcoords="offset points", fontsize=7.5, arrowprops={"arrowstyle": "-", "color": FAINT, "lw": 0.7},
    )  # fmt: skip
    axes.annotate(f"weaker in {groups.words.many[1]}", (0.03, 0.93), xycoords="axes fraction", color=COLD, fontsize=7.5)
    axes.annotate(
        f"stronger in {groups.words.many[1]}", (1, 0.93), xycoords="axes fraction", ha="right", color=WARM, fontsize=7.5
    )
    axes.set_xlabel("effect size of a connection (Cohen's d)")
    axes.set_ylabel(f"connections (of {len(groups.effect):,})")
