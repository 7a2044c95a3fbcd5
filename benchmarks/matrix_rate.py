"""The machine's own matrix rate: what every training benchmark is measured against."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

CPU_SIZE, GPU_SIZE = 2048, 8192


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def clock_of(device: torch.device) -> Callable[[], float]:
    """Seconds of processor time with one thread, which other work on the machine stretches little; else of the wall."""
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    return time.process_time if alone else time.perf_counter


@dataclass
class Stopwatch:
    """Time of training, with a square product measured after every unit of work and taken out of it.

    Attributes:
        device: of the training.
        dtype: of the product.
        laps: seconds of each unit of work; the first holds the set-up.
        rates: GFLOP/s of the products.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    laps: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = CPU_SIZE if self.device.type == "cpu" else GPU_SIZE
        self._clock = clock_of(self.device)
        self._factor = torch.randn(size, size, device=self.device).to(self.dtype)
        self._product = torch.empty_like(self._factor)
        self.rate()
        self._since = self._clock()

    def restart(self) -> None:
        """Forget the laps, keep the rates."""
        self.laps.clear()
        self._since = self._clock()

    def progress(self, *_where: object, **_bound: object) -> None:
        """Close a lap; a `Run` calls it after each unit of work."""
        synchronise(self.device)
        self.laps.append(self._clock() - self._since)
        self.rates.append(self.rate())
        self._since = self._clock()

    def rate(self) -> float:
        """GFLOP/s of one product, now."""
        synchronise(self.device)
        start = self._clock()
        torch.mm(self._factor, self._factor, out=self._product)
        synchronise(self.device)
        return float(2 * len(self._factor) ** 3 / (self._clock() - start) / 1e9)

    @property
    def gemm(self) -> float:
        """GFLOP/s, the median so far."""
        return statistics.median(self.rates)

    @property
    def seconds(self) -> float:
        """Of all laps together."""
        return sum(self.laps)
