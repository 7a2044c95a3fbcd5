"""Clusters of institutions over the rounds, drawn as a river."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from brainfed.reporting.figures.style import FAINT, INK, WIDE, drawing, headed, new_figure, note_figure, save_svg
from brainfed.reporting.text.answer import listed
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_table

# Clusters over the rounds of one training, and the order of institutions in which each cluster is one band.

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Partitions:
    """One training.

    Attributes:
        institutions: names, from the top of the figure to its bottom.
        clusters: (T, M) number of each institution's cluster after every round, in that order; of the parts of a
            cluster the largest keeps the number.
    """

    institutions: tuple[str, ...]
    clusters: IntArray

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.clusters)

    @property
    def cuts(self) -> list[int]:
        """Numbers of the rounds in which a cluster was cut, before their average, from 1."""
        before = np.vstack([np.zeros_like(self.clusters[:1]), self.clusters[:-1]])
        return (np.flatnonzero((before != self.clusters).any(axis=1)) + 1).tolist()

    @property
    def sizes(self) -> list[int]:
        """Numbers of institutions of the clusters after the last round, the largest first."""
        return sorted(np.unique(self.clusters[-1], return_counts=True)[1].tolist(), reverse=True)


def in_order(institutions: Sequence[str], clusters: IntArray) -> Partitions:
    """Order institutions by their clusters after the first round, then the second, and so on, and then by place.

    Clusters are cut and never joined, so the institutions of a cluster have been together in every round before, and
    follow each other.

    Args:
        institutions: M names.
        clusters: (T, M).
    """
    numbered = _largest_keeps(clusters)
    order = np.lexsort([np.arange(len(institutions)), *numbered[::-1]])
    return Partitions(tuple(institutions[place] for place in order), numbered[:, order])


def _largest_keeps(clusters: IntArray) -> IntArray:
    """(T, M) the same clusters in other numbers: of the parts of a cluster the (first) largest keeps its number."""
    found, latest = np.empty_like(clusters), np.zeros_like(clusters[0])
    for number, after in enumerate(clusters):
        current = latest.copy()
        for cluster in np.unique(latest):
            parts, sizes = np.unique(after[latest == cluster], return_counts=True)
            for part in np.delete(parts, sizes.argmax()):
                current[(latest == cluster) & (after == part)] = current.max() + 1
        found[number] = latest = current
    return found


def read_partitions(path: str) -> Partitions | None:
    """The clusters of the first fold of a history; None if it has none."""
    history = read_table(path, ["fold", "institution", "round"])
    if "cluster" not in history or history["cluster"].isna().all():
        return None
    first = history[history["fold"] == history["fold"].min()]
    names = list(dict.fromkeys(first["institution"]))
    table = first.pivot(index="round", columns="institution", values="cluster").sort_index()[names]
    return in_order(names, table.to_numpy(dtype=np.int64))


# A river of clusters: institutions from top to bottom, rounds from left to right, a band a cluster.

COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#f0e442", "#d55e00", "#999999")
"""Colours of Okabe and Ito, which look different to colour-blind readers."""
GAP = 0.7
"""Rows between two clusters."""
WIDENING = 0.03
"""Share of all rounds in which a gap opens."""
ROW, LEAST = 0.15, 1.5
"""Inches of a row, and the fewest of a panel."""
LONGEST = 16
"""Letters of a name."""
LISTED = 4
"""Most numbers in a sentence."""


@dataclass(frozen=True)
class Band:
    """Neighbouring rows that are one cluster in these rounds.

    Attributes:
        cluster: its number.
        rows: first and last row.
        rounds: first and last round, from 1.
    """

    cluster: int
    rows: tuple[int, int]
    rounds: tuple[int, int]


def river_figure(variants: Sequence[ShownVariant], trainings: Sequence[Partitions | None]) -> Figure:
    """One panel a variant; None: it has no clusters and is left out."""
    shown = [(variant, one) for variant, one in zip(variants, trainings, strict=True) if one is not None]
    if not shown:
        return note_figure("no method of this experiment has clusters")
    columns = min(2, len(shown))
    lines = -(-len(shown) // columns)
    most = max(len(one.institutions) + GAP * (len(one.sizes) - 1) for _, one in shown)
    figure = new_figure(WIDE, 0.4 + lines * (0.8 + max(LEAST, ROW * most)))
    for number, (variant, one) in enumerate(shown):
        axes = figure.add_subplot(lines, columns, number + 1)
        axes.set_title(variant.title, color=variant.colour)
        _draw(axes, one)
    headed(figure, "; ".join(f"{variant.title}: {finding(one)}" for variant, one in shown))
    return figure


def finding(training: Partitions) -> str:
    """`3 clusters of 5, 4 and 1 institutions, cut in rounds 21 and 40`; `no cluster was cut`."""
    cuts, sizes = [str(number) for number in training.cuts], [str(size) for size in training.sizes]
    if not cuts:
        return "no cluster was cut"
    few = len(sizes) <= LISTED
    parts = f"of {listed(sizes, 'and')} institutions" if few else f"of {sizes[-1]} to {sizes[0]} institutions"
    rounds = f"round{'s' if len(cuts) > 1 else ''} {listed(cuts, 'and')}"
    when = rounds if len(cuts) <= LISTED else f"{len(cuts)} rounds from {cuts[0]} to {cuts[-1]}"
    return f"{len(sizes)} clusters {parts}, cut in {when}"


def bands(training: Partitions) -> list[Band]:
    """Bands in the order of their first rounds; a cluster that is cut goes on as a new band."""
    found: list[Band] = []
    latest: dict[tuple[int, int, int], int] = {}
    for number, clusters in enumerate(training.clusters, start=1):
        starts = [0, *(np.flatnonzero(np.diff(clusters)) + 1).tolist(), len(clusters)]
        current = {(int(clusters[a]), a, b - 1): number for a, b in pairwise(starts)}
        found += [Band(*_parts(key), (first, number - 1)) for key, first in latest.items() if key not in current]
        latest = {key: latest.get(key, number) for key in current}
    found += [Band(*_parts(key), (first, training.rounds)) for key, first in latest.items()]
    return sorted(found, key=lambda band: (band.rounds[0], band.rows))


def _parts(key: tuple[int, int, int]) -> tuple[int, tuple[int, int]]:
    return key[0], (key[1], key[2])


def colours(training: Partitions) -> dict[int, str]:
    """Cluster -> a colour that no neighbouring cluster has in any round; the least used of these."""
    touching = {
        (int(one), int(other))
        for clusters in np.unique(training.clusters, axis=0)
        for one, other in pairwise(clusters)
        if one != other
    }
    found: dict[int, str] = {}
    for cluster in sorted(set(training.clusters.ravel().tolist())):
        beside = {found.get(other) for pair in touching if cluster in pair for other in pair}
        used = list(found.values())
        free = [colour for colour in COLOURS if colour not in beside] or list(COLOURS)
        found[cluster] = min(free, key=lambda colour: (used.count(colour), COLOURS.index(colour)))
    return found


def depths(training: Partitions, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """(X, M) middle of every row at moments (X,), in rows from the top; a gap opens below a cut from its round on."""
    clusters, width = training.clusters, max(1.0, WIDENING * training.rounds)
    before = np.vstack([np.zeros_like(clusters[:1]), clusters[:-1]])
    rows = np.broadcast_to(np.arange(clusters.shape[1], dtype=np.float64), (len(moments), clusters.shape[1])).copy()
    for number in training.cuts:
        opened = _above(clusters[number - 1]) - _above(before[number - 1])
        share = np.clip((moments - _edge(number)) / width, 0, 1)
        rows += GAP * share[:, None] * (opened - opened[-1] / 2)
    return rows


def _above(clusters: IntArray) -> IntArray:
    """(M,) number of borders of clusters above each row."""
    return np.concatenate([[0], np.cumsum(clusters[1:] != clusters[:-1])])


def _edge(number: int) -> float:
    """The place between the round before and this one, from 1."""
    return number - 0.5


def _draw(axes: Axes, training: Partitions) -> None:
    painted, end = colours(training), _edge(training.rounds + 1)
    width = max(1.0, WIDENING * training.rounds)
    kinks = sorted({min(_edge(number) + extra, end) for number in training.cuts for extra in (0.0, width)})
    for band in bands(training):
        start, stop = _edge(band.rounds[0]), _edge(band.rounds[1] + 1)
        moments = np.array([start, *(kink for kink in kinks if start < kink < stop), stop])
        places = depths(training, moments)
        top, bottom = (places[:, row] + side for row, side in zip(band.rows, (-0.5, 0.5), strict=True))
        axes.fill_between(moments, top, bottom, color=painted[band.cluster], linewidth=0.4)
        for row in range(band.rows[0], band.rows[1]):
            axes.plot(moments, places[:, row] + 0.5, color="white", linewidth=0.4, alpha=0.7)
    last = depths(training, np.array([end]))[0]
    for place, name in zip(last, training.institutions, strict=True):
        axes.annotate(
            name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}\u2026", (end, place), (4, 0),
            textcoords="offset points", va="center", fontsize=6.5, color=INK, annotation_clip=False,
        )  # fmt: skip
    axes.set(xlim=(_edge(1), end), ylim=(last.max() + 0.6, last.min() - 0.6), xlabel="round")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    for number in training.cuts:
        axes.plot(
            [_edge(number)], [0], "|", color=FAINT, markersize=5, transform=axes.get_xaxis_transform(), clip_on=False
        )
    if not training.cuts:
        middle = (_edge(1) + end) / 2
        axes.text(middle, float(last.mean()), "no cluster was cut", ha="center", va="center", color=INK, fontsize=9)


# Draw the clusters of an experiment.


def draw_clusters(variants: Sequence[ShownVariant], histories: Sequence[str], path: str) -> None:
    """Write the SVG.

    Args:
        variants: those with clusters.
        histories: the first repeat's of each.
        path: the SVG.
    """
    with drawing():
        save_svg(river_figure(variants, [read_partitions(history) for history in histories]), path)
