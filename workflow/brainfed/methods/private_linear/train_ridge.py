"""The torch side of private ridge and private FedTangent."""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.training import run_rounds
from brainfed.federation.ledger import Ledger
from brainfed.federation.privacy.calibration import noise_multiplier
from brainfed.federation.privacy.spending import Spending, spending_row
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.sharing import record_downloads
from brainfed.federation.strategies.gradient_descent import GradientDescent
from brainfed.federation.wire import Wire
from brainfed.methods.method import Method
from brainfed.methods.private_linear.clients import GradientClients, Member, Noise
from brainfed.methods.private_linear.declaration import FEDTANGENT_DP, RIDGE_DP, PrivateRidgeSettings
from brainfed.methods.private_linear.rows import own_rows
from brainfed.runtime.jobs.run import Run
from brainfed.samples.class_scores import of_two_classes
from brainfed.samples.inputs import MethodInputs, Outcome
from brainfed.samples.training_folds import require_training_subjects

Float64 = NDArray[np.float64]

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
    every = _joined(inputs, clients)
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
        settings: of the method.
        multiplier: of the noise.
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
    found = []
    for fold in range(inputs.folds):
        for place, name in enumerate(inputs.institutions):
            if subjects := int(clients.samples[place, fold]):
                settings.require_enough(name, subjects)
                steps = settings.rounds + (settings.balance == "classes")
                found.append(Spending(name, fold, subjects, 1.0, steps, multiplier))
    return found


def _joined(inputs: MethodInputs, clients: GradientClients) -> Float64:
    """(T, F, n, C) margins of all subjects after every round."""
    every = np.zeros((*clients.losses.shape[:1], *inputs.labels.shape, clients.weights.shape[1]))
    for place in clients.institutions:
        every[:, :, inputs.members(place)] = clients.curves[place]
    return of_two_classes(every[..., 0], "margin") if inputs.classes == 2 else every
