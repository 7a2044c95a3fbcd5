"""Which phenotypes a cohort's graph can compare: those that somebody has."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.settings import GraphSettings


def known_phenotypes(
    settings: GraphSettings, *, site: NDArray[np.int64], sex: NDArray[np.int64], age: NDArray[np.float64]
) -> GraphSettings:
    """The settings without the phenotypes that are unknown of everybody: sex where it is what is learnt, say.

    Args:
        settings: of the graph.
        site: (n,) codes, -1 unknown.
        sex: (n,) codes, -1 unknown.
        age: (n,) years, NaN unknown.
    """
    known = {"site": (site >= 0).any(), "sex": (sex >= 0).any(), "age": np.isfinite(age).any()}
    return replace(settings, phenotypes=tuple(name for name in settings.phenotypes if known[name]))
