"""ST-GCN and the graph network without time: the formulas, and what a subject's logits and gradient depend on."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from brainfed.models import STGCN, RegionGNN
from brainfed.models._fglbc import Block, propagated
from brainfed.runtime import Streams
from reference import region_networks

STREAMS = Streams(5)
REGIONS, WINDOW, SUBJECTS, CLASSES = 7, 12, 5, 3


def drawn(network):
    """The network in float64, all of whose weights are away from their start."""
    network = network.double()
    network.start(STREAMS, 0, 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
    return network


def st_gcn(channels=6, kernel=3, strides=(2, 1, 2), groups=2, *, edge_importance=True):
    return drawn(STGCN(REGIONS, CLASSES, channels, kernel, strides, groups, edge_importance=edge_importance))


def region_gnn(hidden=6, layers=2, groups=2, *, edge_importance=True):
    return drawn(RegionGNN(REGIONS, WINDOW, CLASSES, hidden, layers, groups, edge_importance=edge_importance))


NETWORKS = [st_gcn, region_gnn]


def subjects(time=WINDOW, count=SUBJECTS):
    """Windows (B, T, R) and symmetric adjacencies (B, R, R)."""
    generator = torch.Generator().manual_seed(2)
    windows = torch.randn(count, time, REGIONS, generator=generator, dtype=torch.float64)
    half = torch.rand(count, REGIONS, REGIONS, generator=generator, dtype=torch.float64)
    return windows, (half + half.mT) / REGIONS


def weights_of(network):
    return {name: weight.detach().numpy() for name, weight in network.named_parameters()}


def gradients(network, windows, adjacency, labels):
    """Of every subject's loss: name -> (B, ...)."""

    def loss(weights, *subject):
        *arguments, label = (part[None] for part in subject)
        return cross_entropy(functional_call(network, weights, tuple(arguments)), label)

    return vmap(grad(loss), (None, 0, 0, 0))(dict(network.named_parameters()), windows, adjacency, labels)


@pytest.mark.parametrize("edge_importance", [False, True])
@pytest.mark.parametrize(
    ("channels", "kernel", "strides", "groups"),
    [(6, 3, (2, 1, 2), 3), (4, 5, (1, 1), 1), (8, 11, (4, 2, 2), 2), (3, 1, (3,), 1), (1, 3, (1, 2), 1)],
)
def test_st_gcn_is_spatial_then_temporal_convolution(channels, kernel, strides, groups, edge_importance):
    network = st_gcn(channels, kernel, strides, groups, edge_importance=edge_importance)
    windows, adjacency = subjects()
    expected = [
        region_networks.st_gcn(weights_of(network), strides, groups, *subject)
        for subject in zip(windows.numpy(), adjacency.numpy(), strict=True)
    ]
    found = network(windows, adjacency).detach().numpy()
    assert np.std(expected, axis=0).min() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("edge_importance", [False, True])
@pytest.mark.parametrize(("hidden", "layers", "groups"), [(6, 2, 3), (16, 3, 2), (5, 1, 1)])
def test_the_network_without_time_is_graph_convolutions_of_windows(hidden, layers, groups, edge_importance):
    network = region_gnn(hidden, layers, groups, edge_importance=edge_importance)
    windows, adjacency = subjects()
    expected = [
        region_networks.region_gnn(weights_of(network), layers, groups, *subject)
        for subject in zip(windows.numpy(), adjacency.numpy(), strict=True)
    ]
    np.testing.assert_allclose(network(windows, adjacency).detach().numpy(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(2, 8, 1), (8, 2, 1), (4, 4, 4), (1, 2, 4)])
def test_the_product_with_the_graph_stands_on_either_side_of_time(inputs, outputs, stride):
    block = Block(inputs, outputs, 3, stride, 2).double()
    with torch.no_grad():
        for weight in block.kernels.parameters():
            weight.normal_()
    _, adjacency = subjects()
    features = torch.randn(SUBJECTS, inputs, WINDOW, REGIONS, dtype=torch.float64)
    first = block.kernels(propagated(features, adjacency))
    last = propagated(block.kernels(features), adjacency)
    torch.testing.assert_close(first, last)
    torch.testing.assert_close(block(features, adjacency), torch.relu(block.norm(first)))


@pytest.mark.parametrize("network", NETWORKS)
def test_the_order_of_regions_matters_to_the_edge_importance_alone(network):
    windows, adjacency = subjects()
    order = torch.randperm(REGIONS, generator=torch.Generator().manual_seed(3))
    permuted = windows[:, :, order], adjacency[:, order][:, :, order]
    plain = network(edge_importance=False)
    torch.testing.assert_close(plain(*permuted), plain(windows, adjacency))
    learnt = network()
    assert not torch.allclose(learnt(*permuted), learnt(windows, adjacency), atol=1e-3)
    with torch.no_grad():
        expected = learnt(windows, adjacency)
        learnt.importance.weight.copy_(learnt.importance.weight[order][:, order])
    torch.testing.assert_close(learnt(*permuted), expected)


