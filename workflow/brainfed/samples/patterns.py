"""Patterns of a method's linear models, with a description of the features."""

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
    outcome: Outcome, features: Sequence[Path | str], classes: Sequence[str] = (), subjects: Sequence[str] = ()
) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """Array and metadata of the file of patterns.

    Args:
        outcome: of the method.
        features: one file shared by the folds, or one a fold in order.
        classes: names of more than two classes.
        subjects: n ids.

    Returns:
        `patterns` (F, K, d), empty for a method without them. For a method with them also classes (names of the K
        models, empty for one); views, a list of name (empty for features without views), start, stop, regions and
        settings of each; and columns, for every fold and view the selected features, none without selection. With
        contributions of views also the array `contributions` (n, K, V), and subjects.
    """
    if outcome.patterns is None:
        return {"patterns": NONE}, {}
    folds, models, width = outcome.patterns.shape
    described = [_views(path, width) for path in features]
    each = described if len(described) > 1 else described * folds
    views = [{key: view[key] for key in ("name", "start", "stop", "regions", "settings")} for view in each[0]]
    columns = [[view.get("columns") for view in own] for own in each]
    named = {"views": views, "columns": columns, "classes": list(classes) if models > 1 else []}
    if outcome.contributions is None:
        return {"patterns": outcome.patterns}, named
    return {"patterns": outcome.patterns, "contributions": outcome.contributions}, named | {"subjects": list(subjects)}


def _views(path: Path | str, width: int) -> list[dict[str, Any]]:
    """The metadata of every view in a file of features; features without views are one view."""
    metadata = read_arrays(path, []).metadata
    return metadata.get("views") or [{"name": "", "start": 0, "stop": width, **metadata}]
