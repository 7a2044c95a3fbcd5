"""Windows of region series: one at random in training, several that cover the series in a test.

[choice] FGLBC states no window. All subjects have windows of one length; a series that is shorter is repeated from its
beginning until it fills the window.
"""

import math

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.streams import Streams

IntArray = NDArray[np.int64]
Float32 = NDArray[np.float32]


def window(series: Float32, length: int, offset: int) -> Float32:
    """(length, R) time points of a (T, R) series from `offset`; a shorter series is wrapped.

    The window is a view where the series fills it.

    Raises:
        ValueError: the window begins before the series or ends after it.
    """
    latest = _latest(len(series), length)
    if not 0 <= offset <= latest:
        raise ValueError(f"expected an offset from 0 to {latest}, found {offset}")
    if len(series) >= length:
        return series[offset : offset + length]
    return series[np.arange(length) % len(series)]


def training_offset(streams: Streams, timepoints: int, length: int, *parts: int | str) -> int:
    """Offset of a window of training, uniform from 0 to T - length; 0 for a series that is shorter.

    Args:
        streams: random streams of the repeat.
        timepoints: T of the subject.
        length: of the window.
        parts: what else keys the draw: institution, fold, id of the subject, round, epoch, step.
    """
    return streams.key("training-window", *parts) % (_latest(timepoints, length) + 1)


def test_offsets(timepoints: int, length: int) -> tuple[int, ...]:
    """Offsets of the ceil(T / length) windows of a test: evenly spaced, from the first time point to the last."""
    count = max(1, math.ceil(timepoints / length))
    return tuple(number * _latest(timepoints, length) // max(1, count - 1) for number in range(count))


def wrapped(lengths: IntArray, length: int) -> int:
    """Number of subjects whose series (n,) are shorter than the window, and are repeated to fill it."""
    return int((lengths < length).sum())


def _latest(timepoints: int, length: int) -> int:
    """Last offset of a window in a series of T time points."""
    if timepoints < 1 or length < 1:
        raise ValueError(f"expected a time point and a window of one or more, found {timepoints} and {length}")
    return max(timepoints - length, 0)
