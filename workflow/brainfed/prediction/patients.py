"""Region series of new patients, read and refused as those of a cohort."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.series.region_signal import varying_regions
from brainfed.imaging.series.roi_series import read_roi_series
from brainfed.imaging.series.shard import check_series
from brainfed.runtime.artefacts import read_arrays
from brainfed.runtime.errors import UserError

SHARD = ".safetensors"
"""Ending of a file of several patients, which the workflow extracted from their images."""


@dataclass(frozen=True)
class Patient:
    """One new patient.

    Attributes:
        name: the file, or `file:subject` of a file with several.
        series: (time, R).
        runs: lengths of its runs; empty: the series is one.
        silent: number of regions without signal.
    """

    name: str
    series: NDArray[np.float32]
    runs: tuple[int, ...]
    silent: int


def read_patients(files: Sequence[str | Path], about: Mapping[str, Any]) -> Iterator[Patient]:
    """Read files of region series, a table or an array of one patient or a shard of several.

    Args:
        files: paths.
        about: the model's description.

    Raises:
        UserError: a file is unusable, of another atlas, too short, or has regions without signal that training refused.
    """
    for file in files:
        for name, subject, series, runs in (
            _of_shard(file, about) if Path(file).suffix == SHARD else _of_one(file, about)
        ):
            check_series(subject, series, about["series"]["min_timepoints"])
            silent = int((~varying_regions(series)).sum())
            if silent and about["series"]["constant_regions"] != "impute_zero":
                raise UserError(
                    f"{name}: expected a signal in all {series.shape[1]} regions, as the training subjects had, found "
                    f"{silent} without; leave the patient out."
                )
            yield Patient(name, series, runs, silent)


Read = Iterator[tuple[str, str, NDArray[np.float32], tuple[int, ...]]]


def _of_one(file: str | Path, about: Mapping[str, Any]) -> Read:
    """One patient; a header must name the model's regions, by name or by index, in their order."""
    subject, regions = Path(file).name, about["regions"]
    found = read_roi_series(
        subject,
        file,
        len(regions),
        about["series"]["header"],
        about["indices"] or None,
        transposed=about["series"].get("transposed"),
        variable=about["series"].get("variable"),
        known=regions,
    )
    known = [tuple(regions)]
    if about["indices"]:
        known += [tuple(map(str, about["indices"])), tuple(str(place + 1) for place in range(len(regions)))]
    if found.regions not in known:
        raise _other_regions(str(file), found.regions, about)
    yield str(file), subject, found.series, ()


def _of_shard(file: str | Path, about: Mapping[str, Any]) -> Read:
    """Several patients; atlas and regions must be the model's, and every array must have a column a region."""
    held = read_arrays(file)
    atlas, wanted = held.metadata.get("atlas"), about["series"]["atlas"]
    if atlas != wanted:
        raise UserError(
            f"{file}: expected region series of atlas {wanted!r}, found {atlas!r}; extract them with the model's."
        )
    regions = held.metadata.get("regions")
    if regions is None:
        raise UserError(
            f"{file}: expected the names of the regions in the file's metadata, found none; let the workflow extract "
            "the series, or give one table of text a patient."
        )
    if list(regions) != list(about["regions"]):
        raise _other_regions(str(file), regions, about)
    lengths = held.metadata.get("runs", {}) if about["series"]["by_run"] else {}
    for subject, series in sorted(held.arrays.items()):
        if series.ndim != 2 or series.shape[1] != len(regions):
            raise UserError(
                f"{file}:{subject}: expected an array of time points x {len(regions)} regions, as the file's metadata "
                f"name them, found {' x '.join(map(str, series.shape)) or 'a number'}; extract the series anew."
            )
        yield f"{file}:{subject}", subject, series, tuple(lengths.get(subject, ()))


def _other_regions(file: str, found: Sequence[str], about: Mapping[str, Any]) -> UserError:
    regions = about["regions"]
    place = next((at for at, (one, other) in enumerate(zip(found, regions, strict=False)) if one != other), None)
    other = f"{len(found)} regions"
    if place is not None:
        other = f"{found[place]!r} as number {place + 1} in place of {regions[place]!r}"
    return UserError(
        f"{file}: expected the {len(regions)} regions of the model's atlas {about['series']['atlas']!r} in their "
        f"order, found {other}; extract the series with that atlas."
    )
