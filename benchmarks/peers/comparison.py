"""Two ways to one result: their results must agree before either is timed."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from peers.memory import peak_of

TIMES = 3
"""Timed runs of each side, after one that warms up and is compared."""

Result = NDArray[np.float64]
Timed = Callable[[], tuple[Result, float]]
"""The work of one side: its result, NaN where there is none, and its seconds."""


class DifferentResultsError(Exception):
    """Two sides do not agree, so that their times cannot be compared."""


class LeftOutError(Exception):
    """A comparison cannot run here; the message is the reason."""


@dataclass(frozen=True)
class Comparison:
    """One row of the table.

    Attributes:
        name: of the comparison.
        peer: the other library.
        what: the work and the result that was compared.
        theirs, ours: seconds, the least of `TIMES` runs.
        difference: largest difference of the results that were timed.
        tolerance: largest difference that is allowed.
        exact: the same difference in float64, where float32 was timed; None: float64 was timed.
        their_peak, our_peak: MiB that a run adds to the process; NaN where it cannot be measured.
    """

    name: str
    peer: str
    what: str
    theirs: float
    ours: float
    difference: float
    tolerance: float
    exact: float | None
    their_peak: float
    our_peak: float

    @property
    def ratio(self) -> float:
        """How many times as fast ours is."""
        return self.theirs / self.ours


def compared(
    name: str,
    peer: str,
    what: str,
    theirs: Timed,
    ours: Timed,
    tolerance: float,
    exact: float | None = None,
) -> Comparison:
    """Run both sides once, compare the results, then time both in turn.

    Raises:
        DifferentResultsError: the results differ by more than `tolerance`.
    """
    difference = agreed(name, theirs()[0], ours()[0], tolerance)
    seconds, peaks = np.full((2, TIMES), np.inf), np.zeros((2, TIMES))
    # nilearn collects garbage often, and would visit all objects of this process, which has imported every peer.
    gc.freeze()
    for number in range(TIMES):
        for side, work in enumerate((theirs, ours)):
            (_, seconds[side, number]), peaks[side, number] = peak_of(work)
    gc.unfreeze()
    return Comparison(
        name, peer, what, *seconds.min(axis=1).tolist(), difference, tolerance, exact, *peaks.max(axis=1).tolist()
    )


def agreed(name: str, theirs: Result, ours: Result, tolerance: float) -> float:
    """The largest difference of two results.

    Raises:
        DifferentResultsError: it is above `tolerance`, or one side has a number where the other has none.
    """
    if theirs.shape != ours.shape or not np.array_equal(np.isnan(theirs), np.isnan(ours)):
        raise DifferentResultsError(f"{name}: the two results do not have numbers in the same places")
    if np.isnan(theirs).all():
        raise DifferentResultsError(f"{name}: the results are empty")
    difference = float(np.nanmax(np.abs(theirs - ours)))
    if not difference <= tolerance:
        raise DifferentResultsError(f"{name}: the results differ by {difference:.1e}, more than {tolerance:.0e}")
    return difference


def timed(work: Callable[[], Result]) -> Timed:
    """`work` with its seconds of the wall."""

    def measured() -> tuple[Result, float]:
        start = time.perf_counter()
        result = work()
        return result, time.perf_counter() - start

    return measured


def named(*distributions: str) -> str:
    """Names and versions of installed libraries."""
    return " + ".join(f"{name} {version(name)}" for name in distributions)
