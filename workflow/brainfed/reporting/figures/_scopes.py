"""Two readings of FedNI's local graphs on one cohort, and a piece of it small enough to draw (Sec. III-A).

`global_cut`: one graph over all subjects without edges between institutions. `local`: every institution's own graph.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from brainfed.graphs import Edges
from brainfed.reporting import FAINT, INK, SERIES, rounded
from brainfed.reporting.figures._style import drawing, placed_figure, save_svg
from brainfed.runtime import ArrayFile, Float64, IntArray, UserError, read_arrays, read_table

Disc = tuple[tuple[float, float], float]
"""Centre and radius."""
LineStyle = Literal["-"] | tuple[float, tuple[float, ...]]

INSTITUTIONS, SUBJECTS = 5, 24
"""Most that a piece shows."""


@dataclass(frozen=True)
class Panel:
    """One graph.

    Attributes:
        title: its name.
        degrees: (n,) neighbours of every subject.
        edges: existing edges.
        removed: edges that the cut removed; None without a cut.
    """

    title: str
    degrees: IntArray
    edges: Sequence[Edges]
    removed: Edges | None = None


@dataclass(frozen=True)
class ScopeGraphs:
    """The edges of one repeat, self-loops left out.

    Attributes:
        institution: (n,) names.
        kept: edges of the graph over all subjects inside an institution.
        removed: its edges between institutions, which the cut removes.
        own: edges of every institution's own graph; None if no method uses it.
    """

    institution: NDArray[np.object_]
    kept: Edges
    removed: Edges
    own: Edges | None

    def degrees(self, *edges: Edges) -> IntArray:
        """(n,) number of neighbours that each subject receives from."""
        return np.bincount(np.concatenate([each.row for each in edges]), minlength=len(self.institution))

    @property
    def panels(self) -> list[Panel]:
        """The graph over all subjects, the same after the cut, and every institution's own if given."""
        shown = [
            Panel("One graph over everybody", self.degrees(self.kept, self.removed), (self.kept, self.removed)),
            Panel("Cut between institutions", self.degrees(self.kept), (self.kept,), self.removed),
        ]
        if self.own is not None:
            shown.append(Panel("Every institution\u2019s own graph", self.degrees(self.own), (self.own,)))
        return shown


@dataclass(frozen=True)
class Piece:
    """A subject and its neighbours.

    Attributes:
        subject: position of the subject.
        members: (m,) positions of all drawn subjects: the subject, then by institution, neighbours in the graph over
            all subjects before those in the institution's own alone.
        institutions: names, the subject's own first, then by falling number of its neighbours.
    """

    subject: int
    members: IntArray
    institutions: tuple[str, ...]

    def pairs(self, edges: Edges) -> IntArray:
        """(e, 2) places in `members` of the ends of those edges that lie inside the piece, each pair once."""
        place = np.full(1 + int(max(self.members.max(), edges.row.max(initial=0), edges.column.max(initial=0))), -1)
        place[self.members] = np.arange(len(self.members))
        ends = np.sort(np.column_stack([place[edges.row], place[edges.column]]), axis=1)
        return np.unique(ends[ends[:, 0] >= 0], axis=0)

    def neighbours(self, edges: Edges) -> IntArray:
        """Positions of the drawn members from which the subject receives by these edges."""
        return np.intersect1d(edges.column[edges.row == self.subject], self.members)


def read_scope_graphs(cut: str | Path, own: str | Path | None, split: str | Path) -> ScopeGraphs:
    """Read one repeat of the graph of scope `global_cut` and, if given, of scope `local`.

    Raises:
        UserError: they are not of the same subjects, or the first has another scope.
    """
    file = read_arrays(cut, ["row", "column", "weight", "cut_row", "cut_column", "cut_weight"])
    drawn = read_table(split, ["subject", "institution"]).set_index("subject")["institution"]
    institution = drawn.reindex(list(file.subjects)).to_numpy(dtype=object)
    kept, removed = _without_loops(file, ""), _without_loops(file, "cut_")
    if own is None:
        return ScopeGraphs(institution, kept, removed, None)
    local = read_arrays(own, ["row", "column", "weight"])
    if local.subjects != file.subjects:
        raise UserError(f"{own}: its subjects are not those of the graph that was cut; delete the file and run again.")
    return ScopeGraphs(institution, kept, removed, _without_loops(local, ""))


