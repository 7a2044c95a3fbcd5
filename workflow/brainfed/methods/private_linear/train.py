"""The torch side of private methods: ridge, FedTangent, logistic regression, FedMLP."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import axes_of, run_rounds, train_networks
from brainfed.engines.private import Moment, PrivateCohort, PrivateTraining, clip_factors
from brainfed.federation import (
    Arrays,
    Ledger,
    Message,
    Spending,
    WeightNoise,
    Wire,
    noise_multiplier,
    private_normal,
    record_downloads,
    spending_row,
)
from brainfed.federation.strategies import GradientDescent
from brainfed.methods import Method
from brainfed.methods.private_linear.declaration import (
    FEDMLP_DP,
    FEDTANGENT_DP,
    LOGISTIC_DP,
    RIDGE_DP,
    PrivateMLPSettings,
    PrivateNetworkSettings,
    PrivateRidgeSettings,
)
from brainfed.models import MLP, Classifier, LogisticRegression
from brainfed.runtime import Float64, FloatArray, Streams, UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, centred_subjects, of_two_classes, require_training_subjects

# Rows of norm 1, each made from one subject alone.
#
# A subject's gradient is a residual times its row, so a row of norm 1 bounds it without any fit to other subjects.

MARGIN = 1e-6
"""Share by which rows are shorter than 1: rounding to float32 then leaves no norm above 1."""


def unit_rows(features: FloatArray, centre: Literal["none", "subject"]) -> FloatArray:
    """Rows (n, d) of norm 1, by `MARGIN` less; a row without variation is zero under `subject`.

    Args:
        features: (n, d).
        centre: `subject` subtracts the mean of each row first.
    """
    rows = centred_subjects(features) if centre == "subject" else features
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64, casting="unsafe"))
    constant = np.ptp(rows, axis=1) == 0 if centre == "subject" else norms == 0
    scaled: FloatArray = rows / np.where(constant, np.inf, norms * (1 + MARGIN))[:, None].astype(rows.dtype)
    return scaled


def own_rows(inputs: MethodInputs, centre: Literal["none", "subject"]) -> FloatArray:
    """Unit rows (n, d) that all folds share.

    Raises:
        UserError: the features of a fold are fitted on its training subjects.
    """
    if len(inputs.features) > 1:
        raise UserError(
            f"features: expected the same for all folds, as a fit to training subjects has no privacy, found "
            f"{len(inputs.features)} fits; leave out harmonise, selection and a fitted reference."
        )
    return unit_rows(inputs.features[0], centre)


# Institutions that send noised sums of clipped gradients of the squared loss.
#
# Subject i of class c has a row x_i of norm 1, targets t_i and a weight v_c <= 1. Its gradient of v_c |t_i - W x_i|^2 /
# 2 is
#
#     -r_i x_i',    r_i = v_c (t_i - W x_i),
#
# of norm |r_i|: the clipped gradient needs no gradient of a single subject, and the sum is one product. The data of one
# subject move it by at most C. An institution adds N(0, (z C)^2) to every entry with the noise multiplier z, before the
# sum leaves it. A score x'w has noise of variance z^2 C^2 an institution and step then, for any number of features.


@dataclass(frozen=True)
class Member:
    """The subjects of one institution.

    Attributes:
        rows: (n, d) of norm 1 or 0.
        labels: (F, n) classes, -1 of subjects that do not train in the fold.
    """

    rows: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Noise:
    """Noise of all institutions and folds.

    Attributes:
        multiplier: standard deviation over the clipping norm; 0 neither clips nor draws.
        clip: largest norm C of a subject's gradient.
    """

    multiplier: float
    clip: float
    streams: Streams

    def clipped(self, residuals: Tensor) -> Tensor:
        """Residuals (F, n, K) of rows of norm 1, each (K,) of norm C at most."""
        if not self.multiplier:
            return residuals
        return residuals * clip_factors(residuals.norm(dim=2, keepdim=True), self.clip)

    def add(self, sums: Tensor, sensitivity: float, trained: Tensor, name: str, place: int, number: int) -> Tensor:
        """Sums (F, ...) with noise in the folds `trained` (F,), in which the institution has subjects."""
        if not self.multiplier:
            return sums
        drawn = torch.zeros_like(sums)
        for fold in torch.nonzero(trained)[:, 0].tolist():
            drawn[fold] = private_normal(self.streams, sums.shape[1:], place, fold, number, name).to(sums)
        return sums + self.multiplier * sensitivity * drawn


class GradientClients:
    """M institutions with one model of K scores, class against the rest; all folds in one product.

    Args:
        classes: C; two have one score, for the second.
        counts: whether the first round sends the noised numbers of subjects of each class.
    """

    def __init__(self, members: Sequence[Member], classes: int, rounds: int, noise: Noise, *, counts: bool) -> None:
        self.members, self.noise, self.first = members, noise, int(counts)
        self.institutions = tuple(range(len(members)))
        folds, features = len(members[0].labels), members[0].rows.shape[1]
        models = 1 if classes == 2 else classes
        self.weights = members[0].rows.new_zeros(folds, models, features)
        self.class_weights = members[0].rows.new_ones(folds, classes)
        self.samples = torch.stack([(member.labels >= 0).sum(dim=1).cpu() for member in members])
        each = [member.labels.shape[1] for member in members]
        self.curves = [np.zeros((rounds, folds, size, models)) for size in each]
        self.losses = np.full((rounds, len(members), folds), np.nan)

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """The counts of classes, or the gradient at the server's weights."""
        return {place: self._reply(number, place) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Copy the server's weights, which are the same for all institutions."""
        for message in list(messages.values())[:1]:
            self.weights = message.tensors.get("weights", self.weights).clone()
            self.class_weights = message.tensors.get("class-weights", self.class_weights).clone()

    def score(self, number: int) -> str:
        """Score everybody by the model after the round; losses are for the report, and no institution sends them."""
        if (step := number - self.first) < 0:
            return "counts"
        for place, member in enumerate(self.members):
            scores = self._scores(member)
            self.curves[place][step] = scores.double().cpu().numpy()
            self.losses[step, place] = self._losses(member, scores)
        return "squared loss"

    def state(self, number: int) -> Arrays:
        """The models, and the curves until this round."""
        done = number - self.first + 1
        curves = {f"curve-{place}": curve[:done] for place, curve in enumerate(self.curves)}
        models = {"weights": self.weights, "class-weights": self.class_weights}
        return {name: tensor.cpu().numpy() for name, tensor in models.items()} | curves | {"losses": self.losses[:done]}

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        done = number - self.first + 1
        for place, curve in enumerate(self.curves):
            curve[:done] = arrays[f"curve-{place}"]
        self.losses[:done] = arrays["losses"]
        self.weights.copy_(torch.from_numpy(arrays["weights"]))
        self.class_weights.copy_(torch.from_numpy(arrays["class-weights"]))

    def _reply(self, number: int, place: int) -> Message:
        member, trained = self.members[place], self.samples[place] > 0
        if number < self.first:
            name, sums, sensitivity = "class-counts", self._one_hot(member).sum(dim=1), 1.0
        else:
            name, sums, sensitivity = "gradient", self._gradient(member), self.noise.clip
        noised = self.noise.add(sums, sensitivity, trained, name, place, number)
        return Message({name: noised}, self.samples[place], plain=frozenset({name}))

    def _gradient(self, member: Member) -> Tensor:
        """(F, K, d) sums of clipped gradients."""
        weights = self._one_hot(member) @ self.class_weights[:, :, None]
        residuals = weights * (self._targets(member) - self._scores(member))
        clipped = self.noise.clipped(residuals)
        flat = clipped.permute(0, 2, 1).flatten(0, 1)
        return -(flat @ member.rows).reshape(self.weights.shape)

    def _scores(self, member: Member) -> Tensor:
        """(F, n, K) scores of all subjects."""
        folds, models, features = self.weights.shape
        scores = member.rows @ self.weights.reshape(-1, features).T
        return scores.reshape(-1, folds, models).permute(1, 0, 2)

    def _one_hot(self, member: Member) -> Tensor:
        """(F, n, C) 1 in the class of a training subject."""
        codes = torch.arange(self.class_weights.shape[1], device=member.labels.device)
        return (member.labels[:, :, None] == codes).to(member.rows)

    def _targets(self, member: Member) -> Tensor:
        """(F, n, K) targets of norm 1, so that C = 1 clips no gradient of the first step; 0 for others."""
        known = (member.labels >= 0)[:, :, None]
        signs = 2 * self._one_hot(member) - known.to(member.rows)
        return signs[:, :, 1:] if self.weights.shape[1] == 1 else signs / signs.shape[2] ** 0.5

    def _losses(self, member: Member, scores: Tensor) -> Float64:
        """(F,) mean squared error of the training subjects; NaN without any."""
        known = (member.labels >= 0).to(scores)
        squared = torch.square(self._targets(member) - scores).sum(dim=2) * known
        return np.asarray((squared.sum(dim=1).double() / known.sum(dim=1).double()).cpu().numpy())


# Training of all private methods: ridge by sums over institutions, networks by private steps.

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
