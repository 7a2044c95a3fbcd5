"""Restrict the phenotypes of a graph to those known for any subject."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.settings import GraphSettings


def known_phenotypes(
    settings: GraphSettings, *, site: NDArray[np.int64], sex: NDArray[np.int64], age: NDArray[np.float64]
) -> GraphSettings:
    """Settings without phenotypes that are unknown for all subjects, such as sex under the target sex.

    Args:
        settings: of the graph.
        site: (n,) codes, -1 unknown.
        sex: (n,) codes, -1 unknown.
        age: (n,) years, NaN unknown.
    """
    known = {"site": (site >= 0).any(), "sex": (sex >= 0).any(), "age": np.isfinite(age).any()}
    return replace(settings, phenotypes=tuple(name for name in settings.phenotypes if known[name]))