def _without_loops(file: ArrayFile, prefix: str) -> Edges:
    row, column = file.arrays[f"{prefix}row"], file.arrays[f"{prefix}column"]
    apart = row != column
    return Edges(row[apart], column[apart], file.arrays[f"{prefix}weight"][apart].astype(np.float64))


def choose_piece(graphs: ScopeGraphs) -> Piece:
    """The most typical subject with its neighbours in all the graphs, at most `SUBJECTS` of `INSTITUTIONS`.

    The most typical subject has the numbers of neighbours nearest their medians, and a removed neighbour; the first in
    a tie. Of too many neighbours, those in the institutions with most of them stay, and then the nearest by weight.
    """
    subject = _typical(graphs)
    name = graphs.institution
    joined = [graphs.kept, graphs.removed, *([] if graphs.own is None else [graphs.own])]
    weight = np.zeros(len(name))
    for edges in joined:
        mine = edges.row == subject
        np.maximum.at(weight, edges.column[mine], edges.weight[mine])
    elsewhere = name[(weight > 0) & (name != name[subject])]
    names, count = np.unique(elsewhere.astype(str), return_counts=True)
    institutions = (str(name[subject]), *names[np.argsort(-count, kind="stable")][: INSTITUTIONS - 1].tolist())
    weight[~np.isin(name, institutions)] = 0
    weight[subject] = 0
    nearest = np.argsort(-weight, kind="stable")[: SUBJECTS - 1]
    chosen = nearest[weight[nearest] > 0]
    whole = np.isin(chosen, np.concatenate([edges.column[edges.row == subject] for edges in joined[:2]]))
    chosen = chosen[np.lexsort((chosen, ~whole))]
    groups = [chosen[name[chosen] == institution] for institution in institutions]
    drawn = tuple(each for each, group in zip(institutions, groups, strict=True) if len(group) or each == name[subject])
    return Piece(subject, np.concatenate([[subject], *groups]).astype(np.int64), drawn)


def _typical(graphs: ScopeGraphs) -> int:
    away = sum(np.abs(panel.degrees - np.median(panel.degrees)) for panel in graphs.panels)
    lost = graphs.degrees(graphs.removed) > 0
    return int(np.argmin(np.where(lost | ~lost.any(), away, np.inf)))


# A piece of the cohort's graph under two readings of FedNI's local graphs: cut out of one graph, or built apart.

TURN = np.pi * (3 - np.sqrt(5))
"""The golden angle, by which the places of a disc spread evenly."""
PHASES = np.linspace(0, 2 * np.pi, 48, endpoint=False)
ROOM = 0.34
"""Radius of a single subject in its institution's disc."""
GAP = 0.5
"""Space between discs, for their names."""
EDGE = 0.05
COLUMNS = 3
PANEL, HIGHEST, ABOVE, BELOW = 2.83, 3.3, 0.78, 0.42
"""Inches: width and greatest height of a panel, what stands above it and below it."""
OWN_LINE, OTHERS_LINE, REMOVED_LINE = "#3c424b", "#ccd0d6", "#8b929c"
REMOVED_STYLE: LineStyle = (0, (2.2, 2.2))


def draw_scopes(cut: str, own: str | None, split: str, path: str) -> None:
    """Write the figure of one repeat: the graph of scope `global_cut`, and that of scope `local` if one is used."""
    graphs = read_scope_graphs(cut, own, split)
    with drawing():
        save_svg(scope_figure(graphs, choose_piece(graphs)), path)


