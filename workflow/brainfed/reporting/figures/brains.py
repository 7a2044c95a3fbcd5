"""Connections on the brain: those that differ most, and those of the patterns of linear models."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import MaxNLocator
from nilearn.plotting import (
    find_parcellation_cut_coords,
    find_probabilistic_atlas_cut_coords,
    plot_connectome,
)
from numpy.typing import NDArray

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.patterns import IMPORTANCE_COLUMNS as VIEW_COLUMNS
from brainfed.evaluation.patterns import (
    PLANTED_COLUMNS,
    STRONGEST_COLUMNS,
    no_rows,
    planted_connections,
    planted_table,
    read_parts,
    read_patterns,
    strongest_table,
    view_importance,
)
from brainfed.imaging.connectivity import to_matrices
from brainfed.imaging.scans.atlas import Atlas, ProbabilisticAtlas, load_atlas
from brainfed.imaging.series.shards import load_runs, load_series
from brainfed.reporting.figures.connectivity import (
    GroupConnectivity,
    compare_groups,
    effects_figure,
    joined,
    means_figure,
    networks,
)
from brainfed.reporting.figures.style import (
    COLD,
    FAINT,
    INK,
    RULE,
    WARM,
    WIDE,
    bare,
    drawing,
    name_sides,
    note_figure,
    placed_figure,
    save_svg,
)
from brainfed.reporting.tables.patterns import ShownPattern, end_name, shown_patterns
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import canonical_json, read_table, write_text, write_tsv

# The connections that differ most: on the brain if the regions have coordinates, else as a chord diagram.

Place = Callable[[float, float, float, float], tuple[float, float, float, float]]
"""Maps left, bottom, width and height in a row to those in the figure."""


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
        _brain_of_strongest(figure, groups, coordinates, count, place)
    return figure


def _rows(count: int) -> list[Place]:
    """Places in the rows of a figure, from its top."""

    def inside(row: int) -> Place:
        return lambda left, bottom, width, height: (left, (bottom + count - 1 - row) / count, width, height / count)

    return [inside(row) for row in range(count)]


def _brain_of_strongest(
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
        series: the time series of all parts.
        participants: the phenotype artefact.
        included: the subjects of the analysis.
        atlas: parcellation image and region table (None: named by number), where the regions have a place; else a
            chord diagram is drawn.
        outputs: figure -> path.
        words: names of the classes; subjects without one are left out.
        by_run: whether a subject's connectivity is the mean over its runs.
    """
    decided = read_table(included, ["subject", "included"])
    known = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"].dropna()
    subjects = sorted(set(decided.loc[decided["included"], "subject"]) & set(known.index))
    found, regions = load_series(series, subjects)
    runs = load_runs(series) if by_run else {}
    contrasts = [
        compare_groups(found, {subject: int(known[subject] == code) for subject in subjects}, regions, named, runs)
        for code, named in words.contrasts
    ]
    with drawing():
        save_svg(means_figure(contrasts), outputs["means"])
        save_svg(effects_figure(contrasts), outputs["effects"])
        drawn = chord_figure(contrasts) if atlas is None else brain_figure(contrasts, region_coordinates(*atlas))
        save_svg(drawn, outputs["strongest"])
    compared = joined([_summary(groups) for groups in contrasts])
    summary = {"regions": len(regions), "connections": len(contrasts[0].effect), **compared}
    write_text(outputs["summary"], canonical_json(summary) + "\n")


def _summary(groups: GroupConnectivity) -> dict[str, Any]:
    row, column = groups.ends()
    strongest = [
        {
            "from": groups.regions[row[index]],
            "to": groups.regions[column[index]],
            "d": round(float(groups.effect[index]), 3),
        }
        for index in groups.strongest(10)
    ]
    return {**groups.counted, "strongest": strongest}


# The strongest connections of the patterns of linear models: on the brain, and with their spread over runs.

HEIGHT, LEFT, BRAIN = 5.1, 3.6, 0.38
"""Inches of a row, inches left of the dots, width of the brain in the figure."""
ROWS = 3
"""Largest number of rows."""
LONGEST = 22
"""Characters of a region's name."""


