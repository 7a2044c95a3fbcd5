"""The torch side of private methods: ridge, FedTangent, logistic regression, FedMLP."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from brainfed.engines.clients import axes_of
from brainfed.engines.private.cohort import Moment, PrivateCohort
from brainfed.engines.private.training import PrivateTraining
from brainfed.engines.training import run_rounds, train_networks
from brainfed.federation.accounting import Spending, noise_multiplier, spending_row
from brainfed.federation.ledger import Ledger
from brainfed.federation.noise import WeightNoise
from brainfed.federation.sharing import record_downloads
from brainfed.federation.strategies.quasi_newton import GradientDescent
from brainfed.federation.wire import Wire
from brainfed.methods.method import Method
from brainfed.methods.private_linear.clients import GradientClients, Member, Noise, own_rows
from brainfed.methods.private_linear.declaration import (
    FEDMLP_DP,
    FEDTANGENT_DP,
    LOGISTIC_DP,
    RIDGE_DP,
    PrivateMLPSettings,
    PrivateNetworkSettings,
    PrivateRidgeSettings,
)
from brainfed.models.classifier import Classifier, LogisticRegression
from brainfed.models.fedni import MLP
from brainfed.runtime.jobs.checkpoints import Run
from brainfed.samples.inputs import MethodInputs, Outcome
from brainfed.samples.labelled_subjects import of_two_classes, require_training_subjects

LOUDEST = 0.4
"""Limit of the standard deviation of the noise in a score. Targets have norm 1: beyond it, residuals are noise that the
next rounds clip and fit."""


def train(method: Method, inputs: MethodInputs, settings: PrivateRidgeSettings, run: Run) -> Outcome:
    """Train and score all folds side by side.

    Returns:
        Margins of every round. The crossings are those of the first fold.

    Raises:
        UserError: a fold has no training subject, its features are fitted, or delta is too large for an institution.
    """
    for fold in range(inputs.folds):
        require_training_subjects(inputs, fold)
    counts = settings.balance == "classes"
    multiplier = noise_multiplier(settings, 1.0, settings.rounds + counts)
    clients = _clients(inputs, settings, multiplier, run)
    spendings = _spendings(inputs, settings, clients, multiplier)
    folds, models, features = clients.weights.shape
    ledger = Ledger(
        method.crossing.tensors, {"features": features, "models": models, "classes": clients.class_weights.shape[1]}
    )
    senders = (clients.samples > 0).sum(dim=0).to(torch.float64)
    server = GradientDescent(
        clients.institutions,
        clients.weights,
        _steps(settings, multiplier, clients.samples),
        clients.class_weights,
        multiplier * senders.sqrt() if counts else None,
    )
    sizes = dict(enumerate(np.bincount(inputs.institution, minlength=len(inputs.institutions)).tolist()))
    seen = {place: count for place, count in enumerate(clients.samples[:, 0].tolist()) if count}
    wire = Wire(ledger, sizes, WeightNoise(0.0, inputs.streams, tuple(range(folds))), seen)
    run_rounds(clients, server, wire, settings.rounds + counts, inputs.link, run.checkpoint, run.progress)
    unseen = {place: size for place, size in sizes.items() if place not in seen}
    record_downloads(ledger, unseen, {"weights": ((models, features), clients.weights.element_size())})
    # (T, F, n, C) margins of all subjects after every round.
    every = np.zeros((len(clients.losses), *inputs.labels.shape, models))
    for place in clients.institutions:
        every[:, :, inputs.members(place)] = clients.curves[place]
    every = of_two_classes(every[..., 0], "margin") if inputs.classes == 2 else every
    tested = np.arange(folds)[:, None] == inputs.fold
    rounds = np.where(tested[:, :, None], every, np.nan)
    trained = np.where((inputs.labels >= 0)[:, :, None], every[-1], np.nan)
    return Outcome(
        rounds[-1],
        "margin",
        rounds,
        clients.losses,
        {"parameters": models * features, "rounds": settings.rounds + counts},
        ledger.rows(),
        member_scores=trained,
        privacy=tuple(spending_row(spending, settings) for spending in spendings) if settings.private else (),
    )


train_ridge_dp = partial(train, RIDGE_DP)
train_fedtangent_dp = partial(train, FEDTANGENT_DP)


def _steps(settings: PrivateRidgeSettings, multiplier: float, samples: Tensor) -> Tensor:
    """(F,) size of a step: the setting's, or less where the noise of all rounds would give scores more than `LOUDEST`.

    Args:
        samples: (M, F) numbers of training subjects, which are public.
    """
    subjects, senders = samples.sum(dim=0).double(), (samples > 0).sum(dim=0).double()
    noise = multiplier * settings.clip * (settings.rounds * senders).sqrt() / subjects
    return (LOUDEST / noise.clamp(min=1e-300)).clamp(max=settings.learning_rate)


def _clients(inputs: MethodInputs, settings: PrivateRidgeSettings, multiplier: float, run: Run) -> GradientClients:
    rows = torch.from_numpy(own_rows(inputs, settings.centre)).to(run.device, getattr(torch, run.precision))
    labels = torch.from_numpy(inputs.labels).to(run.device)
    places = [torch.from_numpy(inputs.members(code)).to(run.device) for code in range(len(inputs.institutions))]
    members = [Member(rows[own], labels[:, own]) for own in places]
    noise = Noise(multiplier, settings.clip, inputs.streams)
    return GradientClients(members, inputs.classes, settings.rounds, noise, counts=settings.balance == "classes")


def _spendings(
    inputs: MethodInputs, settings: PrivateRidgeSettings, clients: GradientClients, multiplier: float
) -> list[Spending]:
    """One for each institution and fold with training subjects; every step takes all of them."""
    spendings = []
    for fold in range(inputs.folds):
        for place, name in enumerate(inputs.institutions):
            if subjects := int(clients.samples[place, fold]):
                settings.require_enough(name, subjects)
                steps = settings.rounds + (settings.balance == "classes")
                spendings.append(Spending(name, fold, subjects, 1.0, steps, multiplier))
    return spendings


@dataclass(frozen=True, kw_only=True)
class RowsTraining(PrivateTraining[MethodInputs]):
    """A classifier on rows that are made from each subject alone.

    Attributes:
        rows: (n, d).
    """

    module: Classifier
    rows: Tensor

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of axes that the ledger knows."""
        return axes_of(self.module)

    def network(self, fold: int, _place: int) -> Classifier:
        """The classifier; all institutions start alike."""
        module = deepcopy(self.module)
        module.start(self.inputs.streams, fold)
        return module

    def cohort(self) -> PrivateCohort:
        """The rows of the institutions' subjects."""
        members = self.members

        def arguments(place: int, _position: int, samples: Tensor, _moment: Moment | None) -> tuple[Tensor, ...]:
            return (self.rows[torch.from_numpy(members[place])[samples]],)

        return PrivateCohort.of(self.inputs, members, arguments)


def train_logistic_dp(inputs: MethodInputs, settings: PrivateNetworkSettings, run: Run) -> Outcome:
    """Train logistic regression on one repeat."""
    module = LogisticRegression(inputs.features[0].shape[1], inputs.classes)
    return _train(LOGISTIC_DP, module, inputs, settings, run)


def train_fedmlp_dp(inputs: MethodInputs, settings: PrivateMLPSettings, run: Run) -> Outcome:
    """Train the classifier without a graph on one repeat."""
    module = MLP(inputs.features[0].shape[1], settings.hidden, inputs.classes)
    return _train(FEDMLP_DP, module, inputs, settings, run)


def _train(
    method: Method, module: Classifier, inputs: MethodInputs, settings: PrivateNetworkSettings, run: Run
) -> Outcome:
    """Train `module` on rows of the norm that the settings have.

    Raises:
        UserError: as of `own_rows`, or the privacy settings do not fit the cohort.
    """
    rows = settings.row_norm * torch.from_numpy(own_rows(inputs, settings.centre))
    tensors = method.crossing.tensors
    return train_networks(RowsTraining(inputs, settings, run, "federated", tensors, module=module, rows=rows))
