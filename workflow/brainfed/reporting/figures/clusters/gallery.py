"""Draw the clusters of an experiment."""

from collections.abc import Sequence

from brainfed.reporting.figures.clusters.partitions import read_partitions
from brainfed.reporting.figures.clusters.river import river_figure
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.reporting.variants import ShownVariant


def draw_clusters(variants: Sequence[ShownVariant], histories: Sequence[str], path: str) -> None:
    """Write the SVG.

    Args:
        variants: those with clusters.
        histories: the first repeat's of each.
        path: the SVG.
    """
    with drawing():
        save_svg(river_figure(variants, [read_partitions(history) for history in histories]), path)
