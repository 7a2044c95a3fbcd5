"""The population graph of one institution, drawn as a graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting import SEX_COLOURS, UNLABELLED, class_colours
from brainfed.reporting.charts import degrees_chart, homophily_chart, save_chart
from brainfed.reporting.figures._style import drawing, placed_figure, save_svg
from brainfed.reporting.tables import ShownGraph, homophily_table, read_graph, site_trace_table
from brainfed.runtime import Float64, IntArray, write_tsv

LAYOUT_SEED = 0


def graph_figure(shown: ShownGraph) -> Figure:
    """The first institution's subjects, once a panel in one layout: coloured by class, sex and age."""
    institution = sorted(shown.people["institution"].dropna().unique())[0]
    members = np.flatnonzero((shown.people["institution"] == institution).to_numpy())
    people, words, colours = shown.people.iloc[members], shown.words, class_colours(shown.words.count)
    places, edges = _layout(shown, members)
    groups = {
        words.target.capitalize(): [
            (words.short[code], colours[code], people["diagnosis"] == code) for code in words.shown
        ]
    }
    if words.target != "sex":
        groups["Sex"] = [(sex, SEX_COLOURS[sex], people["sex"] == sex) for sex in ("male", "female")]
    figure = placed_figure(3.55)
    panels = figure.subplots(1, len(groups) + 1)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.15, wspace=0.06)
    size = float(np.clip(2600 / len(members), 8, 55))
    dots: dict[str, Any] = {"s": size, "edgecolors": "white", "linewidths": 0.4, "zorder": 2}
    for axes, title in zip(panels, [*groups, "Age"], strict=True):
        axes.set_axis_off()
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(title)
        axes.add_collection(LineCollection(list(places[edges]), colors="#b9bec6", linewidths=0.35, alpha=0.7, zorder=1))
        if title in groups:
            _groups_in_colour(axes, places, groups[title], dots)
    ages = people["age"].to_numpy(dtype=np.float64)
    drawn = panels[-1].scatter(places[:, 0], places[:, 1], c=ages, cmap="viridis", plotnonfinite=False, **dots)
    bar = figure.colorbar(drawn, cax=panels[-1].inset_axes((0.2, -0.07, 0.6, 0.03)), orientation="horizontal")
    bar.outline.set_visible(False)
    bar.set_label("age (years)", fontsize=8, labelpad=1)
    bar.ax.tick_params(labelsize=7, length=2)
    return figure


def _groups_in_colour(
    axes: Axes, places: Float64, groups: Sequence[tuple[str, str, "pd.Series[bool]"]], dots: dict[str, Any]
) -> None:
    """A dot a subject in the colour of its group, and below them the groups' names and sizes."""
    colour = np.full(len(places), UNLABELLED, dtype=object)
    for number, (name, paint, chosen) in enumerate(groups):
        colour[chosen.fillna(False).to_numpy(dtype=bool)] = paint
        axes.text(
            (2 * number + 1) / (2 * len(groups)), -0.1, f"{name} (n = {int(chosen.sum())})", color=paint,
            fontweight="bold", ha="center", transform=axes.transAxes, fontsize=8,
        )  # fmt: skip
    axes.scatter(places[:, 0], places[:, 1], c=list(colour), **dots)


def _layout(shown: ShownGraph, members: IntArray) -> tuple[Float64, IntArray]:
    """(n, 2) places of the members and (edges, 2) positions of the ends of their edges, by force-directed layout."""
    position = np.full(len(shown.people), -1)
    position[members] = np.arange(len(members))
    row, column = position[shown.graph.row], position[shown.graph.column]
    chosen = (row >= 0) & (column >= 0) & (row < column)
    edges = np.column_stack([row[chosen], column[chosen]])
    network = nx.Graph()
    network.add_nodes_from(range(len(members)))
    network.add_weighted_edges_from(
        (int(a), int(b), float(w)) for (a, b), w in zip(edges, shown.graph.weight[chosen], strict=True)
    )
    places = nx.spring_layout(network, seed=LAYOUT_SEED, k=1.6 / np.sqrt(len(members)), iterations=150, method="force")
    return np.array([places[node] for node in range(len(members))]), edges


def draw_graphs(
    stages: Sequence[str],
    graphs: Sequence[str],
    splits: Sequence[str],
    participants: str,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the SVGs called graph, homophily and degrees, and the tables called table and site_trace.

    Args:
        stages: stage name of every graph.
        graphs: graph artefacts; the first one is drawn as a graph.
        splits: the split of every graph.
        outputs: figure -> path.
    """
    shown = [read_graph(*files, participants, words) for files in zip(stages, graphs, splits, strict=True)]
    table = homophily_table(shown)
    write_tsv(outputs["table"], table)
    write_tsv(outputs["site_trace"], site_trace_table(shown))
    with drawing():
        save_svg(graph_figure(shown[0]), outputs["graph"])
    save_chart(homophily_chart(table), outputs["homophily"])
    save_chart(degrees_chart(shown), outputs["degrees"])
