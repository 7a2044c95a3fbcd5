"""The result of training a generator."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class TrainedGenerator:
    """A generator's weights and the record of its training.

    Attributes:
        arrays: weights by name, for `load`.
        history: institution (str), round (int), loss (str: its name, or `hidden_fraction`), value (float).
        counts: numbers of parameters, floating-point operations and rounds.
        held_out: errors on fresh masks, a row an institution; empty where they are not measured.
        crossings: one row for each kind of tensor that crossed institutions.
    """

    arrays: dict[str, NDArray[Any]]
    history: pd.DataFrame
    counts: dict[str, int] = field(default_factory=dict)
    crossings: tuple[dict[str, int | str], ...] = ()
    held_out: tuple[dict[str, float | str | None], ...] = ()
