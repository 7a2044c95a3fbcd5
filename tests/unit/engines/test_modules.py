"""The module engine: the stacked engine's numbers, modules of different widths, and a resumed run's bytes."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from brainfed.engines import parameters_by_wire_name
from brainfed.engines.stacked import StackedTraining
from brainfed.engines.stacked._training import StackedClients
from brainfed.federation import FederationSettings, Ledger, WeightNoise, Wire, federate
from brainfed.federation.strategies import Alone, FedAvg
from brainfed.graphs import normalised_adjacency
from brainfed.methods.gcn.declaration import FEDGCN
from brainfed.models import GCN, MLP
from brainfed.runtime.jobs import Checkpoint, Run
from reference.loop_federation import client_of, symmetric
from reference.module_clients import Cohort, ModuleClients, _check_shares
from support.samples.method_inputs import method_inputs

FOLDS, ROUNDS, FEATURES = (0, 1, 2), 3, 9
SCHEDULE = {"rounds": ROUNDS, "local_epochs": 3, "learning_rate": 0.01}
NOTHING = Checkpoint(None, "")


def cohort():
    return method_inputs(subjects=47, dimensions=FEATURES, institutions=3, folds=3, effect=0.5, seed=5)


def clients_of(inputs, make, settings, shares, propagate=None):
    """`make`: institution -> its module."""
    members = [inputs.members(place) for place in range(3)]
    labels = torch.full((3, len(FOLDS), max(map(len, members))), -1)
    modules, arguments = [], []
    for place, nodes in enumerate(members):
        held = [client_of(inputs, nodes, fold, make(place), propagate) for fold in FOLDS]
        modules.append([client.model for client in held])
        arguments.append([(client.features, client.propagation) for client in held])
        for position, client in enumerate(held):
            labels[place, position, : len(nodes)] = client.labels
    data = Cohort(arguments, labels, [len(nodes) for nodes in members], FOLDS, inputs.classes)
    return ModuleClients(modules, data, settings, inputs.streams, shares)


def train(clients, settings, streams, shares, checkpoint=NOTHING, progress=lambda *_: None):
    sizes = dict(enumerate(clients.samples[:, 0].tolist()))
    people = dict.fromkeys(range(3), 20)
    noise = WeightNoise(settings.noise, streams, FOLDS)
    declared = FEDGCN.crossing.tensors | {"moments": ("hidden-0",)}
    wire = Wire(Ledger(declared), people, noise, sizes if settings.weighting == "subjects" else None)
    codes = clients.institutions
    server = FedAvg(codes, clients.start(), settings.weighting) if shares else Alone(codes)
    federate(clients, server, wire, ROUNDS, checkpoint, progress)
    return clients


@pytest.mark.parametrize(
    "options",
    [{}, {"batch": 5}, {"proximal": 0.5}, {"weighting": "subjects"}, {"optimiser_state": "keep"}, {"shares": ()},
     {"shares": ("weight-0", "bias-0")}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("graph", [True, False], ids=["fedgcn", "fedmlp"])
def test_it_gives_the_stacked_engines_numbers(graph, options):
    inputs, options = cohort(), dict(options)
    module = GCN(FEATURES, (8, 4), 2) if graph else MLP(FEATURES, (8, 4), 2)
    shares = options.pop("shares", tuple(parameters_by_wire_name(module)))
    settings = FederationSettings(**SCHEDULE, **options)
    run = Run(precision="float64")
    task = StackedTraining(
        inputs,
        settings,
        run,
        "federated",
        {},
        module=deepcopy(module),
        propagate=normalised_adjacency if graph else None,
    )
    expected = train(
        StackedClients(task.network(FOLDS, Ledger({})), inputs, settings, shares), settings, inputs.streams, shares
    )
    found = clients_of(inputs, lambda _: module, settings, shares, symmetric if graph else None)
    train(found, settings, inputs.streams, shares)
    np.testing.assert_allclose(found.curves.losses, expected.curves.losses, atol=1e-8, rtol=0)
    for place in range(3):
        nodes = slice(0, len(inputs.members(place)))
        left, right = (each.curves.probabilities[:, place, :, nodes] for each in (found, expected))
        np.testing.assert_allclose(left, right, atol=1e-8, rtol=0)
    for name, stack in expected.network.stacks().items():
        for place in range(3):
            own = torch.stack([parameters_by_wire_name(each)[name].detach() for each in found.modules[place]])
            torch.testing.assert_close(own, stack[place], atol=1e-8, rtol=0)


class Noisy(MLP):
    """An MLP that drops inputs by torch's own generator and counts its calls in a buffer."""

    def __init__(self):
        super().__init__(FEATURES, (8, 4), 2)
        self.register_buffer("moments", torch.zeros(8))

    def forward(self, x, propagation=None):
        if self.training:
            self.moments += 1
        return super().forward(torch.nn.functional.dropout(x, 0.3, self.training), propagation)


@pytest.mark.parametrize("optimiser_state", ["reset", "keep"])
def test_an_interrupted_training_resumes_to_the_same_bytes(optimiser_state, resumed):
    settings = FederationSettings(**SCHEDULE, optimiser_state=optimiser_state)
    inputs, shares = cohort(), ("weight-1", "moments")

    def trained(run):
        clients = clients_of(inputs, lambda _: Noisy(), settings, shares)
        return train(clients, settings, inputs.streams, shares, checkpoint=run.checkpoint, progress=run.progress)

    expected = trained(Run())
    again, seen = resumed(trained, 2)
    assert seen == [2, 3]
    for name, curve in expected.curves.until(ROUNDS - 1).items():
        assert again.curves.until(ROUNDS - 1)[name].tobytes() == curve.tobytes()
    for name, array in expected.state(ROUNDS - 1).items():
        assert again.state(ROUNDS - 1)[name].tobytes() == array.tobytes()
    # A buffer is averaged as it is: no noise is added to it.
    assert float(expected.modules[0][0].moments[0]) == ROUNDS * settings.local_epochs


def test_institutions_of_different_widths_share_their_last_layer_alone():
    inputs, shares = cohort(), ("weight-2", "bias-2")
    settings = FederationSettings(**{**SCHEDULE, "local_epochs": 10}, noise=0.0)
    clients = clients_of(inputs, lambda place: MLP(FEATURES, (4 + place, 4), 2), settings, shares)
    train(clients, settings, inputs.streams, shares)
    assert clients.curves.losses[-1].mean() < clients.curves.losses[0].mean()
    first, second = (parameters_by_wire_name(clients.modules[place][0]) for place in (0, 1))
    assert torch.equal(first["weight-2"], second["weight-2"])
    assert first["weight-0"].shape != second["weight-0"].shape
    assert not torch.equal(first["bias-1"], second["bias-1"])


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (("0_weight",), "shares: expected names among 0.weight, 0.bias, .* found 0_weight"),
        (("1.num-batches-tracked",), "expected floating-point tensors, found 1.num-batches-tracked of torch.int64"),
    ],
)
def test_shares_are_names_of_tensors_with_a_mean(shares, message):
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with pytest.raises(ValueError, match=message):
        _check_shares(module, shares)
