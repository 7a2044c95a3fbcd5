"""A stack scores, learns and trains as its plain modules do one by one, in float64 to 1e-8."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from brainfed.engines import wire_name
from brainfed.engines.stacked import StackedTraining
from brainfed.federation import Adam, FederationSettings, Ledger
from brainfed.graphs import neighbour_mean, normalised_adjacency
from brainfed.models import GCN, MLP, GraphSAGE, LogisticRegression
from brainfed.runtime.jobs import Run
from reference.fedsage import neighbour_means
from reference.loop_federation import client_of, symmetric
from support.samples.method_inputs import method_inputs

FOLDS, FEATURES, CLASSES = (0, 1, 2), 9, 3
NETWORKS = {
    "gcn": (GCN(FEATURES, (8, 4), CLASSES), normalised_adjacency, symmetric),
    "gcn with a skip": (GCN(FEATURES, (8, 4), CLASSES, skip=True), normalised_adjacency, symmetric),
    "mlp": (MLP(FEATURES, (8, 4), CLASSES), None, None),
    "logistic regression": (LogisticRegression(FEATURES, CLASSES), None, None),
    "graphsage": (GraphSAGE(FEATURES, (8, 4), CLASSES), neighbour_mean, neighbour_means),
}
every_network = pytest.mark.parametrize("name", list(NETWORKS))
EVERYBODY = torch.ones(3, dtype=torch.bool)


def stack_and_modules(name, protocol="transductive"):
    """The stacked network, and (M)(F) plain ones with the same random weights."""
    module, propagate, plain = NETWORKS[name]
    inputs = method_inputs(subjects=47, dimensions=FEATURES, institutions=3, folds=3, seed=5, protocol=protocol)
    settings, run = FederationSettings(learning_rate=0.01), Run(precision="float64")
    task = StackedTraining(inputs, settings, run, "local", {}, module=deepcopy(module), propagate=propagate)
    stacked = task.network(FOLDS, Ledger({}))
    clients = [[client_of(inputs, inputs.members(m), fold, module, plain) for fold in FOLDS] for m in range(3)]
    random = torch.Generator().manual_seed(0)
    values = {name: torch.randn(stack.shape, generator=random) / 3 for name, stack in stacked.stacks().items()}
    stacked.load(values)
    for place, own in enumerate(clients):
        for position, client in enumerate(own):
            held = client.model.named_parameters()
            client.model.load_state_dict({name: values[wire_name(name)][place, position] for name, _ in held})
    return stacked, clients


def loss_of(client):
    labelled = client.labels >= 0
    return cross_entropy(client.logits()[labelled], client.labels[labelled])


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@every_network
def test_scores_losses_and_gradients(name, protocol):
    stacked, clients = stack_and_modules(name, protocol)
    scores = stacked.probabilities()
    losses = stacked.training_step(stacked.stack.labels, EVERYBODY)
    gradients = {name: stacked.first[name].weight.grad.permute(0, 2, 1, 3) for name in stacked.first}
    gradients |= {name: parameter.grad for name, parameter in stacked.rest.items()}
    for place, own in enumerate(clients):
        for position, client in enumerate(own):
            expected = torch.softmax(client.logits(), dim=1).detach()
            torch.testing.assert_close(scores[place, position, : len(expected)], expected, atol=1e-8, rtol=0)
            loss = loss_of(client)
            assert float(losses[place, position]) == pytest.approx(float(loss.detach()), abs=1e-8)
            loss.backward()
            for parameter, tensor in client.model.named_parameters():
                found = gradients[parameter][place, position].reshape(tensor.shape)
                torch.testing.assert_close(found, tensor.grad, atol=1e-8, rtol=0)


@every_network
def test_a_short_training(name):
    stacked, clients = stack_and_modules(name)
    optimiser = Adam(stacked.parameters(), 0.01)
    for _ in range(10):
        stacked.training_step(stacked.stack.labels, EVERYBODY)
        optimiser.step()
    views = stacked.stacks()
    for place, own in enumerate(clients):
        for position, client in enumerate(own):
            plain = torch.optim.Adam(client.model.parameters(), lr=0.01)
            for _ in range(10):
                plain.zero_grad()
                loss_of(client).backward()
                plain.step()
            for parameter, tensor in client.model.named_parameters():
                found = views[wire_name(parameter)][place, position]
                np.testing.assert_allclose(found, tensor.detach(), atol=1e-8, rtol=0)
