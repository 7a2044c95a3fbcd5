"""Charts of graphs: homophily against chance, numbers of neighbours, sizes of graphs that are samples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import ClassWords
from brainfed.graphs import contents
from brainfed.reporting import GRAPHS, class_colours, rounded, signed
from brainfed.reporting.charts._distributions import box_rows, steps
from brainfed.reporting.charts._style import Chart, Line, dot_rows, save_chart
from brainfed.reporting.tables import ShownGraph, distinct_titles
from brainfed.runtime import ArrayFile, canonical_json, file_digest, read_arrays, read_table, write_text

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
        shown=[_against_chance(found, chance) for found, chance in ends.itertuples(index=False)],
    ).rename(columns={"title": "graph"})  # fmt: skip
    groups = {title: (title, colour) for title, colour in _colours(titles).items()}
    return dot_rows(
        rows.drop(columns=["found", "chance"]), "edges that join equal labels (share; hollow: expected by chance)",
        groups, ("graph", "label", "shown"), width=PAIR, row="label", lines=[Line(0), Line(1)], lanes=True,
        shape="circle",
    )  # fmt: skip


def _colours(titles: Sequence[str]) -> dict[str, str]:
    return {title: GRAPHS[number % len(GRAPHS)] for number, title in enumerate(titles)}


def _against_chance(found: float, chance: float) -> str:
    if not np.isfinite(found):
        return "no such edge"
    return f"{rounded(found, 2)} ({signed(found - chance, 2)})"


def degrees_chart(graphs: Sequence[ShownGraph]) -> Chart:
    """Distribution of the number of neighbours over all repeats, one outline a distinct graph."""
    held: dict[str, list[NDArray[np.int64]]] = {}
    for shown, title in zip(graphs, distinct_titles(graphs), strict=True):
        held.setdefault(title, []).append(shown.degrees())
    top = max(int(degrees.max()) for group in held.values() for degrees in group)
    parts, colours = [], {}
    for (title, group), colour in zip(held.items(), _colours(list(held)).values(), strict=True):
        degrees = np.concatenate(group)
        name = f"{title}: median {rounded(np.median(degrees), 0)}"
        colours[name] = colour
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
    label: NDArray[np.int64]
    nodes: NDArray[np.int64]
    degree: NDArray[np.float64]


def draw_sizes(graphs: str, participants: str, included: str, drawn: str, summary: str, words: ClassWords) -> None:
    """Write the SVG and the summary.

    Args:
        graphs: the graphs of the cohort.
        participants: subject, site, diagnosis: id, data set and class of a graph.
        included: the graphs of the analysis.
        drawn: path of the SVG.
        summary: path of the summary.
        words: names of the classes.
    """
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
        f"{name}: {words.short[code]}" if len(names) > 1 else words.short[code]: (colours[code], held)
        for name in names
        for code in words.shown
        if (held := np.asarray((sizes.data_set == name) & (sizes.label == code))).any()
    }
    panels = [
        box_rows(
            {title: (colour, values[held]) for title, (colour, held) in rows.items()}, words_of_axis, width=330,
            dots=False, whiskers=(5, 95), named=not number, start=0,
        )
        for number, (values, words_of_axis) in enumerate(
            [(sizes.nodes.astype(np.float64), "nodes of a graph"),
             (sizes.degree, "neighbours of a node, mean of a graph")]
        )
    ]  # fmt: skip
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
    held = contents(file.arrays)
    labels: Sequence[int] = people["diagnosis"].tolist()
    pairs: dict[bytes, set[int]] = {}
    for content, label in zip(held, labels, strict=True):
        pairs.setdefault(content, set()).add(label)
    times = Counter(held)
    return {
        "data_sets": file.metadata["data_sets"],
        "nodes": _range(sizes.nodes),
        "degree": round(float(np.median(sizes.degree)), 2),
        "equal": sum(times[content] > 1 for content in held),
        "contradicting": sum(len(pairs[content]) > 1 for content in held),
        "regions": max(data_set["features"] for data_set in file.metadata["data_sets"]),
    }


def _range(values: NDArray[np.int64]) -> dict[str, float]:
    return {"median": float(np.median(values)), "least": int(values.min()), "most": int(values.max())}
