"""The population graph of one institution, drawn as a graph."""

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting import SEX_COLOURS, UNLABELLED, class_colours
from brainfed.reporting.charts import degrees_chart, homophily_chart, save_chart
from brainfed.reporting.figures._style import WIDE, bare, drawing, placed_figure, save_svg
from brainfed.reporting.tables import ShownGraph, homophily_table, read_graph, site_trace_table
from brainfed.runtime import write_tsv

LAYOUT_SEED = 0


def graph_figure(shown: ShownGraph) -> Figure:
    """The first institution's subjects, once a panel in one layout: coloured by class, sex and age."""
    institution = sorted(shown.people["institution"].dropna().unique())[0]
    members = np.flatnonzero((shown.people["institution"] == institution).to_numpy())
    people = shown.people.iloc[members]
    places, edges = _layout(shown, members)
    figure = placed_figure(WIDE, 3.55)
    words = shown.words
    titles = [words.target.capitalize(), *(["Sex"] if words.target != "sex" else []), "Age"]
    panels = figure.subplots(1, len(titles))
    figure.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.15, wspace=0.06)
    for axes, panel in zip(panels, titles, strict=True):
        bare(axes)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(panel)
        axes.add_collection(LineCollection(list(places[edges]), colors="#b9bec6", linewidths=0.35, alpha=0.7, zorder=1))
        size = float(np.clip(2600 / len(members), 8, 55))
        if panel == "Age":
            dots = axes.scatter(
                *places.T, c=people["age"].to_numpy(dtype=np.float64), cmap="viridis", s=size, edgecolors="white",
                linewidths=0.4, zorder=2, plotnonfinite=False,
            )  # fmt: skip
            bar = figure.colorbar(dots, cax=axes.inset_axes((0.2, -0.07, 0.6, 0.03)), orientation="horizontal")
            bar.outline.set_visible(False)
            bar.set_label("age (years)", fontsize=8, labelpad=1)
            bar.ax.tick_params(labelsize=7, length=2)
            continue
        if panel == titles[0]:
            colours = class_colours(words.count)
            items = [(words.short[code], colours[code], people["diagnosis"] == code) for code in words.shown]
        else:
            items = [(sex, SEX_COLOURS[sex], people["sex"] == sex) for sex in ("male", "female")]
        colour = np.full(len(people), UNLABELLED, dtype=object)
        for _, paint, chosen in items:
            colour[chosen.fillna(False).to_numpy(dtype=bool)] = paint
        axes.scatter(*places.T, c=list(colour), s=size, edgecolors="white", linewidths=0.4, zorder=2)
        for place, (title, paint, chosen) in enumerate(items):
            side = (2 * place + 1) / (2 * len(items))
            axes.text(
                side, -0.1, f"{title} (n = {int(chosen.sum())})", color=paint, fontweight="bold", ha="center",
                transform=axes.transAxes, fontsize=8,
            )  # fmt: skip
    return figure


def _layout(shown: ShownGraph, members: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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
    found = nx.spring_layout(network, seed=LAYOUT_SEED, k=1.6 / np.sqrt(len(members)), iterations=150, method="force")
    return np.array([found[node] for node in range(len(members))]), edges


# Draw the population graphs of a cohort.


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
        participants: the phenotype artefact.
        outputs: figure -> path.
        words: names of the classes.
    """
    shown = [
        read_graph(name, path, split, participants, words)
        for name, path, split in zip(stages, graphs, splits, strict=True)
    ]
    table = homophily_table(shown)
    write_tsv(outputs["table"], table)
    write_tsv(outputs["site_trace"], site_trace_table(shown))
    with drawing():
        save_svg(graph_figure(shown[0]), outputs["graph"])
    save_chart(homophily_chart(table), outputs["homophily"])
    save_chart(degrees_chart(shown), outputs["degrees"])
