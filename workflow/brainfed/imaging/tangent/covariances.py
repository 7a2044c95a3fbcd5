"""Covariances of the subjects of one shard and their logarithms: what tangent features read of a subject.

A new subject costs its shard and the last step. Both are stored as float32 upper triangles. On ABIDE (200 regions)
this moves no tangent feature by more than 1e-6, with `shrinkage: 0.5` none by more than 1e-7.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.series.files import shared_regions
from brainfed.imaging.tangent.shrunk_correlation import mean_correlation
from brainfed.imaging.tangent.symmetric import in_blocks, spectral, to_triangles, triangle_length
from brainfed.runtime.artefacts import ArrayFile, read_arrays, write_arrays
from brainfed.runtime.errors import UserError

logger = logging.getLogger(__name__)

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

SMALLEST_EIGENVALUE = 1e-5
"""Below it, a covariance stored as float32 has no logarithm."""


@dataclass(frozen=True)
class Covariances:
    """Covariances of several subjects.

    Attributes:
        subjects: n ids.
        regions: R names.
        covariance: (n, R (R + 1) / 2) upper triangles of S.
        logarithm: the same of log S.
    """

    subjects: tuple[str, ...]
    regions: tuple[str, ...]
    covariance: Float32
    logarithm: Float32


def covariances(
    series: Mapping[str, NDArray[np.float32]],
    regions: Sequence[str],
    shrinkage: float,
    runs: Mapping[str, Sequence[int]],
    threads: int = 1,
) -> Covariances:
    """S = (1 - s) C + s I of every subject in ascending order, with the shrunk correlation C of its series.

    Args:
        series: subject -> (time, R).
        regions: R names.
        shrinkage: s.
        runs: subject -> lengths of its runs, for a C that is the mean over runs.
        threads: subjects that are computed side by side.

    Raises:
        UserError: a subject has another number of regions, or a covariance without a logarithm.
    """
    subjects = tuple(sorted(series))
    shape = (len(subjects), triangle_length(len(regions)))
    found = Covariances(subjects, tuple(regions), np.empty(shape, np.float32), np.empty(shape, np.float32))

    def compute(block: slice) -> None:
        correlation = np.stack([_correlation(one, series[one], regions, runs) for one in subjects[block]])
        shrunk = (1 - shrinkage) * correlation + shrinkage * np.eye(len(regions))
        found.covariance[block] = to_triangles(shrunk)
        found.logarithm[block] = to_triangles(_logarithms(shrunk, subjects[block]))

    in_blocks(compute, len(subjects), threads)
    logger.info("covariances of %d subjects, %d regions", *(len(names) for names in (subjects, regions)))
    return found


def write_covariances(path: str | Path, found: Covariances, shrinkage: float) -> None:
    """Write the covariances of one shard."""
    write_arrays(
        path,
        {"covariance": found.covariance, "logarithm": found.logarithm},
        {"subjects": list(found.subjects), "regions": list(found.regions), "shrinkage": shrinkage},
    )


def load_covariances(files: Sequence[str | Path], subjects: Sequence[str] | None = None) -> Covariances:
    """Read the covariances of `subjects` from their shards; by default of all, in ascending order.

    Raises:
        UserError: no shard has a subject, or one of `subjects`, or two shards name their regions differently.
    """
    shards = [read_arrays(path) for path in files]
    parts = zip(files, shards, strict=True)
    regions = shared_regions((path, tuple(one.metadata["regions"]), bool(one.subjects)) for path, one in parts)
    place = {subject: (one, row) for one in shards for row, subject in enumerate(one.subjects)}
    wanted = tuple(sorted(place) if subjects is None else subjects)
    absent = [subject for subject in wanted if subject not in place]
    if absent:
        raise UserError(
            f"Subject {absent[0]}: expected its covariance in one of {len(files)} shards, found none "
            f"({len(absent)} such subjects); delete the covariances and run again."
        )
    if not wanted:
        raise UserError(
            f"Covariances: expected a usable series in one of {len(files)} shards, found none; fix the files that the "
            "shards' quality tables list, or the settings that they are held against."
        )
    rows = [place[subject] for subject in wanted]
    return Covariances(wanted, regions, _stacked(rows, "covariance"), _stacked(rows, "logarithm"))


def _stacked(rows: Sequence[tuple[ArrayFile, int]], name: str) -> Float32:
    stacked = np.empty((len(rows), rows[0][0].arrays[name].shape[1]), np.float32)
    for position, (shard, row) in enumerate(rows):
        stacked[position] = shard.arrays[name][row]
    return stacked


def _correlation(
    subject: str, series: NDArray[np.float32], regions: Sequence[str], runs: Mapping[str, Sequence[int]]
) -> Float64:
    if series.shape[1] != len(regions):
        raise UserError(
            f"Subject {subject}: expected {len(regions)} regions as in its shard, found {series.shape[1]}; extract all "
            "series with one atlas."
        )
    return mean_correlation(series, runs.get(subject, ()))


def _logarithms(matrices: Float64, subjects: Sequence[str]) -> Float64:
    """(b, R, R) logarithms of the covariances of these subjects."""

    def logarithm(values: Float64) -> Float64:
        if (singular := values[:, 0] < SMALLEST_EIGENVALUE).any():
            raise UserError(
                f"Subject {subjects[int(np.argmax(singular))]}: expected a covariance with eigenvalues above "
                f"{SMALLEST_EIGENVALUE:g}, found {values.min():.1g}; set features.shrinkage to 0.1 or more."
            )
        return np.log(values)

    return spectral(matrices, logarithm)
