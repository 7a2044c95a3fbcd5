"""Sides of a brain that is drawn as seen through glass: which is left, which is the front."""

from matplotlib.axes import Axes

from brainfed.reporting.figures.style import FAINT

SIDES = {"x": ("back", "front"), "y": ("left", "right"), "z": ("left", "right")}
"""View of nilearn's glass brain -> words at the two ends of its horizontal axis."""
SEEN = {"x": "from the side", "y": "from behind", "z": "from above, front at the top"}
"""View -> where it is looked at from."""


def name_sides(axes: Axes, view: str) -> None:
    """Write the sides of a view above the brain, and below it where it is looked at from.

    Args:
        axes: those of the glass brain.
        view: `x`, `y` or `z`, as nilearn's `display_mode`.
    """
    for x, word in zip((0.12, 0.88), SIDES[view], strict=True):
        axes.text(
            x, 0.93, word, transform=axes.transAxes, ha="left" if x < 0.5 else "right", fontsize=8.5, fontweight="bold"
        )
    axes.text(0.5, -0.06, SEEN[view], transform=axes.transAxes, ha="center", fontsize=7.5, color=FAINT)
