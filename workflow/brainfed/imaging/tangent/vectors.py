"""Tangent vectors at a reference (Varoquaux et al. 2010): log(R^-1/2 S R^-1/2) as one row a subject.

The diagonal counts once and every other entry twice in the norm of a symmetric matrix. Off-diagonal entries are
therefore multiplied by sqrt(2), and the norm of a row is that of its matrix (Barachant et al. 2013).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.ledger import Ledger
from brainfed.federation.link import TOGETHER, Link
from brainfed.imaging.tangent.covariances import Covariances
from brainfed.imaging.tangent.reference import log_sum, total_of, whitening_of_fold
from brainfed.imaging.tangent.symmetric import from_triangles, in_blocks, spectral, to_triangles

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def tangent_of_all(found: Covariances, threads: int = 1, link: Link = TOGETHER) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at the reference of all subjects, also of those that `link` reaches."""
    total = total_of(log_sum(found.logarithm), link, len(found.regions), len(found.subjects))
    return tangent_at(found, total.whitening, threads)


def tangent_at(found: Covariances, whitening: Float64, threads: int = 1) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at one reference R, with R^-1/2 as `whitening`."""
    return _rows(found.covariance, [(np.arange(len(found.subjects)), whitening)], threads)


def tangent_at_identity(found: Covariances) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at the identity: log S of each subject, independent of all others."""
    rows, columns = np.triu_indices(len(found.regions))
    return found.logarithm * np.where(rows == columns, 1.0, np.sqrt(2.0)).astype(np.float32)


def tangent_of_fold(
    found: Covariances,
    institution: Sequence[str],
    training: NDArray[np.bool_],
    reference: Literal["institution", "training"],
    ledger: Ledger,
    threads: int = 1,
    link: Link = TOGETHER,
    institutions: Sequence[str] = (),
) -> Float32:
    """Tangent features (n, R (R + 1) / 2) at references that the training subjects of one fold fit.

    Args:
        found: of n subjects.
        institution: (n,) names.
        training: (n,) mask of the training subjects.
        reference: the group of the reference: the training subjects of the own institution, or of all.
        ledger: of `tangent_ledger`; takes the crossings.
        threads: subjects that are computed side by side.
        link: to institutions whose subjects are not here.
        institutions: names of all, in order, also of those that are not here; empty: those of `institution`.

    Raises:
        ValueError: there is no training subject.
    """
    where = np.asarray(institution)
    whitening = whitening_of_fold(found.logarithm, institution, training, reference, ledger, link, institutions)
    return _rows(
        found.covariance, [(np.flatnonzero(where == name), matrix) for name, matrix in whitening.items()], threads
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