def scope_figure(graphs: ScopeGraphs, piece: Piece) -> Figure:
    """The piece once a panel in one layout: over all subjects, cut, and every institution's own if given."""
    panels = graphs.panels
    places, discs = _layout(graphs, piece)
    corners = _corners(discs)
    across, up = corners[1] - corners[0]
    below = BELOW if len(panels) == COLUMNS else 0.1
    height = ABOVE + min(HIGHEST, PANEL * up / across) + below
    figure = placed_figure(height)
    figure.subplots_adjust(left=0.015, right=0.985, top=1 - ABOVE / height, bottom=below / height, wspace=0.05)
    for column, panel in enumerate(panels, start=1):
        _draw(figure.add_subplot(1, COLUMNS, column), graphs, piece, places, discs, panel)
    said = textwrap.fill(finding(graphs), 118)
    figure.suptitle(said, x=0.005, ha="left", fontsize=9.5, fontweight="bold", linespacing=1.3)
    if len(panels) == COLUMNS:
        figure.legend(handles=_key(), loc="lower left", ncols=4, handlelength=2, columnspacing=1.6, borderpad=0)
    else:
        beside = (len(panels) / COLUMNS + 0.02, 1 - ABOVE / height)
        figure.legend(handles=_key(), loc="upper left", bbox_to_anchor=beside, handlelength=2, labelspacing=0.9)
    return figure


def finding(graphs: ScopeGraphs) -> str:
    """Mean number of a subject's neighbours in the cut and own graphs."""
    whole, cut, *own = (rounded(float(panel.degrees.mean()), 1) for panel in graphs.panels)
    said = f"The cut leaves a subject {cut} of its {whole} neighbours on average"
    return f"{said}; in its institution\u2019s own graph it has {own[0]}" if own else said


def _caption(piece: Piece, panel: Panel) -> str:
    """`Ringed subject: 3 neighbours, 10 removed`, and the number of drawn ones if not all are."""
    count = int(panel.degrees[piece.subject])
    drawn = len(np.unique(np.concatenate([piece.neighbours(edges) for edges in panel.edges])))
    shown = f" ({drawn} drawn)" if drawn < count else ""
    lost = "" if panel.removed is None else f", {int((panel.removed.row == piece.subject).sum())} removed"
    return f"Ringed subject: {count} neighbour{'s' if count != 1 else ''}{shown}{lost}"


def _draw(axes: Axes, graphs: ScopeGraphs, piece: Piece, places: Float64, discs: Sequence[Disc], panel: Panel) -> None:
    axes.set_axis_off()
    axes.set_aspect("equal", anchor="NW")
    axes.set_title(f"{panel.title}\n", pad=3)
    axes.text(0, 1, _caption(piece, panel), transform=axes.transAxes, va="bottom", fontsize=8)
    for edges in panel.edges:
        _lines(axes, places, piece.pairs(edges), OWN_LINE, OTHERS_LINE, "-")
    if panel.removed is not None:
        _lines(axes, places, piece.pairs(panel.removed), REMOVED_LINE, OTHERS_LINE, REMOVED_STYLE)
    size = 12 + 4.5 * panel.degrees[piece.members]
    shown = graphs.institution[piece.members]
    for ((x, y), radius), name, (colour, _) in zip(discs, piece.institutions, SERIES, strict=False):
        axes.add_patch(Circle((x, y), radius, facecolor=colour, alpha=0.1, linewidth=0, zorder=0))
        axes.text(
            x, y - radius - 0.06, name, ha="center", va="top", fontsize=7.5, fontweight="bold", color=colour,
            path_effects=[withStroke(linewidth=2.5, foreground="white")], zorder=5,
        )  # fmt: skip
        chosen = shown == name
        across, up = places[chosen].T
        axes.scatter(across, up, s=size[chosen], c=colour, edgecolors="white", linewidths=0.6, zorder=3)
    across, up = places[0]
    axes.scatter(across, up, s=size[0] + 60, facecolors="none", edgecolors=INK, linewidths=1.3, zorder=4)
    (left, bottom), (right, top) = _corners(discs)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def _corners(discs: Sequence[Disc]) -> Float64:
    """(2, 2) lower left and upper right of the discs with their names."""
    low = [(x - radius, y - radius - GAP) for (x, y), radius in discs]
    high = [(x + radius, y + radius) for (x, y), radius in discs]
    return np.array([np.min(low, axis=0) - EDGE, np.max(high, axis=0) + EDGE])


