"""What training a generator leaves behind."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class TrainedGenerator:
    """A generator's weights and how it got there.

    Attributes:
        arrays: what `load` needs, by name.
        history: institution (str), round (int), loss (str: which one, or `hidden_fraction`), value (float).
        counts: what was counted: parameters, floating-point operations, rounds.
        held_out: what it is worth on masks that it never saw, a row an institution; empty where that is not measured.
        crossings: one row for each kind of tensor that crossed institutions.
    """

    arrays: dict[str, NDArray[Any]]
    history: pd.DataFrame
    counts: dict[str, int] = field(default_factory=dict)
    crossings: tuple[dict[str, int | str], ...] = ()
    held_out: tuple[dict[str, float | str | None], ...] = ()
