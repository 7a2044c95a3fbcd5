"""Tangent features (Varoquaux et al. 2010): covariances, their references, vectors."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.federation import EVERY, TOGETHER, Ledger, Link, add_up, record_downloads, record_help, record_uploads
from brainfed.imaging.series import shared_regions, split_runs, standardised, varying_regions
from brainfed.runtime import ArrayFile, BoolArray, Float32, Float64, FloatArray, UserError, read_arrays, write_arrays

# Stacks of symmetric matrices: their upper triangles as rows, and functions of their eigenvalues.


BLOCK = 16
"""Matrices that one thread decomposes at a time."""


def to_triangles(matrices: Float64) -> Float64:
    """(..., R (R + 1) / 2) upper triangles with the diagonal of (..., R, R), in `np.triu_indices(R)` order."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns])


def from_triangles(triangles: NDArray[np.floating]) -> Float64:
    """(..., R, R) symmetric matrices of (..., R (R + 1) / 2) upper triangles with the diagonal."""
    regions = round((np.sqrt(1 + 8 * triangles.shape[-1]) - 1) / 2)
    rows, columns = np.triu_indices(regions)
    matrices = np.empty((*triangles.shape[:-1], regions, regions))
    matrices[..., rows, columns] = triangles
    matrices[..., columns, rows] = triangles
    return matrices


