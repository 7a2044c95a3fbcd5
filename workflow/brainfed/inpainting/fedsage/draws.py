"""Noise and dropout of FedSage+'s generators, from keyed streams, drawn on the CPU."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.federation.privacy.weight_noise import normal
from brainfed.models.fedsage_generator import FeatureGenerator
from brainfed.runtime.streams import Streams


@dataclass(frozen=True)
class Draws:
    """The draws of one part of a repeat.

    Attributes:
        streams: of the repeat.
        part: `all`, or `fold-f`.
        dropout: the rate.
    """

    streams: Streams
    part: str
    dropout: float

    def noise(self, like: Tensor, *key: int | str) -> Tensor:
        """Standard normal numbers with the shape, type and device of `like`."""
        return normal(self.streams, like.shape, "fedsage-noise", self.part, *key).to(like)

    def keep(self, like: Tensor, width: int, *key: int | str) -> Tensor:
        """(n, width) factors 0 or 1 / (1 - rate) for the n rows of `like`."""
        random = torch.Generator().manual_seed(self.streams.key("fedsage-dropout", self.part, *key))
        kept = torch.rand(len(like), width, generator=random) >= self.dropout
        return kept.to(like) / (1 - self.dropout)

    def expanded(self, fgen: FeatureGenerator, embeddings: Tensor, *key: int | str) -> Tensor:
        """(t, fgen_width) inputs of fGen's last layer for noisy `embeddings` (t, 128), with dropout."""
        noisy = embeddings + self.noise(embeddings, *key)
        return fgen.expand(noisy, self.keep(noisy, fgen.shape.fgen_width, "fgen", *key))