def patterns_figure(table: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords) -> Figure:
    """One row a variant: its strongest connections on a glass brain, and beside it their means and deviations.

    Of several views the first with connections is drawn, or the first; of more than two classes, every class of the
    first variant. Regions without places have no brain.

    Args:
        table: `strongest_patterns.COLUMNS`.
        variants: in the order of the figure.
        words: names of the classes.
    """
    drawn = _drawn(shown_patterns(table, variants, words), several=words.count > 2)
    if not drawn:
        return note_figure("No linear model here has a score that varies.")
    figure = placed_figure(WIDE, HEIGHT * len(drawn))
    for row, pattern in enumerate(drawn):
        _row(figure, pattern, (len(drawn) - 1 - row) / len(drawn), 1 / len(drawn))
    return figure


def _drawn(shown: Sequence[ShownPattern], *, several: bool) -> list[ShownPattern]:
    """One view a variant, or one a class of the first variant."""
    kept: dict[str, ShownPattern] = {}
    for pattern in sorted(shown, key=lambda one: not one.connections):
        kept.setdefault(pattern.words.many[1] if several else pattern.variant.name, pattern)
    order = {id(pattern): place for place, pattern in enumerate(shown)}
    first = [one for one in kept.values() if not several or one.variant == shown[0].variant]
    return sorted(first, key=lambda one: order[id(one)])[:ROWS]


def _row(figure: Figure, pattern: ShownPattern, bottom: float, height: float) -> None:
    def inside(left: float, low: float, width: float, tall: float) -> tuple[float, float, float, float]:
        return left, bottom + height * low, width, height * tall

    figure.text(0.01, bottom + 0.965 * height, _title(pattern), fontweight="bold", fontsize=9.5, va="top")
    left = LEFT + 2.45 if pattern.located else 3.4
    if pattern.located:
        _brain_of_pattern(figure, pattern, inside(0.0, 0.51, BRAIN, 0.40), "z")
        _brain_of_pattern(figure, pattern, inside(0.0, 0.06, BRAIN, 0.38), "y")
    _dots(figure.add_axes(inside(left / WIDE, 0.12, 1 - (left + 0.15) / WIDE, 0.78)), pattern)


def _title(pattern: ShownPattern) -> str:
    view = f", {pattern.view}" if pattern.view else ""
    what = "connections" if pattern.connections else "measures"
    return f"{pattern.variant.title}{view}: the {what} that change most with the score for {pattern.words.many[1]}"


def _brain_of_pattern(
    figure: Figure, pattern: ShownPattern, place: tuple[float, float, float, float], view: str
) -> None:
    rows = pattern.rows
    coordinates, ends = _nodes(rows)
    signs = np.sign(rows["mean"].to_numpy())
    axes = figure.add_axes(place)
    display = plot_connectome(
        _adjacency(ends, signs > 0, len(coordinates)), coordinates, node_size=14, node_color=INK,
        edge_cmap=ListedColormap([WARM]), edge_vmin=0, edge_vmax=1, display_mode=view, figure=figure, axes=axes,
        annotate=False, edge_kwargs={"linewidth": 1.8}, colorbar=False,
    )  # fmt: skip
    display.add_graph(
        _adjacency(ends, signs < 0, len(coordinates)), coordinates, node_size=14, node_color=INK,
        edge_cmap=ListedColormap([COLD]), edge_vmin=0, edge_vmax=1,
        edge_kwargs={"linewidth": 1.8, "linestyle": (0, (2.2, 1.2))}, colorbar=False,
    )  # fmt: skip
    name_sides(axes, view)


