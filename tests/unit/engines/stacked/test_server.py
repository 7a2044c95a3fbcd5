"""A training takes any server."""

import torch

from brainfed.engines.stacked.training import StackedTraining
from brainfed.engines.training import train_networks
from brainfed.federation.schedule import FederationSettings
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.methods.mlp.declaration import FEDMLP
from brainfed.models.mlp import MLP
from brainfed.runtime.jobs.run import Run
from support.samples.method_inputs import method_inputs


class FrozenServer(FedAvg):
    """A server that never moves from the start."""

    def aggregate(self, _number, replies):
        assert all(torch.isfinite(tensor).all() for reply in replies.values() for tensor in reply.tensors.values())


def test_the_server_of_a_training_decides_the_model():
    inputs = method_inputs(40, 7)
    schedule = FederationSettings(rounds=2, local_epochs=2, learning_rate=0.05)

    def scores(**options):
        module = MLP(7, (4, 3), 2)
        task = StackedTraining(inputs, schedule, Run(), "federated", FEDMLP.crossing.tensors, module=module, **options)
        return train_networks(task).round_scores

    averaged, frozen = scores(), scores(server=FrozenServer)
    assert frozen[0].tobytes() == frozen[1].tobytes()
    assert averaged[0].tobytes() != averaged[1].tobytes()
