"""Join several features of a subject, its views, as blocks of columns of one file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.imaging._settings import ViewSettings
from brainfed.runtime import ArrayFile, Float32, UserError, read_arrays

SCALING = ("weight", "centre", "unseen_site", "standardise", "clip")
"""Settings of a view that a method applies."""
OF_FEATURES = ("regions", "settings", "harmonised", "columns")
"""Metadata of features that a view keeps."""


@dataclass(frozen=True)
class JoinedViews:
    """Views side by side.

    Attributes:
        features: (n, sum of d) the views in order, 0 where a subject lacks one.
        metadata: subjects (those of the first view), views (a list of name, start, stop, weight, centre, unseen_site,
            standardise, clip, lacking (ids of subjects without the view), and of its features regions, settings,
            harmonised and columns), crossings of the views.
    """

    features: Float32
    metadata: dict[str, Any]


def join_views(files: Sequence[str | Path], views: Mapping[str, ViewSettings]) -> JoinedViews:
    """Join the feature files of the views, in the order of the settings.

    Raises:
        UserError: no subject of the first view has a further one.
    """
    parts = [read_arrays(path, ["features"]) for path in files]
    subjects = parts[0].subjects
    widths = [part.arrays["features"].shape[1] for part in parts]
    features = np.zeros((len(subjects), sum(widths)), dtype=np.float32)
    described: list[dict[str, Any]] = []
    start = 0
    for path, part, width, (name, settings) in zip(files, parts, widths, views.items(), strict=True):
        lacking = _fill(features[:, start : start + width], part, subjects)
        if len(lacking) == len(subjects):
            raise UserError(
                f"{path}: expected the view {name!r} of a subject that has {next(iter(views))!r} too, found none "
                f"({part.subjects[0]!r} ... against {subjects[0]!r} ...); fix `freesurfer.id` or `columns.file`."
            )
        described.append(
            {
                "name": name,
                "start": start,
                "stop": start + width,
                "lacking": lacking,
                **{key: asdict(settings)[key] for key in SCALING},
                **{key: part.metadata[key] for key in OF_FEATURES if key in part.metadata},
            }
        )
        start += width
    crossings = _crossings([(name, part.metadata["crossings"]) for name, part in zip(views, parts, strict=True)])
    return JoinedViews(features, {"subjects": list(subjects), "views": described, "crossings": crossings})


def _fill(block: Float32, part: ArrayFile, subjects: Sequence[str]) -> list[str]:
    """Copy the rows of a view (n, d) in the order of `subjects`; return the ids of those that lack it."""
    place = {subject: row for row, subject in enumerate(part.subjects)}
    here = [row for row, subject in enumerate(subjects) if subject in place]
    block[here] = part.arrays["features"][[place[subjects[row]] for row in here]]
    return [subject for subject in subjects if subject not in place]


def _crossings(views: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]) -> list[dict[str, Any]]:
    """Ledger rows of all views; rows of equal names carry the name of their view."""
    rows_of_views = [(name, row) for name, rows in views for row in rows]
    kinds = [(row["name"], row["direction"]) for _, row in rows_of_views]
    return [
        {**row, "name": f"{row['name']} ({name})" if kinds.count(kind) > 1 else row["name"]}
        for (name, row), kind in zip(rows_of_views, kinds, strict=True)
    ]
