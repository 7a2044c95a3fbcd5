"""Clusters of institutions over the rounds, drawn as a river."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.reporting import ShownVariant
from brainfed.reporting.charts._style import Chart, headed, note_chart, save_chart, shown_ones, titled, tooltip
from brainfed.reporting.text import listed
from brainfed.runtime import read_table

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


# A river of clusters: institutions from top to bottom, rounds from left to right, a colour a cluster.

COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#f0e442", "#d55e00", "#999999")
"""Colours of Okabe and Ito, which look different to colour-blind readers."""
ROW = 14
"""Pixels of an institution."""
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


def river_chart(variants: Sequence[ShownVariant], trainings: Sequence[Partitions | None]) -> Chart:
    """One panel a variant; None: it has no clusters and is left out."""
    shown = [(variant, one) for variant, one in zip(variants, trainings, strict=True) if one is not None]
    if not shown:
        return note_chart("no method of this experiment has clusters")
    panels = [titled(_river(variant, one), variant.title) for variant, one in shown]
    lines = [alt.hconcat(*panels[start : start + 2], spacing=30) for start in range(0, len(panels), 2)]
    return headed(
        alt.vconcat(*lines, spacing=24) if len(lines) > 1 else lines[0],
        "; ".join(f"{variant.title}: {finding(one)}" for variant, one in shown),
    )


def _river(variant: ShownVariant, training: Partitions) -> Chart:
    painted = colours(training)
    table = pd.DataFrame([
        {
            "variant": variant.name, "institution": training.institutions[row], "cluster": band.cluster + 1,
            "colour": painted[band.cluster], "start": band.rounds[0] - 0.5, "end": band.rounds[1] + 0.5,
            "rounds": f"{band.rounds[0]} to {band.rounds[1]}", "together": band.rows[1] - band.rows[0] + 1,
        }
        for band in bands(training) for row in range(band.rows[0], band.rows[1] + 1)
    ])  # fmt: skip
    scale = alt.Scale(domain=[0.5, training.rounds + 0.5], nice=False)
    step = max(round(training.rounds / 5, -1 if training.rounds >= 50 else 0), 1)
    ticks = [1, *range(int(step), training.rounds + 1, int(step))]
    drawn = (
        alt.Chart(table)
        .transform_filter(shown_ones()[1])
        .mark_bar(size=ROW - 1)
        .encode(
            x=alt.X("start:Q", title="round", scale=scale, axis=alt.Axis(values=ticks, format="d", grid=False)),
            x2="end:Q",
            y=alt.Y("institution:N", sort=list(training.institutions),
                    axis=alt.Axis(title=None, orient="right", labelFontSize=10.5, labelLimit=120)),
            color=alt.Color("colour:N", scale=None),
            tooltip=tooltip("institution", "cluster", "together", "rounds"),
        )
        .properties(width=330, height=ROW * len(training.institutions))
    )  # fmt: skip
    chart: alt.Chart = drawn
    return chart


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


# Draw the clusters of an experiment.


def draw_clusters(variants: Sequence[ShownVariant], histories: Sequence[str], path: str) -> None:
    """Write the SVG.

    Args:
        variants: those with clusters.
        histories: the first repeat's of each.
        path: the SVG.
    """
    save_chart(river_chart(variants, [read_partitions(history) for history in histories]), path)
