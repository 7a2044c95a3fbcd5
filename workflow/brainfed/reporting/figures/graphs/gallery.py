"""Draw the population graphs of a cohort."""

from collections.abc import Mapping, Sequence

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.figures.graphs.homophily import degrees_figure, graph_figure, homophily_figure
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.reporting.tables.homophily import homophily_table, read_graph
from brainfed.reporting.tables.sites import site_trace_table
from brainfed.runtime.artefacts import write_tsv


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
