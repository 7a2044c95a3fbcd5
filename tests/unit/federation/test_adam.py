"""Our Adam is torch's: same steps, same state, and a state that is taken up goes on to the same bytes."""

import numpy as np
import pytest
import torch

from brainfed.federation import Adam

SHAPES = ((40, 3), (7,))


def parameters():
    random = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=random)) for shape in SHAPES]


def give_gradients(owned, epoch):
    random = torch.Generator().manual_seed(epoch)
    for parameter in owned:
        parameter.grad = torch.randn(parameter.shape, generator=random)


def equal(ours, theirs):
    return all(torch.equal(mine, other) for mine, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_equal_those_of_torch(weight_decay):
    ours, theirs = parameters(), parameters()
    adam = Adam(ours, 0.01, weight_decay)
    for _ in range(2):  # `reset` is a new optimiser
        known = torch.optim.Adam(theirs, lr=0.01, weight_decay=weight_decay, fused=True)
        adam.reset()
        for epoch in range(5):
            give_gradients(ours, epoch)
            give_gradients(theirs, epoch)
            adam.step()
            known.step()
        assert equal(ours, theirs)


def test_a_gradient_is_read_in_the_order_of_its_parameter():
    ours, theirs = parameters(), parameters()
    give_gradients(theirs, 0)
    for mine, other in zip(ours, theirs, strict=True):
        mine.grad = torch.stack([other.grad, other.grad], dim=-1)[..., 0]
    assert not ours[0].grad.is_contiguous()
    adam, known = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01, fused=True)
    adam.step()
    known.step()
    assert equal(ours, theirs)


def test_a_parameter_without_a_gradient_stays_and_does_not_count_the_step():
    ours = parameters()
    still = ours[1].detach().clone()
    adam = Adam(ours, 0.01)
    give_gradients(ours[:1], 0)
    adam.step()
    assert torch.equal(ours[1], still)
    assert {name: int(value) for name, value in adam.arrays().items() if "step" in name} == {"0/step": 1, "1/step": 0}


def test_a_saved_state_continues_to_the_same_bytes():
    ours = parameters()
    adam = Adam(ours, 0.01)
    for epoch in range(6):
        if epoch == 3:
            weights = [parameter.detach().clone() for parameter in ours]
            state = {name: np.array(value) for name, value in adam.arrays().items()}
        give_gradients(ours, epoch)
        adam.step()
    others = [torch.nn.Parameter(weight) for weight in weights]
    resumed = Adam(others, 0.01)
    resumed.load(state)
    for epoch in range(3, 6):
        give_gradients(others, epoch)
        resumed.step()
    assert equal(ours, others)