def _nodes(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Places (N, 3) of the regions that the rows connect, and the two positions (rows, 2) of every row."""
    names = sorted({*rows["from"], *rows["to"]})
    position = {name: number for number, name in enumerate(names)}
    ends = np.array([[position[name] for name in rows[end]] for end in ("from", "to")]).T
    coordinates = np.empty((len(names), 3))
    for column, end in enumerate(("from", "to")):
        coordinates[ends[:, column]] = rows[[f"{end}_{axis}" for axis in "xyz"]].to_numpy(dtype=np.float64)
    return coordinates, ends


def _adjacency(ends: NDArray[np.int64], kept: NDArray[np.bool_], nodes: int) -> NDArray[np.float64]:
    found = np.zeros((nodes, nodes))
    for first, second in ends[kept]:
        found[first, second] = found[second, first] = 1.0
    return found


def _dots(axes: Axes, pattern: ShownPattern) -> None:
    rows, many = pattern.rows, pattern.words.many[1]
    mean, deviation = rows["mean"].to_numpy(), np.nan_to_num(rows["sd"].to_numpy(dtype=np.float64))
    raised = mean > 0
    place = np.arange(len(rows)) + 1.0 + np.where(raised, 0.0, 1.6)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    for own, colour, marker, filled in ((raised, WARM, "o", True), (~raised, COLD, "s", False)):
        axes.errorbar(
            mean[own], place[own], xerr=deviation[own], fmt=marker, markersize=4.5, color=colour, elinewidth=1.1,
            markerfacecolor=colour if filled else "white",
        )  # fmt: skip
    axes.set_yticks(place, _names(rows, connections=pattern.connections), fontsize=7)
    axes.set_ylim(len(rows) + 2.4, -0.4)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for own, word, colour in ((raised, "raised", WARM), (~raised, "lowered", COLD)):
        if own.any():
            axes.annotate(
                f"{word} in {many}", (0, float(place[own][0]) - 0.85), xycoords=("axes fraction", "data"),
                color=colour, fontweight="bold", fontsize=8, va="center",
            )  # fmt: skip
    axes.grid(visible=True, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.set_xlabel("change for one standard deviation of the score\n(mean and deviation over runs)")


def _names(rows: pd.DataFrame, *, connections: bool) -> list[str]:
    columns = ["from", "from_x", "to", "to_x"]
    ends = rows[columns].itertuples(index=False)
    if not connections:
        return [end_name(str(first), x, LONGEST * 2) for first, x, _, _ in ends]
    return [
        f"{end_name(str(first), x, LONGEST)} \u2013 {end_name(str(second), to, LONGEST)}"
        for first, x, second, to in ends
    ]


# Tables and picture of the patterns of linear models.


def draw_patterns(
    variants: Sequence[ShownVariant],
    files: Sequence[str],
    predictions: Sequence[str],
    outputs: Mapping[str, str],
    *,
    atlas: tuple[str, str | None] | None,
    truth: str | None,
    seed: int,
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the tables called table, planted and views, and the SVG called patterns.

    Args:
        variants: linear models of the experiment.
        files: their patterns, every repeat of the first variant first.
        predictions: their predictions, in the same order.
        outputs: name -> path.
        atlas: parcellation image and region table (None: named by number), where the regions have a place.
        truth: planted connections of a simulated cohort.
        seed: of the permutations of views.
        words: names of the classes.
    """
    repeats = len(files) // len(variants)
    places = region_places(*atlas) if atlas is not None else {}
    planted = planted_connections(truth, words.target) if truth else {}
    strongest, scored, views = [no_rows(STRONGEST_COLUMNS)], [no_rows(PLANTED_COLUMNS)], [no_rows(VIEW_COLUMNS)]
    for number, variant in enumerate(variants):
        own = slice(number * repeats, (number + 1) * repeats)
        patterns = read_patterns(files[own])
        if patterns is None:
            continue
        strongest.append(strongest_table(variant.name, patterns, places))
        scored.append(planted_table(variant.name, patterns, planted))
        parts = [read_parts(*pair) for pair in zip(files[own], predictions[own], strict=True)]
        views += [view_importance(variant.name, held, seed)] if (held := [one for one in parts if one]) else []
    table = _joined(strongest)
    write_tsv(outputs["table"], table, float_format="%.6g")
    write_tsv(outputs["planted"], _joined(scored), float_format="%.6g")
    write_tsv(outputs["views"], _joined(views), float_format="%.6g")
    with drawing():
        save_svg(patterns_figure(table, variants, words), outputs["patterns"])


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    held = [table for table in tables if len(table)]
    return pd.concat(held, ignore_index=True) if held else tables[0]