def _lines(axes: Axes, places: Float64, pairs: IntArray, mine: str, others: str, style: LineStyle) -> None:
    """Draw the subject's own lines dark above those of the others."""
    of_subject = (pairs == 0).any(axis=1)
    for chosen, colour, width, order in ((~of_subject, others, 0.5, 1), (of_subject, mine, 1.1, 2)):
        ends = list(places[pairs[chosen]])
        axes.add_collection(LineCollection(ends, colors=colour, linewidths=width, linestyles=[style], zorder=order))


def _layout(graphs: ScopeGraphs, piece: Piece) -> tuple[Float64, list[Disc]]:
    """(m, 2) places of the members, a disc an institution: the subject's own left, the others in a column beside it.

    The subject is the rightmost of its institution, so that its lines to the others cross no subject there. Discs turn
    until its lines keep clear of other subjects.
    """
    shown = graphs.institution[piece.members]
    groups = [np.flatnonzero(shown == name) for name in piece.institutions]
    radius, *radii = [ROOM * np.sqrt(len(group)) + 0.12 for group in groups]
    discs: list[Disc] = [((0.0, 0.0), radius)]
    top = sum(radii) + GAP * (len(radii) - 1) / 2
    for other in radii:
        discs.append(((radius + 0.9 + max(radii), top - other), other))
        top -= 2 * other + GAP
    places = np.zeros((len(shown), 2))
    for group, (centre, _) in zip(groups, discs, strict=True):
        turned = [np.add(centre, _spots(len(group), phase)) for phase in PHASES]
        start = None if group[0] == 0 else places[0]
        places[group] = turned[int(np.argmax([_clearance(spots, start) for spots in turned]))]
    return places, discs


def _spots(count: int, phase: float) -> Float64:
    """(count, 2) places spread evenly over a disc around 0, the rightmost first, then those nearest to it."""
    number = np.arange(count)
    angle = number * TURN + phase
    far = ROOM * np.sqrt(number + (0.5 if count > 1 else 0.0))
    spots = far[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    first = spots[np.argmax(spots[:, 0])]
    return np.asarray(spots[np.argsort(np.linalg.norm(spots - first, axis=1), kind="stable")])


def _clearance(spots: Float64, start: Float64 | None) -> float:
    """Smallest distance of the lines from `start` (None: the first spot) to the spots from other spots."""
    begin, ends = (spots[0], spots[1:]) if start is None else (start, spots)
    if len(ends) < 2:
        return 0.0
    line = ends - begin
    along = np.clip(line @ line.T / np.square(line).sum(axis=1)[:, None], 0, 1)
    gap = np.linalg.norm(line[None] - along[..., None] * line[:, None], axis=2)
    np.fill_diagonal(gap, np.inf)
    return round(float(gap.min()), 9)


def _key() -> list[Line2D]:
    dot = "subject, larger with more neighbours"
    return [
        Line2D([], [], color=OWN_LINE, linewidth=1.1, label="neighbours of the ringed subject"),
        Line2D([], [], color=OTHERS_LINE, linewidth=0.8, label="neighbours of others"),
        Line2D([], [], color=REMOVED_LINE, linewidth=1.1, linestyle=REMOVED_STYLE, label="removed by the cut"),
        Line2D([], [], color=FAINT, marker="o", markersize=6, linestyle="", label=dot),
    ]
