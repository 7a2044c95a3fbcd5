"""The machine's own matrix rate: what every training benchmark is measured against."""

import statistics
import time

import torch


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def matrix_rate(device: torch.device, size: int = 4096, tries: int = 5, dtype: torch.dtype = torch.float32) -> float:
    """GFLOP/s of a square product, the median of some tries."""
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    out = torch.empty(size, size, device=device, dtype=dtype)
    torch.mm(left, right, out=out)
    seconds = []
    for _ in range(tries):
        synchronise(device)
        start = time.perf_counter()
        torch.mm(left, right, out=out)
        synchronise(device)
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(seconds) / 1e9
