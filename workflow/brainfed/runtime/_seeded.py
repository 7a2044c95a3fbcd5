"""Torch's own draws from a keyed stream: initial weights of its layers, dropout in their forward passes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

CPU = torch.device("cpu")


@contextmanager
def seeded(key: int, device: torch.device = CPU) -> Iterator[None]:
    """Let torch draw from this key in the body, on the CPU and on `device`; restore its former state afterwards.

    `torch.manual_seed` seeds every GPU too. Before any GPU is used it keeps a stack trace for each call instead, which
    takes longer than the draws of a small layer, and whose memory is never freed.
    """
    with torch.random.fork_rng([] if device.type == "cpu" else [device]):
        seed = torch.default_generator.manual_seed if device.type == "cpu" else torch.manual_seed
        seed(key)
        yield