@pytest.mark.parametrize("time", [1, 2, 5, 40])
def test_st_gcn_reads_windows_of_any_length(time):
    network = st_gcn(4, 5, (2, 2))
    windows, adjacency = subjects(time)
    expected = region_networks.st_gcn(weights_of(network), (2, 2), 2, windows[0].numpy(), adjacency[0].numpy())
    np.testing.assert_allclose(network(windows, adjacency)[0].detach().numpy(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("network", NETWORKS)
def test_one_subject_changes_no_other_subjects_logits(network):
    model = network()
    windows, adjacency = subjects()
    before = model(windows, adjacency)
    windows[1], adjacency[1] = 100 * windows[1], 5 * adjacency[1]
    after = model(windows, adjacency)
    others = [0, 2, 3, 4]
    torch.testing.assert_close(after[others], before[others], rtol=0, atol=1e-12)
    torch.testing.assert_close(model(windows[2:3], adjacency[2:3]), before[2:3], rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("network", NETWORKS)
def test_every_subject_has_a_gradient_of_its_own(network):
    model = network()
    windows, adjacency = subjects()
    labels = torch.tensor([0, 1, 2, 1, 0])
    found = gradients(model, windows, adjacency, labels)
    for subject in range(SUBJECTS):
        own = slice(subject, subject + 1)
        alone = torch.autograd.grad(
            cross_entropy(model(windows[own], adjacency[own]), labels[own]), list(model.parameters())
        )
        for name, expected in zip(weights_of(model), alone, strict=True):
            assert expected.abs().max() > 0, name
            torch.testing.assert_close(found[name][subject], expected)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("network", NETWORKS)
def test_opacus_finds_the_same_gradients(network):
    from opacus.grad_sample import GradSampleModule

    model = network()
    windows, adjacency = subjects()
    labels = torch.tensor([0, 1, 2, 1, 0])
    expected = gradients(model, windows, adjacency, labels)
    hooked = GradSampleModule(model, loss_reduction="sum")
    cross_entropy(hooked(windows, adjacency), labels, reduction="sum").backward()
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad_sample, expected[name])


@pytest.mark.full("A new interpreter imports torch; what it guards is the time of a start.")
def test_importing_the_networks_imports_no_opacus():
    code = "import sys, brainfed.models._fglbc, brainfed.models._fglbc; sys.exit('opacus' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_gradients_are_those_of_finite_differences():
    network, (windows, adjacency) = st_gcn(2, 3, (2, 1)), subjects(6, 2)
    names = [name for name, _ in network.named_parameters()]

    def logits(*weights):
        return functional_call(network, dict(zip(names, weights, strict=True)), (windows, adjacency))

    assert torch.autograd.gradcheck(logits, tuple(each.detach().requires_grad_() for each in network.parameters()))


@pytest.mark.parametrize("network", NETWORKS)
def test_the_edge_importance_starts_as_the_graph_itself(network):
    learnt, plain = network(), network(edge_importance=False)
    learnt.start(STREAMS, 0, 0)
    plain.start(STREAMS, 0, 0)
    torch.testing.assert_close(learnt(*subjects()), plain(*subjects()))


@pytest.mark.parametrize("network", NETWORKS)
def test_institutions_of_a_fold_start_alike_and_leave_torchs_stream_alone(network):
    first, second, other = network(), network(), network()
    state = torch.random.get_rng_state()
    first.start(STREAMS, 0, 0)
    second.start(STREAMS, 0, 1)
    other.start(STREAMS, 1, 0)
    assert torch.equal(torch.random.get_rng_state(), state)
    for name, weight in first.named_parameters():
        assert torch.equal(weight, second.get_parameter(name))
        constant = name.endswith("bias") or "norm" in name or "importance" in name
        assert torch.equal(weight, other.get_parameter(name)) == constant
    assert first(*subjects()).std(dim=0).min() > 1e-4


@pytest.mark.parametrize("network", NETWORKS)
def test_it_runs_on_another_device(network):
    model = network().to("meta")
    windows, adjacency = (part.to("meta") for part in subjects())
    logits = model(windows, adjacency)
    assert logits.device.type == "meta"
    assert logits.shape == (SUBJECTS, CLASSES)
    logits.sum().backward()
    assert all(weight.grad.device.type == "meta" for weight in model.parameters())


def test_an_even_kernel_has_no_centre():
    with pytest.raises(ValueError, match="odd number of time points, found kernel=4"):
        STGCN(REGIONS, CLASSES, 4, 4, (1,))
