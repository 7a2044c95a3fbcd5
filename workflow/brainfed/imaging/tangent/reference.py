"""References of tangent features: log-Euclidean means, each a sum over subjects (Arsigny et al. 2006).

R = expm(mean of log S_i). An institution sends the sum of its log S_i and the number of its subjects, so that a
reference of several institutions is that of their pooled subjects.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.ledger import Ledger
from brainfed.federation.link import TOGETHER, Link
from brainfed.federation.sharing import EVERY, add_up, record_downloads, record_help, record_uploads
from brainfed.imaging.tangent.symmetric import from_triangles, spectral

logger = logging.getLogger(__name__)

Float64 = NDArray[np.float64]
Triangles = NDArray[np.float32] | NDArray[np.float64]
BoolArray = NDArray[np.bool_]

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


def log_sum(logarithms: Triangles) -> LogSum:
    """Sum over the rows of (n, R (R + 1) / 2) upper triangles."""
    return LogSum(logarithms.sum(axis=0, dtype=np.float64), len(logarithms))


def total_of(found: LogSum, link: Link, regions: int, subjects: int) -> LogSum:
    """The sum over the subjects of all institutions that `link` reaches.

    Args:
        found: the sum of this process.
        link: to the others.
        regions: R.
        subjects: number of all subjects of this process.

    Raises:
        UndeclaredCrossing: the sum is no triangle of R regions.
    """
    ledger = Ledger(SENT, {"region-pairs": regions * (regions + 1) // 2}, "features")
    parts = {"log-covariance-sum": found.total, "summed-subjects": np.array(found.subjects)}
    total = add_up(link, ledger, subjects, parts)
    return LogSum(total["log-covariance-sum"], int(total["summed-subjects"]))


def tangent_ledger(regions: int) -> Ledger:
    """Empty ledger for references of this number of regions."""
    return Ledger(CROSSES, {"regions": regions, "other-regions": regions}, "features")


def whitening_of_fold(
    logarithms: Triangles,
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
    sums = {name: found for name, found in every.items() if found.subjects}
    if not (sums or link.apart):
        raise ValueError("expected at least one training subject, found none")
    for name, found in sums.items():
        logger.info("tangent reference: %d training subjects of %s", found.subjects, name)
    sizes = {code: int((where == name).sum()) for code, name in enumerate(names) if name in every and len(names) > 1}
    fitted = {code: size for code, size in sizes.items() if names[code] in sums}
    if reference == "training":
        record_sums(ledger, fitted, sizes)
    else:
        helped = {code: size for code, size in sizes.items() if code not in fitted}
        record_help(ledger, fitted, helped, _sum_content(ledger))
    together = _total(sums or every)
    if reference == "training":
        together = total_of(together, link, ledger.axes["regions"], len(where))
    common, own = together.whitening, sums if reference == "institution" else {}
    return {name: own[name].whitening if name in own else common for name in every}


def record_sums(ledger: Ledger, senders: Mapping[int, int], receivers: Mapping[int, int]) -> None:
    """Record the sums that institutions send to a server, and the reference that it returns.

    Args:
        ledger: of `tangent_ledger`.
        senders: institution -> number of subjects.
        receivers: the same.
    """
    record_uploads(ledger, senders, _sum_content(ledger))
    record_downloads(ledger, receivers, {"tangent-reference": (_shape(ledger), MATRIX_BYTES)})


def crossings_of_all(regions: int) -> tuple[dict[str, int | str], ...]:
    """Crossings of a reference of all subjects, which needs no split: rows of `EVERY` institution."""
    ledger = tangent_ledger(regions)
    record_sums(ledger, {EVERY: 0}, {EVERY: 0})
    return ledger.rows()


def _total(sums: Mapping[str, LogSum]) -> LogSum:
    first, *others = sums.values()
    for other in others:
        first += other
    return first


def _sum_content(ledger: Ledger) -> dict[str, tuple[tuple[int, ...], int]]:
    return {"log-covariance-sum": (_shape(ledger), MATRIX_BYTES), "summed-subjects": ((), COUNT_BYTES)}


def _shape(ledger: Ledger) -> tuple[int, ...]:
    return ledger.axes["regions"], ledger.axes["other-regions"]
