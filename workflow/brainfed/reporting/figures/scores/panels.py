"""A grid of unit squares, one a variant."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brainfed.reporting.figures.style import WIDE, new_figure

COLUMNS = 6


def unit_panels(count: int) -> tuple[Figure, list[Axes]]:
    """A grid of square panels that share the unit square; numbers at the outer edges only."""
    columns = min(COLUMNS, max(count, 4))
    rows = -(-count // columns)
    figure = new_figure(WIDE, 0.45 + rows * (0.42 + 0.86 * WIDE / columns))
    panels = [figure.add_subplot(rows, columns, number + 1) for number in range(count)]
    for number, axes in enumerate(panels):
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        axes.set_aspect("equal")
        axes.tick_params(labelsize=7, labelleft=number % columns == 0, labelbottom=number + columns >= count)
        axes.set_xticklabels(["0", ".5", "1"])
        axes.set_yticklabels(["0", ".5", "1"])
    return figure, panels


def broken(title: str, width: int = 17) -> str:
    """A title on at most two lines."""
    if len(title) <= width:
        return title
    cut = title.rfind(" ", 0, width + 1)
    return title if cut < 0 else f"{title[:cut]}\n{title[cut + 1 :]}"
