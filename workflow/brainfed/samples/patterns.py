"""Patterns of a method's linear models, with the names of the features."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_arrays
from brainfed.samples.inputs import Outcome

NONE = np.zeros((0, 0, 0), dtype=np.float32)
"""Patterns of a method that is no linear model."""


def named_patterns(
    outcome: Outcome, features: Sequence[Path | str], classes: Sequence[str] = ()
) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """Array and metadata of the file of patterns.

    Args:
        outcome: of the method.
        features: one file shared by the folds, or one a fold in order.
        classes: names of more than two classes.

    Returns:
        `patterns` (F, K, d), empty for a method without them. For a method with them also classes (names of the K
        models, empty for one), regions and settings of the features, and of selected features columns (a list a fold).
    """
    if outcome.patterns is None:
        return {"patterns": NONE}, {}
    described = [read_arrays(path, []).metadata for path in features]
    named: dict[str, Any] = {"regions": described[0]["regions"], "settings": described[0]["settings"]}
    if "columns" in described[0]:
        named["columns"] = [one["columns"] for one in described]
    several = outcome.patterns.shape[1] > 1
    return {"patterns": outcome.patterns}, {**named, "classes": list(classes) if several else []}
