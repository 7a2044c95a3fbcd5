"""Views of the subjects: blocks of columns of the features, as the file that joins them describes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_arrays
from brainfed.runtime.errors import UserError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class View:
    """One block of columns.

    Attributes:
        name: name in the config.
        columns: the block among the columns of the features.
        weight: its share of the mean squared norm of a subject, relative to the other views.
        centre: mean that is subtracted: of all training subjects, or of those of the subject's site.
        unseen_site: mean that is subtracted instead at a site without training subjects: of its own subjects, or of all
            training subjects.
        standardise: whether every column is divided by its standard deviation over the training subjects.
        clip: largest absolute value after that; None: no limit.
        present: (n,) mask of the subjects that have the view; the columns of the others are 0.
    """

    name: str
    columns: slice
    weight: float
    centre: Literal["all", "site"]
    unseen_site: Literal["own", "all"]
    standardise: bool
    clip: float | None
    present: Mask


def read_views(files: Sequence[Path | str], subjects: Sequence[str]) -> tuple[View, ...]:
    """The views in feature files, with masks in the order of `subjects`; empty if these have one view.

    Args:
        files: one file shared by the folds, or one a fold; views and missing subjects are the same in all.
        subjects: n ids.

    Raises:
        UserError: two files differ in their views, or in the subjects that lack one.
    """
    found = [read_arrays(path, []).metadata.get("views", []) for path in files]
    for path, described in zip(files, found, strict=True):
        if [_layout(view) for view in described] != [_layout(view) for view in found[0]]:
            raise UserError(f"{path}: expected the views of {files[0]}, found others; delete both and run again.")
    return tuple(_view(described, subjects) for described in found[0]) if found else ()


def _layout(view: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(view[key] for key in ("name", "start", "stop", "lacking"))


def _view(described: dict[str, Any], subjects: Sequence[str]) -> View:
    lacking = set(described["lacking"])
    return View(
        name=described["name"],
        columns=slice(described["start"], described["stop"]),
        weight=described["weight"],
        centre=described["centre"],
        unseen_site=described["unseen_site"],
        standardise=described["standardise"],
        clip=described["clip"],
        present=np.array([subject not in lacking for subject in subjects], dtype=np.bool_),
    )
