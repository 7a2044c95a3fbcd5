"""Connectivity of two groups: mean matrices, and the connections that differ most, on the brain or as chords."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from nilearn.plotting import find_parcellation_cut_coords, find_probabilistic_atlas_cut_coords, plot_connectome
from scipy.cluster.hierarchy import leaves_list, linkage

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.imaging import to_matrices
from brainfed.imaging.scans import Atlas, ProbabilisticAtlas, load_atlas
from brainfed.imaging.series import load_runs, load_series
from brainfed.reporting import (
    COLD,
    FAINT,
    INK,
    RULE,
    WARM,
    GroupConnectivity,
    compare_groups,
    joined,
    labelled_subjects,
    networks,
    significant_digits,
)
from brainfed.reporting.charts import effects_chart, save_chart
from brainfed.reporting.figures._style import WIDE, drawing, name_sides, placed_figure, save_svg
from brainfed.runtime import Float64, IntArray, canonical_json, write_text

# Connectivity of two groups (patients and controls): mean matrices and their difference.

ABOVE, BELOW, GAP = 0.35, 0.85, 0.14
"""Inches over and under the matrices, and between them."""


def means_figure(contrasts: Sequence[GroupConnectivity]) -> Figure:
    """Mean correlation of two groups and their difference on its own scale, one row a contrast."""
    left = 1.05 if networks(contrasts[0].regions) else 0.2
    side = (WIDE - left - 2 * GAP - 0.15) / 3
    height = (ABOVE + side + BELOW) * len(contrasts)
    figure = placed_figure(height)
    order = drawing_order(contrasts[0])
    for row, groups in enumerate(reversed(contrasts)):
        bottom = BELOW + row * (ABOVE + side + BELOW)
        shared = _limit(np.concatenate([groups.patients, groups.controls]))
        difference = groups.patients - groups.controls
        nouns = groups.words.many
        first, second = (noun[:1].upper() + noun[1:] for noun in (nouns[1], nouns[0]))
        panels = (
            (f"{first} (n = {groups.counts[0]})", groups.patients, shared, "mean correlation"),
            (f"{second} (n = {groups.counts[1]})", groups.controls, shared, "mean correlation"),
            (f"{first} minus {nouns[0]}", difference, _limit(difference), "difference of means"),
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


def drawing_order(groups: GroupConnectivity) -> IntArray:
    """(R,) the order of the atlas if region names have networks; else correlated regions are adjacent.

    The clustering is of the mean over patients and controls alike (average linkage of 1 - r).
    """
    if networks(groups.regions) or len(groups.regions) < 3:
        return np.arange(len(groups.regions))
    overall = np.average([groups.patients, groups.controls], axis=0, weights=groups.counts)
    return np.asarray(leaves_list(linkage(1 - overall, "average", optimal_ordering=True)), dtype=np.int64)


def _limit(values: Float64) -> float:
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


# The connections that differ most: on the brain if the regions have coordinates, else as a chord diagram.

Place = Callable[[float, float, float, float], tuple[float, float, float, float]]
"""Maps left, bottom, width and height in a row to those in the figure."""
STRONGEST = 40


def region_coordinates(parcellation: str | Path, table: str | Path | None) -> Float64:
    """(R, 3) centre of every region in mm, in the order of the region table; NaN for one without voxels."""
    return _centres(load_atlas("atlas", parcellation, table))


def region_places(parcellation: str | Path, table: str | Path | None) -> dict[str, Float64]:
    """Region -> (3,) its centre in mm; NaN for one without voxels."""
    atlas = load_atlas("atlas", parcellation, table)
    return dict(zip(atlas.regions, _centres(atlas), strict=True))


def _centres(atlas: Atlas | ProbabilisticAtlas) -> Float64:
    import nibabel as nib

    if isinstance(atlas, ProbabilisticAtlas):
        maps = nib.Nifti1Image(atlas.maps, atlas.affine)
        return np.asarray(find_probabilistic_atlas_cut_coords(maps), dtype=np.float64)
    centres, labels = find_parcellation_cut_coords(
        nib.Nifti1Image(atlas.labels, atlas.affine), return_label_names=True, label_hemisphere="left"
    )
    place = {int(label): centre for label, centre in zip(labels, centres, strict=True)}
    return np.array([place.get(int(index), np.full(3, np.nan)) for index in atlas.indices], dtype=np.float64)


def brain_figure(contrasts: Sequence[GroupConnectivity], coordinates: Float64, count: int = STRONGEST) -> Figure:
    """The `count` largest |d| on a glass brain, and the same regions' chord diagram beside it, one row a contrast.

    `coordinates`: (R, 3) mm, MNI.
    """
    figure = placed_figure(4.6 * len(contrasts))
    for groups, inside in zip(contrasts, _rows(len(contrasts)), strict=True):
        _brain_of_strongest(figure, inside, groups, coordinates, count)
    return figure


def _rows(count: int) -> list[Place]:
    """Places in the rows of a figure, from its top."""

    def inside(row: int) -> Place:
        return lambda left, bottom, width, height: (left, (bottom + count - 1 - row) / count, width, height / count)

    return [inside(row) for row in range(count)]


def _brain_of_strongest(
    figure: Figure, inside: Place, groups: GroupConnectivity, coordinates: Float64, count: int
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
    figure = placed_figure(5.2 * len(contrasts))
    for groups, inside in zip(contrasts, _rows(len(contrasts)), strict=True):
        _chords(figure.add_axes(inside(0.18, 0.01, 0.64, 0.98)), groups, groups.strongest(count))
    return figure


def _chords(axes: Axes, groups: GroupConnectivity, chosen: IntArray) -> None:
    axes.set_axis_off()
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


def _bend(start: Float64, end: Float64) -> tuple[float, float]:
    """Control point of a chord: near the middle of the circle for a long one, near its ends for a short one."""
    x, y = (start + end) / 2 * (1 - np.linalg.norm(start - end) / 2)
    return float(x), float(y)


def _network_arcs(axes: Axes, runs: list[tuple[str, int, int]], angle: Float64) -> None:
    for name, start, end in runs:
        swept = np.linspace(angle[start], angle[end - 1], 40)
        axes.plot(1.05 * np.cos(swept), 1.05 * np.sin(swept), color=FAINT, linewidth=2, solid_capstyle="butt")
        middle = float(swept.mean())
        x, y = 1.12 * np.cos(middle), 1.12 * np.sin(middle)
        side = "center" if abs(x) < 0.25 else "left" if x > 0 else "right"
        axes.text(x, y, name, ha=side, va="center" if side != "center" else "bottom" if y > 0 else "top", fontsize=8)


def _region_labels(axes: Axes, regions: tuple[str, ...], touched: IntArray, angle: Float64) -> None:
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


def _kept_apart(angle: Float64, least: float) -> Float64:
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


# Draw the differences in connectivity between patients and controls, or between each class and all others.


def draw_connectivity(
    series: Sequence[str],
    participants: str,
    included: str,
    atlas: tuple[str, str | None] | None,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
    *,
    by_run: bool = False,
) -> None:
    """Write the SVGs called means, effects and strongest, and the numbers called summary.

    Args:
        atlas: parcellation image and region table (None: named by number), where the regions have a place; else a
            chord diagram is drawn.
        outputs: figure -> path.
        words: names of the classes; subjects without one are left out.
        by_run: whether a subject's connectivity is the mean over its runs.
    """
    known = labelled_subjects(participants, included)
    loaded, regions = load_series(series, list(known))
    runs = load_runs(series) if by_run else {}
    contrasts = [
        compare_groups(loaded, {subject: int(own == code) for subject, own in known.items()}, regions, named, runs)
        for code, named in words.contrasts
    ]
    with drawing():
        save_svg(means_figure(contrasts), outputs["means"])
        drawn = chord_figure(contrasts) if atlas is None else brain_figure(contrasts, region_coordinates(*atlas))
        save_svg(drawn, outputs["strongest"])
    save_chart(effects_chart(contrasts), outputs["effects"])
    compared = joined([_summary(groups) for groups in contrasts])
    summary = {"regions": len(regions), "connections": len(contrasts[0].effect), **compared}
    write_text(outputs["summary"], canonical_json(summary) + "\n")


def _summary(groups: GroupConnectivity) -> dict[str, Any]:
    row, column = groups.ends()
    names = groups.regions
    strongest = [
        {"from": names[row[index]], "to": names[column[index]], "d": round(float(groups.effect[index]), 3)}
        for index in groups.strongest(10)
    ]
    return {**groups.counted, "strongest": strongest}
