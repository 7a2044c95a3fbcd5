"""fGen's last layer by blocks: its loss by hand, its gradients those of autograd over the plain loop."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.inpainting.fedsage.losses import nearest_missing
from brainfed.inpainting.fedsage.wide import FEW_NODES, Targets, WideOutput
from reference.fedsage import greedy_feature_loss


def layer_of(weight, bias):
    layer = torch.nn.Linear(*reversed(weight.shape)).double()
    layer.weight.data, layer.bias.data = torch.as_tensor(weight), torch.as_tensor(bias)
    return layer


def test_the_feature_loss_by_hand():
    missing = torch.tensor([[0.0, 0.0], [0.9, 0.9], [0.8, 0.0]]).double()
    neighbours = torch.tensor([[True, True, False], [False, True, False]])
    generated = torch.tensor([[[0.7, 0.0], [0.7, 0.9]], [[0.0, 0.0], [0.9, 0.0]]]).double()
    squares = missing.square().sum(dim=1)
    assert nearest_missing(generated @ missing.T, squares, neighbours).tolist() == [[0, 1], [1, 1]]
    # Node 0 may not take the third, which is nearest: (0.7, 0) -> (0, 0): 0.49; (0.7, 0.9) -> (0.9, 0.9): 0.04.
    # Node 1 has (0.9, 0.9) alone: 1.62 and 0.81. Two visible nodes miss none; 2 slots, 2 features.
    says = layer_of(generated.atanh().view(2, 4).T.contiguous(), torch.zeros(4).double())
    loss, _ = WideOutput().add_gradients(says, torch.eye(2).double(), [Targets(missing, neighbours, visible=4)])
    assert float(loss) == pytest.approx((0.49 + 0.04 + 1.62 + 0.81) / (4 * 2 * 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_missing_neighbours_loss_and_gradient_are_zero(dtype):
    layer = layer_of(np.ones((12, 5)), np.ones(12)).to(dtype)
    empty = Targets(torch.zeros(0, 4, dtype=dtype), torch.zeros(0, 0, dtype=torch.bool), visible=7)
    loss, back = WideOutput().add_gradients(layer, torch.zeros(0, 5, dtype=dtype), [empty])
    assert float(loss) == 0 and back.shape == (0, 5)
    assert not layer.weight.grad.any() and not layer.bias.grad.any()


@hypothesis_settings(deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(1, 9),
)
@example(seed=0, nodes=FEW_NODES + 1, hidden=3, slots=2, features=7, block=2)
def test_loss_and_gradients_are_those_of_autograd_over_the_plain_loop(seed, nodes, hidden, slots, features, block):
    random = np.random.default_rng(seed)
    wide = WideOutput(block)
    fast, slow = (
        layer_of(random.standard_normal((slots * features, 3)), random.standard_normal(slots * features))
        for random in (np.random.default_rng(seed), np.random.default_rng(seed))
    )
    for _ in range(2):  # the second time the gradient's memory holds the first's numbers
        for layer in (fast, slow):
            layer.zero_grad()
        for owners in (2, 1):  # two at once, then a third: all add up
            read = [
                torch.tensor(random.standard_normal((nodes + more, 3)), requires_grad=True) for more in range(owners)
            ]
            targets, expected = [], []
            for own in read:
                neighbours = random.random((len(own), hidden)) < 0.5
                neighbours[np.arange(len(own)), random.integers(0, hidden, len(own))] = True
                missing = torch.from_numpy(random.uniform(-1, 1, (hidden, features)))
                truths = [[missing[index] for index in np.flatnonzero(row)] for row in neighbours]
                vectors = slow(own).tanh().view(len(own), slots, features)
                expected.append(greedy_feature_loss(vectors, truths, len(own) + 2))
                targets.append(Targets(missing, torch.from_numpy(neighbours), len(own) + 2))
            torch.stack(expected).sum().backward()
            found, back = wide.add_gradients(fast, torch.cat(read).detach(), targets)
            torch.testing.assert_close(found, torch.stack(expected).detach(), atol=1e-12, rtol=1e-9)
            torch.testing.assert_close(back, torch.cat([own.grad for own in read]), atol=1e-12, rtol=1e-9)
        torch.testing.assert_close(fast.weight.grad, slow.weight.grad, atol=1e-12, rtol=1e-9)
        torch.testing.assert_close(fast.bias.grad, slow.bias.grad, atol=1e-12, rtol=1e-9)
