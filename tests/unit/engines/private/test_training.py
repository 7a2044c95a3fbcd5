"""Training to an outcome: topologies, crossings, rows of privacy, members' scores; what a server can recover."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from brainfed.engines import train_networks
from brainfed.engines.private import PrivateClients, PrivateCohort, PrivateTraining
from brainfed.engines.private._training import POOLED
from brainfed.federation import columns, record_pool
from brainfed.federation._sharing import UndeclaredCrossing
from brainfed.federation.strategies import FedAvg
from brainfed.models import LogisticRegression
from brainfed.runtime import Streams, UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import check
from support.samples.method_inputs import method_inputs

from .training import PRIVACY, STREAMS, clients_of, made_up, network, schedule, train

FEATURES = 5
DECLARED = {
    "weight-0": ("features", "classes"),
    "bias-0": ("classes",),
    "features": ("subjects", "features"),
    "labels": ("subjects",),
}


class RowsTraining(PrivateTraining):
    """Logistic regression on the features."""

    axes = property(lambda self: {"features": FEATURES, "classes": self.inputs.classes})

    def network(self, fold, place):
        module = LogisticRegression(FEATURES, self.inputs.classes)
        module.start(self.inputs.streams, fold)
        return module

    def cohort(self):
        values, members = torch.from_numpy(self.inputs.features[0]), self.members
        return PrivateCohort.of(
            self.inputs, members, lambda place, _fold, samples, _moment: (values[members[place][samples.numpy()]],)
        )

    def record_data(self, ledger):
        if self.topology == "central":
            sizes = dict(enumerate(np.bincount(self.inputs.institution).tolist()))
            record_pool(ledger, sizes, {"features": ((FEATURES,), 4)} | columns("labels"))


def training_of(inputs, topology, settings, shared_tensors=DECLARED, **options):
    return RowsTraining(inputs, settings, Run(precision="float64"), topology, shared_tensors, **options)


def cohort(**options):
    return method_inputs(subjects=60, dimensions=FEATURES, institutions=3, folds=3, effect=2.0, seed=2, **options)


@pytest.mark.parametrize("topology", ["local", "federated", "central"])
@pytest.mark.parametrize("split", ["random", "leave-one-site-out"])
@pytest.mark.parametrize("privacy", [{}, PRIVACY], ids=["without privacy", "private"])
def test_every_topology_scores_tested_and_training_subjects(topology, split, privacy):
    inputs = cohort(split=split)
    outcome = train_networks(training_of(inputs, topology, schedule(batch=8, **privacy)))
    check(inputs, outcome)
    assert outcome.round_scores.shape == (3, 3, 60, 2)
    assert outcome.training_loss.shape == (3, 3, 3)
    assert outcome.counts["parameters"] == FEATURES * 2 + 2
    rows = outcome.privacy
    trainers = 1 if topology == "central" else 3
    absent = 3 if split == "leave-one-site-out" and trainers == 3 else 0
    assert len(rows) == (trainers * 3 - absent if privacy else 0)
    if topology == "central":
        assert {row["institution"] for row in rows} <= {POOLED}
    for row in rows:
        training = inputs.labels[row["fold"]] >= 0
        if topology != "central":
            training = training & (inputs.institution == inputs.institutions.index(row["institution"]))
        assert row["subjects"] == training.sum()
        assert row["steps"] == 6 * -(-row["subjects"] // 8)
        assert row["noise_multiplier"] == pytest.approx(np.sqrt(2 * np.log(1250)) / 4)
        assert row["epsilon_spent"] > row["epsilon_planned"] == 4
    names = {(row["name"], row["direction"]) for row in outcome.crossings}
    parameters = {(name, way) for name in ("weight-0", "bias-0") for way in ("upload", "download")}
    pool = {("features", "upload"), ("labels", "upload")}
    helps = parameters if split == "leave-one-site-out" else set()
    assert names == {"local": helps, "federated": parameters, "central": pool}[topology]


def test_it_learns_what_there_is_to_learn():
    inputs = method_inputs(subjects=180, dimensions=FEATURES, institutions=3, folds=2, effect=3.0, seed=4)
    settings = schedule(rounds=10, batch=16, learning_rate=0.5, privacy="accountant", epsilon=5.0, delta=1e-3)
    for options in (settings, replace(settings, privacy="none")):
        outcome = train_networks(training_of(inputs, "federated", options))
        predicted = np.nanargmax(np.nan_to_num(outcome.scores, nan=-1), axis=2)
        truth = inputs.labels.max(axis=0)
        tested = np.isfinite(outcome.scores[..., 0])
        accuracy = (predicted == truth)[tested].mean()
        assert accuracy > 0.8
        members = np.isfinite(outcome.member_scores[..., 0])
        assert (members == (inputs.labels >= 0)).all()


def test_the_labels_of_a_fold_change_nothing_where_it_is_tested():
    inputs = cohort()
    truth = inputs.labels.max(axis=0)
    flipped = np.where(inputs.labels >= 0, 1 - truth, -1)
    # Fold 0 keeps its training labels; the other folds train on other ones.
    labels = np.where(np.arange(3)[:, None] == 0, inputs.labels, flipped)
    settings = schedule(**PRIVACY)
    found = [
        train_networks(training_of(each, "federated", settings)) for each in (inputs, replace(inputs, labels=labels))
    ]
    np.testing.assert_array_equal(found[0].scores[0], found[1].scores[0])
    np.testing.assert_array_equal(found[0].member_scores[0], found[1].member_scores[0])
    assert (found[0].scores[1] != found[1].scores[1])[np.isfinite(found[0].scores[1])].any()


def test_an_unseen_institution_has_the_mean_of_the_others_scores():
    inputs = cohort(split="leave-one-site-out")
    training = training_of(inputs, "local", schedule())
    outcome = train_networks(training)
    clients = training.clients(tuple(range(3)), training.ledger())
    clients.load(2, _final(training))
    own = inputs.members(1)
    samples = torch.arange(len(own))
    expected = np.mean([clients.foreign_probabilities(teacher, 1, 1, samples.numpy()) for teacher in (0, 2)], axis=0)
    np.testing.assert_allclose(outcome.scores[1, own], expected, atol=1e-12)
    assert np.isnan(outcome.round_scores[:-1, 1, own]).all()


def _final(training):
    """State of the institutions after the last round."""
    clients = training.clients(tuple(range(3)), training.ledger())
    for number in range(training.schedule.rounds):
        clients.fit(number, clients.institutions)
        clients.score(number)
    return clients.state(training.schedule.rounds - 1)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["mlp", "convolution"])
def test_a_gpu_gives_the_cpus_losses(kind):
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    data, found = made_up(3 if kind == "convolution" else 0), []
    for device in ("cpu", "cuda:0"):
        clients = clients_of(data, kind, schedule(**PRIVACY))
        modules = [[each.to(device) for each in own] for own in clients.modules]
        found.append(train(PrivateClients(modules, data.cohort, schedule(**PRIVACY), STREAMS, clients.shares)))
    np.testing.assert_allclose(found[0].curves.losses, found[1].curves.losses, atol=1e-6)
    np.testing.assert_allclose(found[0].curves.probabilities, found[1].curves.probabilities, atol=1e-6)


def test_a_tensor_that_is_not_declared_stops_the_training():
    training = training_of(cohort(), "federated", schedule(), shared_tensors={"bias-0": ("classes",)})
    with pytest.raises(UndeclaredCrossing, match="weight-0 may not leave"):
        train_networks(training)


def test_a_large_delta_names_the_institution():
    with pytest.raises(UserError, match=r"delta of institution site-0: expected less than 1 / 1\d training subjects"):
        train_networks(training_of(cohort(), "federated", schedule(privacy="accountant", delta=0.1)))


def test_the_servers_weights_are_reported():
    class Weighing(FedAvg):
        @property
        def shares(self):
            return np.full((3, 3, 3), 1 / 3)

    outcome = train_networks(training_of(cohort(), "federated", schedule(), server=Weighing))
    assert outcome.shares.shape == (3, 3, 3)
    assert train_networks(training_of(cohort(), "federated", schedule())).shares is None


def uploads_of(data, kind, settings, streams=STREAMS):
    """(start, upload) of institution 1, fold 0, after one round."""
    clients = clients_of(data, kind, settings, streams=streams)
    start = {name: each[0].clone() for name, each in clients.start().items()}
    return start, {name: each[0] for name, each in clients.fit(0, (1,))[1].tensors.items()}


def recovered(data, subject, kind, settings, other=STREAMS):
    """The gradient of one subject, from the uploads with and without it, and the true one, as vectors."""
    without = replace(data, labels=data.labels.clone())
    without.labels[1, 0, subject] = -1
    sums = []
    for each, streams in ((data, STREAMS), (without, other)):
        start, upload = uploads_of(each, kind, settings, streams)
        count = int((each.labels[1, 0] >= 0).sum())
        sums.append({name: (start[name] - upload[name]) * count / settings.learning_rate for name in start})
    found = torch.cat([(sums[0][name] - sums[1][name]).flatten() for name in sums[0]])
    module = network(kind)
    loss = cross_entropy(module(*data.rows(1, subject, None)[0]), data.labels[1, 0, subject][None])
    true = torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(module.parameters()))])
    return found, true


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_without_clipping_and_noise_two_uploads_give_away_a_subjects_gradient(kind):
    """The canary: the attack works where there is no protection."""
    settings = schedule(rounds=1, local_epochs=1, batch=0)
    found, true = recovered(made_up(), 3, kind, settings)
    torch.testing.assert_close(found, true, atol=1e-8, rtol=0)


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_noise_hides_a_subjects_gradient(kind):
    settings = schedule(rounds=1, local_epochs=1, batch=0, privacy="accountant", epsilon=1.0, delta=1e-3)
    alike = []
    for seed in range(20):
        found, true = recovered(made_up(), 3, kind, settings, Streams(100 + seed))
        assert float((found - true).norm()) > float(true.norm())
        alike.append(float(torch.nn.functional.cosine_similarity(found, true, dim=0)))
    assert max(alike) < 0.95
    assert abs(np.mean(alike)) < 0.5
