"""A connectivity matrix as a small picture, for a page that shows many."""

import base64
from io import BytesIO

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 64
"""Largest number of pixels of a side; of more regions, neighbours in the order of the atlas are averaged."""
REACH = 0.8
"""Correlation with the full colour."""
COLOURS = 32


def thumbnail(matrix: NDArray[np.float64]) -> str:
    """A PNG in base64, blue below and red above 0.

    Args:
        matrix: (R, R) correlations.
    """
    side = min(len(matrix), SIDE)
    edges = np.linspace(0, len(matrix), side + 1).astype(int)[:-1]
    sums = np.add.reduceat(np.add.reduceat(matrix, edges, axis=0), edges, axis=1)
    sizes = np.diff([*edges, len(matrix)])
    share = np.clip(sums / np.outer(sizes, sizes) / REACH, -1, 1)
    levels = np.rint((share + 1) / 2 * (COLOURS - 1)).astype(np.uint8)
    picture = Image.fromarray(levels, mode="P")
    colours = matplotlib.colormaps["RdBu_r"](np.linspace(0, 1, COLOURS))[:, :3]
    picture.putpalette(np.rint(255 * colours).astype(np.uint8).tobytes())
    file = BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()
