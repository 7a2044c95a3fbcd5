"""Stacked trainings: folds that train in parallel, the same at all sites of a study; and any server."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from brainfed.engines import train_networks
from brainfed.engines.stacked import StackedTraining
from brainfed.engines.stacked import _training as training
from brainfed.engines.stacked._training import stacks_of_folds
from brainfed.federation import FederationSettings
from brainfed.federation.strategies import FedAvg
from brainfed.methods.mlp.declaration import FEDMLP
from brainfed.models import MLP
from brainfed.runtime.jobs import Run
from support.samples.method_inputs import method_inputs

FEATURES, FOLDS = 50, 6


def stacks(subjects, *, remote):
    inputs = method_inputs(subjects, FEATURES, folds=FOLDS)
    by_fold = replace(inputs, features=np.repeat(inputs.features[:1], FOLDS, axis=0))
    placed = replace(by_fold, link=SimpleNamespace(remote=remote))
    return stacks_of_folds(MLP(FEATURES, (8, 4), 2), placed, torch.float32, pooled=False)


@pytest.fixture()
def little_memory(monkeypatch):
    monkeypatch.setattr(training, "STACK_BYTES", 120_000)


@pytest.mark.usefixtures("little_memory")
def test_groups_of_folds_are_smaller_where_there_are_more_subjects():
    assert len(stacks(60, remote=False)) < len(stacks(600, remote=False))


@pytest.mark.usefixtures("little_memory")
def test_sites_of_different_sizes_have_the_same_groups():
    """Their initial tensors have a fold's axis, and the coordinator refuses a site whose shapes differ."""
    assert stacks(60, remote=True) == stacks(600, remote=True)
    assert len(stacks(60, remote=True)) > 1


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
