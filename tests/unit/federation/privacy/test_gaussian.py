"""Noise of private releases: normal, and of independent streams, also where 32 bits of two keys agree."""

import numpy as np
import torch
from scipy.stats import kstest

from brainfed.federation.privacy.gaussian import NOISE, private_normal
from brainfed.runtime.streams import Streams

STREAMS = Streams(0)
ONE, OTHER = (1, 4, 52, 0, 3, "blocks.1.kernels.temporal"), (1, 4, 52, 0, 4, "blocks.2.norm.bias")
"""Two of the 180,000 draws of FGLBC's network of the default size, four institutions and five folds."""


def test_keys_that_agree_in_32_bits_have_noise_of_their_own():
    keys = [STREAMS.key(NOISE, *parts) for parts in (ONE, OTHER)]
    assert keys[0] != keys[1]
    assert keys[0] % 2**32 == keys[1] % 2**32
    # Torch reads these bits alone, which is why it does not draw the noise.
    torches = [torch.randn(64, generator=torch.Generator().manual_seed(key)) for key in keys]
    assert torch.equal(*torches)
    ours = torch.stack([private_normal(STREAMS, (10_000,), *parts) for parts in (ONE, OTHER)])
    assert abs(float(torch.corrcoef(ours)[0, 1])) < 0.05


def test_a_stream_repeats_its_noise_and_no_part_of_its_key_is_left_out():
    first = private_normal(STREAMS, (3, 2), *ONE)
    assert first.shape == (3, 2)
    assert first.dtype == torch.float64
    assert torch.equal(first, private_normal(STREAMS, (3, 2), *ONE))
    for place, part in enumerate(ONE):
        changed = [*ONE[:place], f"{part}x" if isinstance(part, str) else part + 1, *ONE[place + 1 :]]
        assert not torch.equal(first, private_normal(STREAMS, (3, 2), *changed))
    for streams in (Streams(1), Streams(0, 1)):
        assert not torch.equal(first, private_normal(streams, (3, 2), *ONE))


def test_it_is_standard_normal():
    drawn = private_normal(STREAMS, (100_000,), 0).numpy()
    assert kstest(drawn, "norm").pvalue > 0.01
    assert np.isfinite(drawn).all()
