"""Torch's own draws inside a keyed block."""

import torch

from brainfed.runtime.seeded import seeded


def test_torch_draws_as_after_its_own_seeding_and_goes_on_as_if_nothing_was():
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(7)
    after = torch.rand(5)
    torch.manual_seed(7)
    with seeded(3):
        drawn = torch.rand(5)
    assert drawn.equal(expected)
    assert torch.rand(5).equal(after)


def test_nothing_is_kept_for_gpus_that_no_one_uses():
    kept = len(torch.cuda._queued_calls)
    with seeded(3):
        torch.rand(5)
    assert len(torch.cuda._queued_calls) == kept
