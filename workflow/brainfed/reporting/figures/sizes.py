"""Sizes of the graphs of a cohort whose samples they are from the start, and a summary of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from brainfed.cohort.classes import ClassWords
from brainfed.graphs.connectome import contents
from brainfed.reporting.figures.style import INK, WIDE, class_colours, drawing, new_figure, save_svg
from brainfed.runtime.artefacts import ArrayFile, canonical_json, read_arrays, read_table, write_text
from brainfed.runtime.provenance import file_digest


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
    with drawing():
        save_svg(sizes_figure(sizes, words), drawn)
    write_text(summary, canonical_json(_summary(file, sizes, people) | {"digest": file_digest(graphs)}) + "\n")


def sizes_figure(sizes: Sizes, words: ClassWords) -> Figure:
    """Quartiles, and 5 to 95 of 100, of the graphs' sizes and degrees; a row a data set and class."""
    names = sorted(set(sizes.data_set))
    rows = [(name, code) for name in names for code in words.shown if _of(sizes, name, code).any()][::-1]
    colours = class_colours(words.count)
    figure = new_figure(WIDE, 1.1 + 0.3 * len(rows))
    for axes, values, title in zip(
        figure.subplots(1, 2),
        (sizes.nodes.astype(np.float64), sizes.degree),
        ("nodes of a graph", "neighbours of a node, mean of a graph"),
        strict=True,
    ):
        boxes = axes.boxplot(
            [values[_of(sizes, *row)] for row in rows], orientation="horizontal", positions=range(len(rows)),
            widths=0.6, whis=(5, 95), showfliers=False, manage_ticks=False, patch_artist=True,
            medianprops={"color": INK, "linewidth": 1.4},
        )  # fmt: skip
        for box, (_, code) in zip(boxes["boxes"], rows, strict=True):
            box.set(facecolor=colours[code], alpha=0.8, linewidth=0.6)
        titles = [f"{name}: {words.short[code]}" if len(names) > 1 else words.short[code] for name, code in rows]
        axes.set_yticks(range(len(rows)), titles)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0)
        axes.set_xlabel(title)
        axes.grid(axis="x")
    return figure


def _sizes(file: ArrayFile, people: pd.DataFrame, kept: NDArray[np.bool_]) -> Sizes:
    nodes = np.diff(file.arrays["node_start"])
    return Sizes(
        people["site"].to_numpy(dtype=object)[kept],
        people["diagnosis"].to_numpy(dtype=np.int64)[kept],
        nodes[kept],
        (np.diff(file.arrays["edge_start"]) / nodes)[kept],
    )


def _of(sizes: Sizes, name: str, code: int) -> NDArray[np.bool_]:
    return np.asarray((sizes.data_set == name) & (sizes.label == code))


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
