"""Charts of graphs: homophily against chance, neighbours, sizes of graphs that are samples, clusters."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import ClassWords
from brainfed.graphs import contents
from brainfed.reporting import GRAPHS, ShownVariant, class_colours, rounded, signed
from brainfed.reporting.charts._distributions import box_rows, steps
from brainfed.reporting.charts._style import (
    NOT_HIDDEN,
    Chart,
    Line,
    Panel,
    dot_rows,
    headed,
    note_chart,
    save_chart,
    titled,
    tooltip,
)
from brainfed.reporting.tables import ShownGraph, distinct_titles
from brainfed.reporting.text import listed
from brainfed.runtime import (
    ArrayFile,
    Float64,
    IntArray,
    canonical_json,
    file_digest,
    read_arrays,
    read_table,
    write_text,
)

# Population graphs: how often neighbours agree, and how many there are.

PAIR = 280
"""Pixels of an axis where two charts stand side by side."""


def homophily_chart(table: pd.DataFrame) -> Chart:
    """Share of edges that join equal labels, and (hollow) the share for random partners.

    Args:
        table: title, label, found, chance; several rows a title and label are averaged.
    """
    means = table.groupby(["label", "title"], sort=False)[["found", "chance"]].mean().reset_index()
    titles = list(dict.fromkeys(table["title"]))
    ends = means[["found", "chance"]]
    rows = means.assign(
        mean=means["found"].round(4), beside=means["chance"].round(4), low=ends.min(axis=1).round(4),
        high=ends.max(axis=1).round(4), group=means["title"], hollow=False,
        shown=[_against_chance(share, chance) for share, chance in ends.itertuples(index=False)],
    ).rename(columns={"title": "graph"})  # fmt: skip
    groups = {title: (title, _colour(number)) for number, title in enumerate(titles)}
    return dot_rows(
        rows.drop(columns=["found", "chance"]), "edges that join equal labels (share; hollow: expected by chance)",
        groups, ("graph", "label", "shown"), width=PAIR, row="label", lines=[Line(0), Line(1)], lanes=True,
        shape="circle",
    )  # fmt: skip


def _colour(number: int) -> str:
    return GRAPHS[number % len(GRAPHS)]


def _against_chance(share: float, chance: float) -> str:
    if not np.isfinite(share):
        return "no such edge"
    return f"{rounded(share, 2)} ({signed(share - chance, 2)})"


def degrees_chart(graphs: Sequence[ShownGraph]) -> Chart:
    """Distribution of the number of neighbours over all repeats, one outline a distinct graph."""
    groups: dict[str, list[IntArray]] = {}
    for shown, title in zip(graphs, distinct_titles(graphs), strict=True):
        groups.setdefault(title, []).append(shown.degrees())
    top = max(int(degrees.max()) for group in groups.values() for degrees in group)
    parts, colours = [], {}
    for number, (title, group) in enumerate(groups.items()):
        degrees = np.concatenate(group)
        name = f"{title}: median {rounded(np.median(degrees), 0)}"
        colours[name] = _colour(number)
        share = 100 * np.bincount(degrees, minlength=top + 2) / len(degrees)
        parts.append(pd.DataFrame({"series": name, "neighbours": np.arange(top + 2), "share": share.round(2)}))
    whole = alt.Axis(format="d", values=list(range(0, top + 2, -(-top // 8))))
    chart = steps(
        pd.concat(parts, ignore_index=True), alt.X("neighbours:Q", title="neighbours of a subject", axis=whole),
        alt.Y("share:Q", title="subjects (%)"), colours, ("series", "neighbours", "share"),
    )  # fmt: skip
    return chart.properties(width=PAIR + 40, height=200)


# Sizes of the graphs of a cohort whose samples they are from the start, and a summary of them.


@dataclass(frozen=True)
class Sizes:
    """Counts of the analysed graphs.

    Attributes:
        data_set: (n,) names.
        label: (n,) classes.
        nodes: (n,) numbers of nodes.
        degree: (n,) mean number of neighbours of a node.
    """

    data_set: NDArray[np.object_]
    label: IntArray
    nodes: IntArray
    degree: Float64


def draw_sizes(graphs: str, participants: str, included: str, drawn: str, summary: str, words: ClassWords) -> None:
    """Write the SVG and the summary; `participants` has ids, data sets (as site) and classes of the graphs."""
    file = read_arrays(graphs)
    people = read_table(participants, ["subject", "site", "diagnosis"]).set_index("subject").loc[list(file.subjects)]
    decided = read_table(included, ["subject", "included"]).set_index("subject")["included"]
    sizes = _sizes(file, people, decided.loc[list(file.subjects)].to_numpy(dtype=bool))
    save_chart(sizes_chart(sizes, words), drawn)
    write_text(summary, canonical_json(_summary(file, sizes, people) | {"digest": file_digest(graphs)}) + "\n")


def sizes_chart(sizes: Sizes, words: ClassWords) -> Chart:
    """Quartiles, and 5 to 95 of 100, of the graphs' sizes and degrees; a row a data set and class."""
    names, colours = sorted(set(sizes.data_set)), class_colours(words.count)
    rows = {
        f"{name}: {words.short[code]}" if len(names) > 1 else words.short[code]: (colours[code], chosen)
        for name in names
        for code in words.shown
        if (chosen := np.asarray((sizes.data_set == name) & (sizes.label == code))).any()
    }
    panels: list[Panel] = []
    for title, values in (
        ("nodes of a graph", sizes.nodes.astype(np.float64)),
        ("neighbours of a node, mean of a graph", sizes.degree),
    ):
        groups = {name: (colour, values[chosen]) for name, (colour, chosen) in rows.items()}
        panels.append(box_rows(groups, title, width=330, dots=False, whiskers=(5, 95), named=not panels, start=0))
    return alt.hconcat(*panels, spacing=40)


