"""Figures of the population graph: the graph of one institution, homophily against chance, degrees."""

import itertools
from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.figures.style import (
    FAINT,
    HALF,
    SEX_COLOURS,
    UNLABELLED,
    WIDE,
    bare,
    class_colours,
    drawing,
    new_figure,
    placed_figure,
    save_svg,
)
from brainfed.reporting.rounding import rounded, signed
from brainfed.reporting.tables.homophily import (
    ShownGraph,
    distinct_titles,
    homophily_table,
    read_graph,
    site_trace_table,
)
from brainfed.runtime.artefacts import write_tsv

LAYOUT_SEED = 0
GRAPH_COLOURS = ("#44559a", "#c9a227", "#7d8590", "#0f766e", "#882255", "#56a9cf", "#b45309", "#22262b")


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


def homophily_figure(table: pd.DataFrame) -> Figure:
    """Share of edges that join equal labels, and (hollow) the share for random partners.

    Args:
        table: title, label, found, chance; several rows a title and label are averaged.
    """
    means = table.groupby(["title", "label"], sort=False)[["found", "chance"]].mean()
    titles, labels = (list(dict.fromkeys(table[column])) for column in ("title", "label"))
    figure = new_figure(HALF, 1.15 + 0.24 * (len(titles) + 0.8) * len(labels))
    axes = figure.add_subplot()
    block = len(titles) + 0.8
    for place, (label, title) in enumerate(itertools.product(labels, titles)):
        row = labels.index(label) * block + place % len(titles)
        found, chance = (float(means.loc[(title, label), column]) for column in ("found", "chance"))
        colour = _colour(titles, title)
        axes.plot([chance, found], [row, row], color=colour, linewidth=1.5, alpha=0.6)
        axes.plot(chance, row, "o", markerfacecolor="white", markeredgecolor=FAINT, markersize=5)
        axes.plot(found, row, "o", color=colour, markersize=6)
        axes.annotate(
            _against_chance(found, chance), (np.nanmax([found, chance, 0]), row), (7, 0), textcoords="offset points",
            va="center", fontsize=7.5, color=colour,
        )  # fmt: skip
    axes.set_ylim(block * len(labels) - 1, -0.6)
    axes.set_yticks([index * block + (len(titles) - 1) / 2 for index in range(len(labels))], labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, 1.22)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.grid(axis="x")
    axes.set_xlabel("edges that join equal labels (share)")
    _key_above(axes, [(title, _colour(titles, title)) for title in titles] + [("hollow: expected by chance", FAINT)])
    return figure


def _colour(titles: Sequence[str], title: str) -> str:
    return GRAPH_COLOURS[titles.index(title) % len(GRAPH_COLOURS)]


def _key_above(axes: Axes, items: Sequence[tuple[str, str]]) -> None:
    """Coloured words, one below the other, above the axes."""
    for index, (text, colour) in enumerate(reversed(items)):
        axes.annotate(
            text, (0, 1), (0, 5 + 11 * index), xycoords="axes fraction", textcoords="offset points", color=colour,
            fontsize=7.5, fontweight="bold",
        )  # fmt: skip


def _against_chance(found: float, chance: float) -> str:
    if not np.isfinite(found):
        return "no such edge"
    return f"{rounded(found, 2)} ({signed(found - chance, 2)})"


def degrees_figure(graphs: Sequence[ShownGraph]) -> Figure:
    """Distribution of the number of neighbours over all repeats, one outline a distinct graph."""
    held: dict[str, list[NDArray[np.int64]]] = {}
    for shown, title in zip(graphs, distinct_titles(graphs), strict=True):
        held.setdefault(title, []).append(shown.degrees())
    figure = new_figure(HALF, 2.4 + 0.16 * len(held))
    axes = figure.add_subplot()
    key = []
    top = max(int(degrees.max()) for group in held.values() for degrees in group)
    for title, group in held.items():
        degrees = np.concatenate(group)
        colour = _colour(list(held), title)
        share = 100 * np.bincount(degrees, minlength=top + 1) / len(degrees)
        axes.step(np.arange(top + 1), share, where="mid", color=colour)
        key.append((f"{title}: median {rounded(np.median(degrees), 0)}", colour))
    axes.set_ylim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    _key_above(axes, key)
    axes.set_xlabel("neighbours of a subject")
    axes.set_ylabel("subjects (%)")
    return figure


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
        save_svg(homophily_figure(table), outputs["homophily"])
        save_svg(degrees_figure(shown), outputs["degrees"])