def spectral(matrices: Float64, function: Callable[[Float64], Float64]) -> Float64:
    """V f(l) V' of (..., R, R) symmetric matrices V l V'."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def in_blocks(work: Callable[[slice], None], count: int, threads: int) -> None:
    """Call `work` for blocks of `count` matrices, on several threads; LAPACK releases Python's lock.

    Every block is computed alone, so that the number of threads changes no bit where BLAS has one thread, as in a job.
    """
    blocks = [slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, blocks):
            pass


# Correlation of region series, shrunk towards the identity as Ledoit and Wolf (2004) estimate it.
#
# Of standardised series x (T, R) with the correlation C, the estimate is (1 - d) C + d I, where
#
#     d = min(b, a) / a,    a = |C - I|^2 / R,    b = (sum_t |x_t|^4 / T - |C|^2) / (R T).
#
# It equals scikit-learn's `LedoitWolf` of these series, whose mean variance is 1.


def mean_correlation(series: Float32, lengths: Sequence[int] = ()) -> Float64:
    """(R, R) mean over runs of the shrunk correlation of a subject; runs of all lengths have equal weights.

    A mean of positive definite matrices is positive definite. Therefore a region that is constant in one run counts
    there with the correlation 0, and is not left out of the mean.

    Args:
        series: (time, R), the runs one after the other.
        lengths: of the runs; empty: the series is one.
    """
    return np.asarray(np.mean([shrunk_correlation(run) for run in split_runs(series, lengths)], axis=0))


def shrunk_correlation(series: Float32) -> Float64:
    """(R, R) shrunk correlation of a (time, R) series; a region without signal has the row and column of the identity.

    Such a region does not affect the others.
    """
    varying = np.flatnonzero(varying_regions(series))
    values = standardised(series)[:, varying]
    time, regions = values.shape
    matrix = np.eye(series.shape[1])
    if regions:
        correlation = values.T @ values / time
        np.fill_diagonal(correlation, 1.0)
        matrix[np.ix_(varying, varying)] = (1 - _shrinkage(values, correlation)) * correlation
        np.fill_diagonal(matrix, 1.0)
    return matrix


def _shrinkage(values: Float64, correlation: Float64) -> float:
    """The weight d of the identity; 0 if the correlation is the identity."""
    time, regions = values.shape
    squared = float((correlation**2).sum())
    distance = squared / regions - 1
    error = (float((np.square(values).sum(axis=1) ** 2).sum()) / time - squared) / (regions * time)
    return min(error, distance) / distance if distance > 0 else 0.0


# Covariances of the subjects of one shard and their logarithms: what tangent features read of a subject.
#
# A new subject costs its shard and the last step. Both are stored as float32 upper triangles. On ABIDE (200 regions)
# this moves no tangent feature by more than 1e-6, with `shrinkage: 0.5` none by more than 1e-7.

logger = logging.getLogger(__name__)

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
    series: Mapping[str, Float32],
    regions: Sequence[str],
    shrinkage: float,
    runs: Mapping[str, Sequence[int]],
    threads: int = 1,
) -> Covariances:
    """S = (1 - s) C + s I of every subject in ascending order, with the shrunk correlation C of its series.

    Args:
        series: subject -> (time, R).
        runs: subject -> lengths of its runs, for a C that is the mean over runs.

    Raises:
        UserError: a subject has another number of regions, or a covariance without a logarithm.
    """
    subjects = tuple(sorted(series))
    shape = (len(subjects), len(regions) * (len(regions) + 1) // 2)
    result = Covariances(subjects, tuple(regions), np.empty(shape, np.float32), np.empty(shape, np.float32))

    for subject in subjects:
        if series[subject].shape[1] != len(regions):
            raise UserError(
                f"Subject {subject}: expected {len(regions)} regions as in its shard, found "
                f"{series[subject].shape[1]}; extract all series with one atlas."
            )

    def compute(block: slice) -> None:
        correlation = np.stack([mean_correlation(series[each], runs.get(each, ())) for each in subjects[block]])
        shrunk = (1 - shrinkage) * correlation + shrinkage * np.eye(len(regions))
        result.covariance[block] = to_triangles(shrunk)
        result.logarithm[block] = to_triangles(_logarithms(shrunk, subjects[block]))

    in_blocks(compute, len(subjects), threads)
    logger.info("covariances of %d subjects, %d regions", *(len(names) for names in (subjects, regions)))
    return result


def write_covariances(path: str | Path, shard: Covariances, shrinkage: float) -> None:
    """Write the covariances of one shard."""
    about = {"subjects": list(shard.subjects), "regions": list(shard.regions), "shrinkage": shrinkage}
    write_arrays(path, {"covariance": shard.covariance, "logarithm": shard.logarithm}, about)


def load_covariances(files: Sequence[str | Path], subjects: Sequence[str] | None = None) -> Covariances:
    """Read the covariances of `subjects` from their shards; by default of all, in ascending order.

    Raises:
        UserError: no shard has a subject, or one of `subjects`, or two shards name their regions differently.
    """
    shards = [read_arrays(path) for path in files]
    parts = zip(files, shards, strict=True)
    regions = shared_regions((path, tuple(shard.metadata["regions"]), bool(shard.subjects)) for path, shard in parts)
    place = {subject: (shard, row) for shard in shards for row, subject in enumerate(shard.subjects)}
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


# References of tangent features: log-Euclidean means, each a sum over subjects (Arsigny et al. 2006).
#
# R = expm(mean of log S_i). An institution sends the sum of its log S_i and the number of its subjects, so that a
# reference of several institutions is that of their pooled subjects.

CROSSES = {
    "log-covariance-sum": ("regions", "other-regions"),
    "summed-subjects": (),
    "tangent-reference": ("regions", "other-regions"),
}
SENT = {"log-covariance-sum": ("region-pairs",), "summed-subjects": ()}
"""Sums as they are sent: a symmetric matrix is its upper triangle."""
MATRIX_BYTES, COUNT_BYTES = 8, 4


@dataclass(frozen=True)
class LogSum:
    """Sum of the logarithms of several covariances.

    Attributes:
        total: (R (R + 1) / 2) upper triangle.
        subjects: their number.
    """

    total: Float64
    subjects: int

    def __add__(self, other: "LogSum") -> "LogSum":
        """Sum over the subjects of both."""
        return LogSum(self.total + other.total, self.subjects + other.subjects)

    @property
    def whitening(self) -> Float64:
        """(R, R) inverse square root of the reference."""
        return spectral(from_triangles(self.total / self.subjects), lambda values: np.exp(-values / 2))


def log_sum(logarithms: FloatArray) -> LogSum:
    """Sum over the rows of (n, R (R + 1) / 2) upper triangles."""
    return LogSum(logarithms.sum(axis=0, dtype=np.float64), len(logarithms))


def total_of(own_sum: LogSum, link: Link, regions: int, subjects: int) -> LogSum:
    """The sum over the subjects of all institutions that `link` reaches.

    Raises:
        UndeclaredCrossing: the sum is no triangle of R regions.
    """
    ledger = Ledger(SENT, {"region-pairs": regions * (regions + 1) // 2}, "features")
    parts = {"log-covariance-sum": own_sum.total, "summed-subjects": np.array(own_sum.subjects)}
    total = add_up(link, ledger, subjects, parts)
    return LogSum(total["log-covariance-sum"], int(total["summed-subjects"]))


def tangent_ledger(regions: int) -> Ledger:
    """Empty ledger for references of this number of regions."""
    return Ledger(CROSSES, {"regions": regions, "other-regions": regions}, "features")


def whitening_of_fold(
    logarithms: FloatArray,
    institution: Sequence[str],
    training: BoolArray,
    reference: Literal["institution", "training"],
    ledger: Ledger,
    link: Link = TOGETHER,
    institutions: Sequence[str] = (),
) -> dict[str, Float64]:
    """(R, R) inverse square root of the reference of every institution, fitted on training subjects.

    With `institution`, nothing crosses, except to institutions without training subjects: they receive the sums of all
    others. With `training`, a server receives the sums of all, and returns one reference.

    Args:
        logarithms: (n, R (R + 1) / 2) upper triangles of log S.
        institution: (n,) names.
        training: (n,) mask.
        reference: the group whose mean an institution uses.
        ledger: of `tangent_ledger`; takes the crossings.
        link: to institutions whose subjects are not here.
        institutions: names of all, in order, also of those that are not here; empty: those of `institution`.

    Raises:
        ValueError: there is no training subject here, and none may be elsewhere.
    """
    where = np.asarray(institution)
    names = list(institutions) or np.unique(where).tolist()
    every = {name: log_sum(logarithms[training & (where == name)]) for name in names if name in where}
    sums = {name: part for name, part in every.items() if part.subjects}
    if not (sums or link.apart):
        raise ValueError("expected at least one training subject, found none")
    for name, part in sums.items():
        logger.info("tangent reference: %d training subjects of %s", part.subjects, name)
    sizes = {code: int((where == name).sum()) for code, name in enumerate(names) if name in every and len(names) > 1}
    fitted = {code: size for code, size in sizes.items() if names[code] in sums}
    if reference == "training":
        record_sums(ledger, fitted, sizes)
    else:
        helped = {code: size for code, size in sizes.items() if code not in fitted}
        record_help(ledger, fitted, helped, _sum_content(ledger))
    first, *others = (sums or every).values()
    together = sum(others, first)
    if reference == "training":
        together = total_of(together, link, ledger.axes["regions"], len(where))
    common, own = together.whitening, sums if reference == "institution" else {}
    return {name: own[name].whitening if name in own else common for name in every}


def record_sums(ledger: Ledger, senders: Mapping[int, int], receivers: Mapping[int, int]) -> None:
    """Record the sums that institutions send to a server, and the reference that it returns.

    `senders` and `receivers` map institutions to their numbers of subjects.
    """
    record_uploads(ledger, senders, _sum_content(ledger))
    record_downloads(ledger, receivers, {"tangent-reference": (_shape(ledger), MATRIX_BYTES)})


def crossings_of_all(regions: int) -> tuple[dict[str, int | str], ...]:
    """Crossings of a reference of all subjects, which needs no split: rows of `EVERY` institution."""
    ledger = tangent_ledger(regions)
    record_sums(ledger, {EVERY: 0}, {EVERY: 0})
    return ledger.rows()


def _sum_content(ledger: Ledger) -> dict[str, tuple[tuple[int, ...], int]]:
    return {"log-covariance-sum": (_shape(ledger), MATRIX_BYTES), "summed-subjects": ((), COUNT_BYTES)}


def _shape(ledger: Ledger) -> tuple[int, ...]:
    return ledger.axes["regions"], ledger.axes["other-regions"]


# Tangent vectors at a reference (Varoquaux et al. 2010): log(R^-1/2 S R^-1/2) as one row a subject.
#
# The diagonal counts once and every other entry twice in the norm of a symmetric matrix. Off-diagonal entries are
# therefore multiplied by sqrt(2), and the norm of a row is that of its matrix (Barachant et al. 2013).


def tangent_of_all(cohort: Covariances, threads: int = 1, link: Link = TOGETHER) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at the reference of all subjects, also of those that `link` reaches."""
    total = total_of(log_sum(cohort.logarithm), link, len(cohort.regions), len(cohort.subjects))
    return tangent_at(cohort, total.whitening, threads)