def _sizes(file: ArrayFile, people: pd.DataFrame, kept: NDArray[np.bool_]) -> Sizes:
    nodes = np.diff(file.arrays["node_start"])
    return Sizes(
        people["site"].to_numpy(dtype=object)[kept],
        people["diagnosis"].to_numpy(dtype=np.int64)[kept],
        nodes[kept],
        (np.diff(file.arrays["edge_start"]) / nodes)[kept],
    )


def _summary(file: ArrayFile, sizes: Sizes, people: pd.DataFrame) -> dict[str, Any]:
    graphs, nodes = contents(file.arrays), sizes.nodes
    labels: dict[bytes, set[int]] = {}
    for content, label in zip(graphs, people["diagnosis"], strict=True):
        labels.setdefault(content, set()).add(int(label))
    times = Counter(graphs)
    return {
        "data_sets": file.metadata["data_sets"],
        "nodes": {"median": float(np.median(nodes)), "least": int(nodes.min()), "most": int(nodes.max())},
        "degree": round(float(np.median(sizes.degree)), 2),
        "equal": sum(times[content] > 1 for content in graphs),
        "contradicting": sum(len(labels[content]) > 1 for content in graphs),
        "regions": max(data_set["features"] for data_set in file.metadata["data_sets"]),
    }


# Clusters over the rounds of one training, and the order of institutions in which each cluster is one band.


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

    `institutions` are M names, and `clusters` (T, M).
    """
    numbered = _largest_keeps(clusters)
    order = np.lexsort([np.arange(len(institutions)), *numbered[::-1]])
    return Partitions(tuple(institutions[place] for place in order), numbered[:, order])


def _largest_keeps(clusters: IntArray) -> IntArray:
    """(T, M) the same clusters in other numbers: of the parts of a cluster the (first) largest keeps its number."""
    numbers, latest = np.empty_like(clusters), np.zeros_like(clusters[0])
    for number, after in enumerate(clusters):
        current = latest.copy()
        for cluster in np.unique(latest):
            parts, sizes = np.unique(after[latest == cluster], return_counts=True)
            for part in np.delete(parts, sizes.argmax()):
                current[(latest == cluster) & (after == part)] = current.max() + 1
        numbers[number] = latest = current
    return numbers


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
    shown = [(variant, training) for variant, training in zip(variants, trainings, strict=True) if training is not None]
    if not shown:
        return note_chart("no method of this experiment has clusters")
    panels = [titled(_river(variant, training), variant.title) for variant, training in shown]
    lines = [alt.hconcat(*panels[start : start + 2], spacing=30) for start in range(0, len(panels), 2)]
    return headed(
        alt.vconcat(*lines, spacing=24) if len(lines) > 1 else lines[0],
        "; ".join(f"{variant.title}: {finding(training)}" for variant, training in shown),
    )


def _river(variant: ShownVariant, training: Partitions) -> Chart:
    painted = colours_of_bands(training)
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
    names = alt.Axis(title=None, orient="right", labelFontSize=10.5, labelLimit=120)
    chart: alt.Chart = alt.Chart(table).transform_filter(NOT_HIDDEN).mark_bar(size=ROW - 1).encode(
        x=alt.X("start:Q", title="round", scale=scale, axis=alt.Axis(values=ticks, format="d", grid=False)),
        x2="end:Q", y=alt.Y("institution:N", sort=list(training.institutions), axis=names),
        color=alt.Color("colour:N", scale=None), tooltip=tooltip("institution", "cluster", "together", "rounds"),
    ).properties(width=330, height=ROW * len(training.institutions))  # fmt: skip
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
    cut: list[Band] = []
    latest: dict[tuple[int, tuple[int, int]], int] = {}
    for number, clusters in enumerate(training.clusters, start=1):
        starts = [0, *(np.flatnonzero(np.diff(clusters)) + 1).tolist(), len(clusters)]
        current = {(int(clusters[a]), (a, b - 1)): number for a, b in pairwise(starts)}
        cut += [Band(*key, (first, number - 1)) for key, first in latest.items() if key not in current]
        latest = {key: latest.get(key, number) for key in current}
    cut += [Band(*key, (first, training.rounds)) for key, first in latest.items()]
    return sorted(cut, key=lambda band: (band.rounds[0], band.rows))


def colours_of_bands(training: Partitions) -> dict[int, str]:
    """Cluster -> a colour that no neighbouring cluster has in any round; the least used of these."""
    touching = {
        (int(cluster), int(other))
        for clusters in np.unique(training.clusters, axis=0)
        for cluster, other in pairwise(clusters)
        if cluster != other
    }
    chosen: dict[int, str] = {}
    for cluster in sorted(set(training.clusters.ravel().tolist())):
        beside = {chosen.get(other) for pair in touching if cluster in pair for other in pair}
        used = list(chosen.values())
        free = [colour for colour in COLOURS if colour not in beside] or list(COLOURS)
        chosen[cluster] = min(free, key=lambda colour: (used.count(colour), COLOURS.index(colour)))
    return chosen


def draw_clusters(variants: Sequence[ShownVariant], histories: Sequence[str], path: str) -> None:
    """Write the SVG of variants with clusters, from the history of the first repeat of each."""
    save_chart(river_chart(variants, [read_partitions(history) for history in histories]), path)
