"""Federated logistic regression as sums over institutions: clients, server's side, and the method's train function."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from brainfed.engines import run_until_finished, train_networks
from brainfed.engines.stacked import StackedTraining
from brainfed.federation import Arrays, Ledger, Message, WeightNoise, Wire, add_up, record_downloads, record_uploads
from brainfed.federation.strategies import Objective, PenaltyPath, QuasiNewton
from brainfed.methods.logistic_federated.declaration import LOGISTIC_FEDERATED, FederatedLogisticSettings
from brainfed.methods.logistic_federated.rows import (
    MARGIN_SUMS,
    Design,
    designs,
    haufe_patterns,
    kept_logistic,
    margin_sums,
)
from brainfed.models import LogisticRegression
from brainfed.runtime import BoolArray, Float64, IntArray
from brainfed.runtime.jobs import Run
from brainfed.samples import (
    FittedModel,
    MethodInputs,
    Outcome,
    duplicate_groups,
    inner_folds,
    of_two_classes,
    require_training_subjects,
)

# Institutions that send the loss and the gradient of logistic regressions at the server's point.


@dataclass(frozen=True)
class Member:
    """The training subjects of one institution.

    Attributes:
        rows: (n, d) standardised, of mean squared norm 1 over all institutions.
        targets: (n, P) 1 for the class of each model, else 0.
        kept: (n, P) 1 for the subjects that fit each model, else 0.
        held_out: (n, P) 1 for the subjects that judge each model, else 0; None: nothing judges.
    """

    rows: Tensor
    targets: Tensor
    kept: Tensor
    held_out: Tensor | None = None


class LogisticClients:
    """M institutions with P models, class against the rest.

    Args:
        institutions: places of those with training subjects, which alone take part. A real site that is left out
            is asked like all others, and replies with zeros.
    """

    def __init__(self, members: Sequence[Member], institutions: tuple[int, ...], prefix: str = "") -> None:
        self.members, self.institutions, self.prefix = members, institutions, prefix
        first = members[0]
        models, features = first.targets.shape[1], first.rows.shape[1]
        self.weight = first.rows.new_zeros(models, features)
        self.bias = first.rows.new_zeros(models)

    def fit(self, _number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Sums of the loss, float64, and of its gradient over the subjects of each institution."""
        return {place: self._reply(self.members[place]) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load the server's point, which is the same for all."""
        for message in list(messages.values())[:1]:
            self.weight = message.tensors[f"{self.prefix}weight"][0]
            self.bias = message.tensors[f"{self.prefix}bias"][0]

    def score(self, _number: int) -> str:
        """Nothing to measure."""
        return "gradient"

    def state(self, _number: int) -> Arrays:
        """Nothing: the server has the models."""
        return {}

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""

    def _reply(self, member: Member) -> Message:
        margins = member.rows @ self.weight.T + self.bias
        residual = (torch.sigmoid(margins) - member.targets) * member.kept
        losses = softplus((1 - 2 * member.targets) * margins).double()
        tensors = {
            "weight-gradient": residual.T @ member.rows,
            "bias-gradient": residual.sum(dim=0),
            "loss": (losses * member.kept).sum(dim=0),
        }
        if member.held_out is not None:
            tensors["validation-loss"] = (losses * member.held_out).sum(dim=0)
        named = {f"{self.prefix}{name}": tensor[None] for name, tensor in tensors.items()}
        takes_part = torch.tensor([int(len(member.rows) > 0)])
        return Message(named, takes_part, plain=frozenset(named))


# Federated logistic regression as sums over institutions: the pooled model, with a penalty that inner folds choose.
#
# Every institution divides its training subjects into inner folds, duplicates together. With each gradient of a model
# that lacks one inner fold it sends one number, the sum of the log losses of its held-out subjects. The penalty of the
# smallest sum fits the final model.

INNER, INNER_TOLERANCE = "inner-", 1e-2
"""Prefix of the inner models on the wire; they only rank penalties, so a rough minimum is enough."""
CURVATURE = 0.5
"""Bound of the curvature of the mean log loss for rows of mean squared norm 1 and an intercept: (1 + 1) / 4."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fitting:
    """One fold of one repeat.

    Attributes:
        classes: those with a model against the rest.
        designs: of the institutions.
    """

    inputs: MethodInputs
    settings: FederatedLogisticSettings
    run: Run
    ledger: Ledger
    fold: int
    classes: tuple[int, ...]
    designs: tuple[Design, ...]

    @property
    def sizes(self) -> dict[int, int]:
        """Institution -> number of its subjects."""
        return {code: len(design.nodes) for code, design in enumerate(self.designs) if len(design.nodes)}

    @property
    def taking(self) -> tuple[int, ...]:
        """Institutions with training subjects."""
        return tuple(code for code, design in enumerate(self.designs) if design.training.any())

    def add_up(self, parts: Mapping[str, NDArray[Any]]) -> Arrays:
        """Sums over all institutions."""
        return add_up(self.inputs.link, self.ledger, len(self.inputs.subjects), parts)

    def objective(self, members: Sequence[Member], tolerance: float, prefix: str) -> Objective:
        """The objective of the models that the members fit, for which institutions send their numbers of subjects."""
        own = {code: self.sizes[code] for code in self.taking}
        name = f"{prefix}count"
        record_uploads(self.ledger, own, {name: ((members[0].kept.shape[1],), 8)})
        here = torch.stack([member.kept.double().sum(dim=0) for member in members]).sum(dim=0)
        total = self.add_up({name: here.cpu().numpy()})[name]
        counts = torch.from_numpy(np.array(total)).to(here)
        rows, rounds = members[0].rows, self.settings.max_rounds
        return Objective(counts, rows.shape[1], CURVATURE, tolerance, rounds, rows.dtype, prefix)

    def run_rounds(self, clients: LogisticClients, strategy: QuasiNewton | PenaltyPath) -> Arrays:
        """Run rounds until the server has finished; return what it publishes."""
        wire = Wire(self.ledger, self.sizes, WeightNoise(0.0, self.inputs.streams, (self.fold,)))
        checkpoint, link = self.run.checkpoint.part(f"{clients.prefix}fold-{self.fold}"), self.inputs.link
        models = "models that rank the penalties" if clients.prefix else "the final model"
        most = self.settings.max_rounds

        def progress(done: int, total: int, _: str) -> None:
            where = f"fold {self.fold + 1} of {self.inputs.folds}, {models}"
            self.run.progress(done, total, f"{where}, round", at_most=True)

        server = run_until_finished(clients, strategy, wire, most, link, checkpoint, progress)
        if not server.finished():
            logger.warning("fold %d: not converged after %d rounds; raise `max_rounds`", self.fold + 1, most)
        return server.published()


def train_sums(inputs: MethodInputs, settings: FederatedLogisticSettings, run: Run) -> Outcome:
    """Fit and score every fold.

    Raises:
        UserError: a fold has no training subject.
    """
    features = int(inputs.fold_features(0).shape[1])
    classes = (1,) if inputs.classes == 2 else tuple(range(inputs.classes))
    ledger = Ledger(LOGISTIC_FEDERATED.crossing.tensors, {"features": features, "models": len(classes)})
    scores, rounds = np.full((*inputs.labels.shape, inputs.classes), np.nan), 0
    member_scores, models = scores.copy(), list[FittedModel]()
    patterns = np.zeros((inputs.folds, len(classes), features), dtype=np.float32)
    for fold in range(inputs.folds):
        require_training_subjects(inputs, fold)
        book = ledger if fold == 0 else ledger.blank()
        made = designs(inputs, fold, settings.standardise, run, book)
        fitting = Fitting(inputs, settings, run, book, fold, classes, made)
        costs, choosing = _choose(fitting)
        clients, taken = _fit(fitting, costs)
        rounds = max(rounds, choosing + taken)
        for design in made:
            tested = inputs.tested(fold)[design.nodes]
            scores[fold, design.nodes[tested]] = _probabilities(clients, design.rows[torch.from_numpy(tested)])
            own = design.rows[torch.from_numpy(design.training)]
            member_scores[fold, design.nodes[design.training]] = _probabilities(clients, own)
        patterns[fold] = _patterns(fitting, clients)
        models += [kept_logistic(made, clients.weight, clients.bias)] if run.keeps_models else []
        run.progress(fold + 1, inputs.folds, "fold")
    counts = {"parameters": (features + 1) * len(classes), "rounds": rounds}
    return Outcome(
        scores,
        "probability",
        counts=counts,
        crossings=ledger.rows(),
        patterns=patterns,
        member_scores=member_scores,
        models=tuple(models),
    )


def _choose(fitting: Fitting) -> tuple[list[float], int]:
    """The cost of each class, and the number of rounds; the first cost with too few subjects for inner folds."""
    costs, classes = fitting.settings.costs, fitting.classes
    parts = [_inner_folds(fitting, code) for code in range(len(fitting.designs))]
    count = fitting.inputs.link.largest(max(int(part.max(initial=0)) for part in parts)) + 1
    if len(costs) == 1 or count == 1:
        return [costs[0]] * len(classes), 0
    groups, held_out = (grid.ravel() for grid in np.meshgrid(range(len(classes)), range(count), indexing="ij"))
    fitting.ledger.axes = {**fitting.ledger.axes, "inner-models": len(groups)}
    target = np.array(classes)[groups]
    members = [_member(fitting, code, target, part[:, None] == held_out) for code, part in enumerate(parts)]
    objective = fitting.objective(members, INNER_TOLERANCE, INNER)
    path = PenaltyPath(fitting.taking, objective, costs, torch.from_numpy(groups).to(members[0].rows.device))
    published = fitting.run_rounds(LogisticClients(members, fitting.taking, INNER), path)
    return published["chosen"].tolist(), int(published["rounds"])


def _inner_folds(fitting: Fitting, code: int) -> IntArray:
    """(n,) inner fold of each training subject of an institution; -1 for the others."""
    design, inputs = fitting.designs[code], fitting.inputs
    part = np.full(len(design.nodes), -1)
    if design.training.any():
        own = design.nodes[design.training]
        duplicates = duplicate_groups(inputs.fold_features(fitting.fold)[own])
        labels = np.unique(inputs.labels[fitting.fold, own], return_inverse=True)[1]
        seed = inputs.streams.key("inner folds", inputs.institutions[code], fitting.fold)
        part[design.training] = inner_folds(labels, duplicates, seed)
    return part


def _fit(fitting: Fitting, costs: Sequence[float]) -> tuple[LogisticClients, int]:
    """The models of all training subjects, at the institutions; and the number of rounds."""
    ledger, target = fitting.ledger, np.array(fitting.classes)
    members = [_member(fitting, code, target) for code in range(len(fitting.designs))]
    objective = fitting.objective(members, fitting.settings.tolerance, "")
    penalties = 1 / (torch.tensor(costs).to(objective.counts) * objective.counts.clamp(min=1))
    clients = LogisticClients(members, fitting.taking)
    rounds = int(fitting.run_rounds(clients, QuasiNewton(fitting.taking, objective, penalties))["rounds"])
    unseen = {code: size for code, size in fitting.sizes.items() if code not in fitting.taking}
    itemsize, shape = clients.weight.element_size(), tuple(clients.weight.shape)
    record_downloads(ledger, unseen, {"weight": (shape, itemsize), "bias": (shape[:1], itemsize)})
    return clients, rounds


def _member(fitting: Fitting, code: int, target: IntArray, judges: BoolArray | None = None) -> Member:
    """The training subjects of an institution; `judges` (n, P) marks those that judge a model and do not fit it."""
    design = fitting.designs[code]
    rows = design.rows[torch.from_numpy(design.training)]
    labels = fitting.inputs.labels[fitting.fold, design.nodes][design.training]
    targets = torch.from_numpy(labels[:, None] == target).to(rows)
    if judges is None:
        return Member(rows, targets, torch.ones_like(targets))
    held_out = torch.from_numpy(judges[design.training]).to(rows)
    return Member(rows, targets, 1 - held_out, held_out)


@torch.no_grad()
def _patterns(fitting: Fitting, clients: LogisticClients) -> Float64:
    """(P, d) patterns of the models, from one message of every institution with training subjects."""
    parts = [margin_sums(design, clients.weight) for design in fitting.designs]
    labels = fitting.inputs.labels[fitting.fold, fitting.inputs.training(fitting.fold)]
    here = {
        name: torch.stack(sums).sum(dim=0).cpu().numpy()
        for name, sums in zip(MARGIN_SUMS, zip(*parts, strict=True), strict=True)
    }
    here |= {"class-counts": np.array([(labels == code).sum() for code in fitting.classes], dtype=np.float64)}
    here |= {"training-subjects": np.array(len(labels), dtype=np.float64)}
    content = {name: (part.shape, 8) for name, part in here.items() if name != "training-subjects"}
    record_uploads(fitting.ledger, {code: fitting.sizes[code] for code in fitting.taking}, content)
    return haufe_patterns(fitting.add_up(here))


@torch.no_grad()
def _probabilities(clients: LogisticClients, rows: Tensor) -> Float64:
    """(n, C) probabilities of rows (n, d); of more than two classes each against the rest, divided by their sum."""
    shares = torch.sigmoid((rows @ clients.weight.T + clients.bias).double()).cpu().numpy()
    if shares.shape[1] == 1:
        return of_two_classes(shares[:, 0], "probability")
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def train(inputs: MethodInputs, settings: FederatedLogisticSettings, run: Run) -> Outcome:
    """Train logistic regression on one repeat, by sums of gradients or by federated averaging."""
    if settings.solver == "lbfgs":
        return train_sums(inputs, settings, run)
    return train_networks(
        StackedTraining(
            inputs,
            settings,
            run,
            "federated",
            LOGISTIC_FEDERATED.crossing.tensors,
            module=LogisticRegression(inputs.features[0].shape[1], inputs.classes),
            standardise=settings.standardise == "institution",
            precision=settings.precision,
        )
    )