def tangent_at(cohort: Covariances, whitening: Float64, threads: int = 1) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at one reference R, with R^-1/2 as `whitening`."""
    return _rows(cohort.covariance, [(np.arange(len(cohort.subjects)), whitening)], threads)


def tangent_at_identity(cohort: Covariances) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at the identity: log S of each subject, independent of all others."""
    rows, columns = np.triu_indices(len(cohort.regions))
    return cohort.logarithm * np.where(rows == columns, 1.0, np.sqrt(2.0)).astype(np.float32)


def tangent_of_fold(
    cohort: Covariances,
    institution: Sequence[str],
    training: BoolArray,
    reference: Literal["institution", "training"],
    ledger: Ledger,
    threads: int = 1,
    link: Link = TOGETHER,
    institutions: Sequence[str] = (),
) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at references that the training subjects of one fold fit.

    Arguments and errors as of `whitening_of_fold`.
    """
    where = np.asarray(institution)
    whitening = whitening_of_fold(cohort.logarithm, institution, training, reference, ledger, link, institutions)
    return _rows(
        cohort.covariance, [(np.flatnonzero(where == name), matrix) for name, matrix in whitening.items()], threads
    )


def displacements(matrices: Float64, whitening: Float64) -> Float64:
    """(..., R (R + 1) / 2) tangent vectors of (..., R, R) covariances S, with R^-1/2 as `whitening`."""
    vectors = to_triangles(spectral(whitening @ matrices @ whitening, np.log))
    rows, columns = np.triu_indices(len(whitening))
    return np.asarray(vectors * np.where(rows == columns, 1.0, np.sqrt(2.0)))


def _rows(
    covariance: NDArray[np.floating], groups: Sequence[tuple[NDArray[np.intp], Float64]], threads: int
) -> Float32:
    """Tangent vectors of the members of all groups, each at the reference of its group."""
    features = np.empty(covariance.shape, dtype=np.float32)
    for members, whitening in groups:

        def compute(block: slice, members: NDArray[np.intp] = members, whitening: Float64 = whitening) -> None:
            chosen = members[block]
            features[chosen] = displacements(from_triangles(covariance[chosen]), whitening)

        in_blocks(compute, len(members), threads)
    return features
