"""Places of labels beside points, so that no label lies on another one or on a marker. All lengths are in points."""

from collections.abc import Iterator, Sequence
from itertools import chain
from math import cos, pi, sin
from typing import NamedTuple

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

DIRECTIONS = tuple(pi * part / 8 for part in (0, 8, 4, 12, 2, 6, 14, 10, 1, 7, 15, 9, 3, 5, 13, 11))
"""Right, left, above and below come first."""
STEP = 3.0
"""From one ring of places around a point to the next."""


class Box(NamedTuple):
    """A rectangle; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share an area."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the rectangle that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)


def text_size(text: str, size: float) -> tuple[float, float]:
    """Width and height of a text of one line in the report's font."""
    width, height, descent = text_to_path.get_text_width_height_descent(
        text, FontProperties(family="DejaVu Sans", size=size), ismath=False
    )
    return float(width), max(float(height + descent), size)


def label_places(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    radii: Sequence[float],
    frame: Box,
    others: Sequence[Box] = (),
) -> list[Box]:
    """The place of each label: the nearest free one inside the frame; without a free one the nearest.

    Args:
        points: centres of the markers.
        sizes: width and height of the labels.
        radii: of the markers.
        frame: where labels may lie.
        others: what no label may cover, beside the markers.
    """
    taken = [*others, *(Box(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True))]
    found: list[Box] = []
    for point, size, radius in zip(points, sizes, radii, strict=True):
        inside = (box for box in _places(point, size, radius, frame) if _inside(box, frame))
        first = next(inside, next(_places(point, size, radius, frame)))
        free = (box for box in chain([first], inside) if not any(map(box.overlaps, taken)))
        found.append(next(free, first))
        taken.append(found[-1])
    return found


def _places(point: tuple[float, float], size: tuple[float, float], radius: float, frame: Box) -> Iterator[Box]:
    """Places around a point, ring after ring, until the rings leave the frame."""
    (x, y), (width, height) = point, size
    reach = frame.right - frame.left + frame.top - frame.bottom
    for ring in range(1 + int(reach / STEP)):
        away = radius + 1.5 + ring * STEP
        for angle in DIRECTIONS:
            middle_x, middle_y = x + cos(angle) * (away + width / 2), y + sin(angle) * (away + height / 2)
            yield Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)


def _inside(box: Box, frame: Box) -> bool:
    return box.left >= frame.left and box.right <= frame.right and box.bottom >= frame.bottom and box.top <= frame.top
