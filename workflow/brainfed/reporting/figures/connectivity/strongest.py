"""The connections that differ most: on the brain if the regions have coordinates, else as a chord diagram."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from nilearn.plotting import (
    find_parcellation_cut_coords,
    find_probabilistic_atlas_cut_coords,
    plot_connectome,
)
from numpy.typing import NDArray

from brainfed.imaging.connectivity import to_matrices
from brainfed.imaging.scans.atlas import Atlas, load_atlas
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.reporting.figures.brain_sides import name_sides
from brainfed.reporting.figures.connectivity.group_connectivity import GroupConnectivity, networks
from brainfed.reporting.figures.style import COLD, FAINT, INK, RULE, WARM, WIDE, bare, placed_figure

STRONGEST = 40


def region_coordinates(parcellation: str | Path, table: str | Path | None) -> NDArray[np.float64]:
    """(R, 3) centre of every region in mm, in the order of the region table; NaN for one without voxels."""
    return _centres(load_atlas("atlas", parcellation, table))


def region_places(parcellation: str | Path, table: str | Path | None) -> dict[str, NDArray[np.float64]]:
    """Region -> (3,) its centre in mm; NaN for one without voxels."""
    atlas = load_atlas("atlas", parcellation, table)
    return dict(zip(atlas.regions, _centres(atlas), strict=True))


def _centres(atlas: Atlas | ProbabilisticAtlas) -> NDArray[np.float64]:
    import nibabel as nib

    if isinstance(atlas, ProbabilisticAtlas):
        maps = nib.Nifti1Image(atlas.maps, atlas.affine)
        return np.asarray(find_probabilistic_atlas_cut_coords(maps), dtype=np.float64)
    found, labels = find_parcellation_cut_coords(
        nib.Nifti1Image(atlas.labels, atlas.affine), return_label_names=True, label_hemisphere="left"
    )
    place = {int(label): centre for label, centre in zip(labels, found, strict=True)}
    return np.array([place.get(int(index), np.full(3, np.nan)) for index in atlas.indices], dtype=np.float64)


def brain_figure(
    contrasts: Sequence[GroupConnectivity], coordinates: NDArray[np.float64], count: int = STRONGEST
) -> Figure:
    """The `count` largest |d| on a glass brain, and the same regions' chord diagram beside it, one row a contrast.

    Args:
        contrasts: the comparisons.
        coordinates: (R, 3) mm, MNI.
        count: connections to draw.
    """
    figure = placed_figure(WIDE, 4.6 * len(contrasts))
    for groups, place in zip(contrasts, _rows(len(contrasts)), strict=True):
        _brain(figure, groups, coordinates, count, place)
    return figure


Place = Callable[[float, float, float, float], tuple[float, float, float, float]]
"""Maps left, bottom, width and height in a row to those in the figure."""


def _rows(count: int) -> list[Place]:
    """Places in the rows of a figure, from its top."""

    def inside(row: int) -> Place:
        return lambda left, bottom, width, height: (left, (bottom + count - 1 - row) / count, width, height / count)

    return [inside(row) for row in range(count)]


def _brain(
    figure: Figure, groups: GroupConnectivity, coordinates: NDArray[np.float64], count: int, inside: Place
) -> None:
    chosen = groups.strongest(count)
    row, column = groups.ends()
    seen = ~np.isnan(coordinates.sum(axis=1))
    chosen = chosen[seen[row[chosen]] & seen[column[chosen]]]
    kept = np.zeros_like(groups.effect)
    kept[chosen] = groups.effect[chosen]
    nodes = np.unique(np.concatenate([row[chosen], column[chosen]]))
    matrix = to_matrices(kept, diagonal=0.0)[np.ix_(nodes, nodes)]
    limit = float(np.abs(kept).max() or 1)
    for place, view in enumerate(("x", "z")):
        axes = figure.add_axes(inside(0.0, 0.54 - 0.5 * place, 0.42, 0.42))
        plot_connectome(
            matrix, coordinates[nodes], node_size=16, node_color=INK, edge_cmap="RdBu_r", edge_vmin=-limit,
            edge_vmax=limit, display_mode=view, figure=figure, axes=axes, annotate=False,
            edge_kwargs={"linewidth": 1.5}, colorbar=False,
        )  # fmt: skip
        name_sides(axes, view)
    _chords(figure.add_axes(inside(0.44, 0.01, 0.56, 0.98)), groups, chosen)


def chord_figure(contrasts: Sequence[GroupConnectivity], count: int = STRONGEST) -> Figure:
    """The `count` largest |d| as chords between regions on a circle, one circle a contrast."""
    figure = placed_figure(WIDE, 5.2 * len(contrasts))
    for groups, inside in zip(contrasts, _rows(len(contrasts)), strict=True):
        _chords(figure.add_axes(inside(0.18, 0.01, 0.64, 0.98)), groups, groups.strongest(count))
    return figure


def _chords(axes: Axes, groups: GroupConnectivity, chosen: NDArray[np.int64]) -> None:
    bare(axes)
    axes.set_aspect("equal")
    axes.set(xlim=(-1.62, 1.62), ylim=(-1.42, 1.42))
    regions = len(groups.regions)
    angle = np.pi / 2 - 2 * np.pi * (np.arange(regions) + 0.5) / regions
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    row, column = groups.ends()
    strongest = float(np.abs(groups.effect[chosen]).max() or 1)
    for position in chosen[::-1]:
        start, end = places[row[position]], places[column[position]]
        effect = float(groups.effect[position])
        axes.add_patch(
            PathPatch(
                Curve([tuple(start), _bend(start, end), tuple(end)], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]),
                facecolor="none", edgecolor=WARM if effect > 0 else COLD, alpha=0.75,
                linewidth=0.5 + 1.6 * abs(effect) / strongest,
            )
        )  # fmt: skip
    touched = np.unique(np.concatenate([row[chosen], column[chosen]]))
    axes.scatter(places[:, 0], places[:, 1], s=3, color=RULE, zorder=3)
    axes.scatter(places[touched, 0], places[touched, 1], s=11, color=INK, zorder=4)
    runs = networks(groups.regions)
    if runs:
        _network_arcs(axes, runs, angle)
    else:
        _region_labels(axes, groups.regions, touched, angle)
    axes.text(-1.6, -1.38, f"weaker in {groups.words.many[1]}", color=COLD, fontweight="bold", fontsize=8)
    axes.text(1.6, -1.38, f"stronger in {groups.words.many[1]}", color=WARM, fontweight="bold", fontsize=8, ha="right")


def _bend(start: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[float, float]:
    """Control point of a chord: near the middle of the circle for a long one, near its ends for a short one."""
    x, y = (start + end) / 2 * (1 - np.linalg.norm(start - end) / 2)
    return float(x), float(y)


def _network_arcs(axes: Axes, runs: list[tuple[str, int, int]], angle: NDArray[np.float64]) -> None:
    for name, start, end in runs:
        swept = np.linspace(angle[start], angle[end - 1], 40)
        axes.plot(1.05 * np.cos(swept), 1.05 * np.sin(swept), color=FAINT, linewidth=2, solid_capstyle="butt")
        middle = float(swept.mean())
        x, y = 1.12 * np.cos(middle), 1.12 * np.sin(middle)
        side = "center" if abs(x) < 0.25 else "left" if x > 0 else "right"
        axes.text(x, y, name, ha=side, va="center" if side != "center" else "bottom" if y > 0 else "top", fontsize=8)


def _region_labels(
    axes: Axes, regions: tuple[str, ...], touched: NDArray[np.int64], angle: NDArray[np.float64]
) -> None:
    """Names of the connected regions, moved along the circle until they do not overlap."""
    spread = _kept_apart(angle[touched], 0.085)
    for region, where in zip(touched, spread, strict=True):
        x, y = np.cos(where), np.sin(where)
        axes.plot([1.02 * np.cos(angle[region]), 1.1 * x], [1.02 * np.sin(angle[region]), 1.1 * y], color=RULE, lw=0.5)
        turn = np.degrees(where) % 360
        flip = 90 < turn < 270
        axes.text(
            1.12 * x, 1.12 * y, regions[region], rotation=turn + 180 if flip else turn, rotation_mode="anchor",
            ha="right" if flip else "left", va="center", fontsize=6.5,
        )  # fmt: skip


def _kept_apart(angle: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Descending angles, moved as little as possible until neighbours are `least` radians apart."""
    if len(angle) * least >= 2 * np.pi:
        least = 2 * np.pi / len(angle)
    moved = angle.copy()
    for _ in range(200):
        gap = moved[:-1] - moved[1:]
        push = np.maximum(least - gap, 0) / 2
        if not push.any():
            break
        moved[:-1] += push
        moved[1:] -= push
    return moved
