"""Training keeps its tensors on one device: proven on torch's `meta` device everywhere, on a GPU where there is one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.engines.stacked import StackedTraining
from brainfed.federation import FederationSettings, Ledger
from brainfed.graphs import normalised_adjacency
from brainfed.models import GCN
from brainfed.runtime.jobs import Run
from support.samples.method_inputs import method_inputs
from support.samples.quick_methods import METHOD_OF, outcome_of
from unit.methods.test_leakage_trained import ON_FEATURES

ON_META = Run(device="meta")


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_a_training_step_stays_on_its_device(protocol):
    inputs = method_inputs(40, 12, institutions=2, folds=2, protocol=protocol)
    task = StackedTraining(
        inputs,
        FederationSettings(),
        ON_META,
        "federated",
        {},
        module=GCN(12, (8, 4), 2),
        propagate=normalised_adjacency,
    )
    network = task.network((0, 1), Ledger({}))
    losses = network.training_step(network.stack.labels, torch.ones(2, dtype=torch.bool))
    torch.optim.Adam(network.parameters(), lr=FederationSettings().learning_rate).step()
    assert losses.device == torch.device("meta")
    assert network.probabilities().shape == (*network.stack.labels.shape, 2)


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("float64", 1e-6)])
@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("name", [name for name in ON_FEATURES if METHOD_OF[name].capabilities.gpu])
def test_a_gpu_gives_the_cpus_scores(name, protocol, precision, tolerance):
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    if (name, precision) == ("fedsage-plus", "float32"):
        pytest.skip("it separates these classes so far that rounding alone moves single scores")
    inputs = method_inputs(90, 200, protocol=protocol)
    cpu, gpu = (outcome_of(name, inputs, Run(device, precision=precision)) for device in ("cpu", "cuda:0"))
    np.testing.assert_allclose(gpu.scores[..., 1], cpu.scores[..., 1], atol=tolerance, equal_nan=True)
    assert replace(gpu, scores=cpu.scores).counts == cpu.counts
