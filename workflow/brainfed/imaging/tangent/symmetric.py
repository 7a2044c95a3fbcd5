"""Stacks of symmetric matrices: their upper triangles as rows, and functions of their eigenvalues."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

BLOCK = 16
"""Matrices that one thread decomposes at a time."""


def triangle_length(regions: int) -> int:
    """R (R + 1) / 2, the length of the upper triangle with the diagonal."""
    return regions * (regions + 1) // 2


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
