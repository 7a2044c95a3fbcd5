"""GAHFL's recurrent classifiers: the plain networks, and the same for the folds side by side."""

import numpy as np
import pytest
import torch
from torch import nn

from brainfed.models import KINDS, RecurrentClassifier, Workspace, derivative_of, fold_logits
from brainfed.models._gahfl import SCORED
from brainfed.runtime import Streams, UserError

FOLDS, REGIONS, HIDDEN, CLASSES = 3, 11, 8, 3


def networks(kind, folds=FOLDS):
    found = [RecurrentClassifier(kind, REGIONS, CLASSES, HIDDEN).double() for _ in range(folds)]
    for fold, network in enumerate(found):
        network.start(Streams(5), fold)
    return found


def stacked(plain, what=lambda parameter: parameter.detach()):
    named = [dict(network.named_parameters()) for network in plain]
    return {name: torch.stack([what(parameters[name]) for parameters in named]) for name in named[0]}


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dropout(plain, folds, samples):
    return (drawn(folds, samples, plain[0].pooled, seed=3) > -0.5).double() / 0.7


def each_alone(plain, x, keep=None):
    series = x.expand(len(plain), -1, -1, -1)
    return torch.stack([net(series[f], None if keep is None else keep[f]) for f, net in enumerate(plain)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("samples", "time"), [(5, 7), (1, 7), (5, 1), (1, 1)])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("folds", [1, FOLDS])
@pytest.mark.parametrize("shared", [False, True])
def test_logits_and_gradients_of_all_folds_are_those_of_each_alone(kind, samples, time, dropped, folds, shared):
    plain = networks(kind, folds)
    parameters = {name: weight.requires_grad_() for name, weight in stacked(plain).items()}
    x = drawn(1 if shared else folds, samples, time, REGIONS)
    keep = dropout(plain, folds, samples) if dropped else None
    upstream = drawn(folds, samples, CLASSES, seed=2)
    expected = each_alone(plain, x, keep)
    expected.backward(upstream)
    found = fold_logits(kind, parameters, x, keep)
    found.backward(upstream)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for name, gradient in stacked(plain, lambda parameter: parameter.grad).items():
        torch.testing.assert_close(parameters[name].grad, gradient, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_scoring_keeps_nothing_and_finds_the_same(kind):
    plain, x = networks(kind), drawn(SCORED + 3, 4, REGIONS)
    with torch.no_grad():
        found = fold_logits(kind, stacked(plain), x)
        torch.testing.assert_close(found, each_alone(plain, x[None]), rtol=0, atol=1e-10)
    assert not found.requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_memory_used_again_changes_no_gradient(kind):
    plain, workspace = networks(kind), Workspace()

    def gradients(x, workspace):
        parameters = {name: weight.requires_grad_() for name, weight in stacked(plain).items()}
        losses = [fold_logits(kind, parameters, part, None, workspace).square().sum() for part in (x, x[:, :2] + 1)]
        sum(losses).backward()
        return torch.cat([weight.grad.flatten() for weight in parameters.values()])

    for seed, samples in enumerate((4, 6, 3)):
        x = drawn(FOLDS, samples, 5, REGIONS, seed=seed)
        torch.testing.assert_close(gradients(x, workspace), gradients(x, None), rtol=0, atol=0)


def test_a_second_backward_pass_after_the_memory_was_lent_again_is_refused():
    plain, workspace, x = networks("lstm"), Workspace(), drawn(FOLDS, 4, 5, REGIONS)
    parameters = {name: weight.requires_grad_() for name, weight in stacked(plain).items()}
    first = fold_logits("lstm", parameters, x, None, workspace).sum()
    first.backward(retain_graph=True)
    fold_logits("lstm", parameters, x + 1, None, workspace)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        first.backward()


@pytest.mark.parametrize("kind", KINDS)
def test_float32_agrees_with_torch_to_its_rounding(kind):
    plain = [network.float() for network in networks(kind)]
    x = drawn(FOLDS, 6, 20, REGIONS).float()
    torch.testing.assert_close(fold_logits(kind, stacked(plain), x), each_alone(plain, x), rtol=0, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_known_without_numbers(kind):
    parameters = {name: weight.to("meta").requires_grad_() for name, weight in stacked(networks(kind)).items()}
    found = fold_logits(kind, parameters, torch.empty(FOLDS, 5, 4, REGIONS, device="meta", dtype=torch.float64))
    found.sum().backward()
    assert found.shape == (FOLDS, 5, CLASSES)
    assert all(weight.grad.shape == weight.shape for weight in parameters.values())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_finds_the_same(kind):
    plain, x = networks(kind), drawn(FOLDS, 6, 20, REGIONS)
    found = fold_logits(kind, {name: weight.cuda() for name, weight in stacked(plain).items()}, x.cuda())
    torch.testing.assert_close(found.cpu(), each_alone(plain, x), rtol=0, atol=1e-10)


def test_series_of_another_number_of_folds_are_refused():
    with pytest.raises(ValueError, match="series of 1 or 3 folds, found"):
        fold_logits("lstm", stacked(networks("lstm")), drawn(2, 5, 4, REGIONS))


def test_an_lstm_by_its_formulas():
    (network,) = networks("lstm", 1)
    x = drawn(2, 3, REGIONS)
    weight = {name: parameter.detach().numpy() for name, parameter in network.named_parameters()}
    bias = weight["recurrent.bias_ih_l0"] + weight["recurrent.bias_hh_l0"]
    state = cell = total = np.zeros((2, HIDDEN))
    for time in range(3):
        gates = x[:, time].numpy() @ weight["recurrent.weight_ih_l0"].T + state @ weight["recurrent.weight_hh_l0"].T
        enter, forget, new, leave = np.split(gates + bias, 4, axis=1)
        cell = cell / (1 + np.exp(-forget)) + np.tanh(new) / (1 + np.exp(-enter))
        state = np.tanh(cell) / (1 + np.exp(-leave))
        total = total + state
    found = total / 3
    for layer in range(4):
        found = found @ weight[f"connected.{layer}.weight"].T + weight[f"connected.{layer}.bias"]
        found = np.maximum(found, 0) if layer < 3 else found
    np.testing.assert_allclose(network(x).detach().numpy(), found, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "layer", "widths"),
    [
        ("lstm", nn.LSTM, [(32, 10), (10, 20), (20, 10), (10, 2)]),
        ("gru", nn.GRU, [(32, 10), (10, 20), (20, 10), (10, 2)]),
        ("bilstm", nn.LSTM, [(64, 10), (10, 20), (20, 10), (10, 2)]),
        ("slstm", nn.LSTM, [(32, 10), (10, 20), (20, 2)]),
    ],
)
def test_layers_are_those_of_table_2(kind, layer, widths):
    network = RecurrentClassifier(kind, 200)
    assert type(network.recurrent) is layer
    assert [(connected.in_features, connected.out_features) for connected in network.connected] == widths


@pytest.mark.parametrize("kind", KINDS)
def test_initial_weights_are_keyed_and_fill_torchs_range(kind):
    network, other = (RecurrentClassifier(kind, 200) for _ in range(2))
    network.start(Streams(5), "client", 0)
    torch.manual_seed(1)
    other.start(Streams(5), "client", 0)
    for (name, weight), equal in zip(network.named_parameters(), other.parameters(), strict=True):
        bound = 32**-0.5 if name.startswith("recurrent") else network.connected[int(name[10])].in_features ** -0.5
        assert torch.equal(weight, equal)
        assert weight.abs().max() <= bound
        if weight.numel() > 100:
            assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.15), name
    other.start(Streams(5), "client", 1)
    assert not any(torch.equal(*pair) for pair in zip(network.parameters(), other.parameters(), strict=True))


def test_a_torch_without_a_derivative_is_named():
    with pytest.raises(UserError, match=r"torch .*: expected torch\.ops\.aten\.other_backward, found none"):
        derivative_of("other")
