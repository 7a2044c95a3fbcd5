"""One module in every institution and fold at once: institutions are slices of stacked tensors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import (
    Batches,
    Curves,
    NetworkClients,
    Server,
    Training,
    averaging,
    axes_of,
    content_of,
    local_steps,
    parameters_by_wire_name,
    record_pooling,
    train_by_round,
)
from brainfed.engines.stacked._first_layer import Propagate
from brainfed.engines.stacked._network import Dropout, StackedNetwork, kept_stack
from brainfed.engines.stacked._stack import Member, Reading, members, record_moments, stack_inputs
from brainfed.federation import (
    Adam,
    Arrays,
    Content,
    DrawnAhead,
    FederationSettings,
    Ledger,
    Message,
    WeightNoise,
    defence_of,
    record_downloads,
    record_uploads,
)
from brainfed.models import Classifier
from brainfed.runtime import Float64, IntArray, Precision, below
from brainfed.runtime.jobs import Checkpoint
from brainfed.samples import HIDDEN, FittedModel, MethodInputs, Outcome

STACK_BYTES = 3 << 30
"""Bytes for the weights, gradients, Adam's two moments and own features of the folds that train in parallel."""


def stacks_of_folds(
    module: Classifier, inputs: MethodInputs, dtype: torch.dtype, *, pooled: bool
) -> list[tuple[int, ...]]:
    """Evenly sized groups of folds; the weights, gradients, moments and own features of a group fit into `STACK_BYTES`.

    In addition the server keeps one model, and FedProx another one. Sites that are apart leave their own features out:
    their numbers of subjects differ, and their groups must not. Each trains one of the institutions that are counted.
    """
    trainers = 1 if pooled else len(inputs.institutions)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    by_fold = {"own": len(inputs.features) > 1, "propagated": len(inputs.features) > 1 or len(inputs.graphs) > 1}
    designs = sum(by_fold[read] for read in set(module.reads.values()))
    own = 0 if inputs.link.remote else 2 * designs * inputs.features[0].size
    numbers = (4 * trainers + 2) * parameters + own
    fit = max(1, STACK_BYTES // (numbers * dtype.itemsize))
    stacks = np.array_split(np.arange(inputs.folds), -(-inputs.folds // fit))
    return [tuple(folds.tolist()) for folds in stacks]


MODEL, OPTIMISER = "model/", "optimiser/"


class StackedClients(NetworkClients):
    """All institutions of some folds.

    Args:
        network: weights of all institutions, equal at the start.
        shares: names on the wire of the tensors that leave an institution. If empty, every institution trains alone
            and its optimiser is never reset.
        largest: number of subjects of the largest institution that is not here.
    """

    def __init__(
        self,
        network: StackedNetwork,
        inputs: MethodInputs,
        settings: FederationSettings,
        shares: Collection[str],
        largest: int = 0,
    ) -> None:
        stack = network.stack
        self.inputs, self.global_model = inputs, bool(shares)
        self.parameters = sum(parameter.numel() for parameter in network.plain.parameters())
        self.network, self.settings, self.shares = network, settings, frozenset(shares)
        self.labels, self.subjects = stack.labels, stack.subjects
        self.batches = Batches(settings.batch, (*stack.subjects, largest), stack.folds, network.streams)
        self.samples = (self.labels >= 0).sum(dim=2).cpu()
        self.keeps = settings.optimiser_state == "keep" or not shares
        self.optimiser = Adam(network.parameters(), settings.learning_rate, settings.weight_decay)
        self._alike = True
        self.curves = Curves.of(settings.rounds, self.labels, network.classes)

    def start(self) -> dict[str, Tensor]:
        """(F, ...) views of the shared tensors of the initial model."""
        return {name: stack[0] for name, stack in self._shared().items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Run the local epochs of the chosen institutions in parallel."""
        if not self.keeps:
            self.optimiser.reset()
        trains = torch.zeros(len(self.subjects), dtype=torch.bool)
        trains[list(chosen)] = True
        self.curves.losses[number] = self._train(number, trains)
        self._alike = False
        views = self._shared()
        return {
            place: Message({name: stack[place] for name, stack in views.items()}, self.samples[place])
            for place in chosen
        }

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load one copy of a model that all institutions share, else one model an institution."""
        if not messages:
            return
        views = self.network.stacks()
        sent = {id(message.tensors): message.tensors for message in messages.values()}
        if len(sent) == 1 and len(messages) == len(self.subjects):
            (tensors,) = sent.values()
            self._alike = tensors.keys() == views.keys()
            self.network.load(views | dict(tensors))
            return
        values = {name: stack.clone() for name, stack in views.items()}
        for place, message in messages.items():
            for name, tensor in message.tensors.items():
                values[name][place] = tensor
        self.network.load(values)

    def score(self, number: int) -> str:
        """Record every institution's probabilities."""
        self.curves.probabilities[number] = self.network.probabilities().cpu().numpy()
        return self.curves.words(number)

    def state(self, number: int) -> Arrays:
        """The curves, the models (once if all are equal), and Adam's moments where later rounds need them."""
        arrays: Arrays = dict(self.curves.until(number))
        if self.keeps and number + 1 < self.settings.rounds:
            arrays |= {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()}
        slots = slice(0, 1) if self._alike else slice(None)
        return arrays | {f"{MODEL}{name}": stack[slots].cpu().numpy() for name, stack in self.network.stacks().items()}

    @torch.no_grad()
    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.curves.restore(number, arrays)
        if moments := below(OPTIMISER, arrays):
            self.optimiser.load(moments)
        weights = {name: torch.from_numpy(arrays[f"{MODEL}{name}"]) for name in self.network.stacks()}
        self._alike = all(len(stack) == 1 for stack in weights.values())
        self.network.load(weights)

    def content(self, place: int) -> Content:
        """The model; where there is no global one, with the scaling that belongs to it."""
        weights = content_of(self.network.stacks(), 2)
        member = self.network.stack.members[place]
        moments = {} if self.global_model else {"feature-mean": member.mean, "feature-sd": member.sd}
        return {name: (each.shape[1:], each.itemsize) for name, each in moments.items() if each is not None} | weights

    def member_probabilities(self) -> Float64:
        """(T, M, F, n, C) after every round: all nodes are scored at once."""
        return self.curves.probabilities

    @torch.no_grad()
    def foreign_probabilities(self, teacher: int, place: int, position: int, tested: IntArray) -> Float64:
        """(b, C) of nodes in their own graph, under the scaling of the teacher."""
        network, fold = self.network, slice(position, position + 1)
        stack, scaling = network.stack, network.stack.members[teacher]
        mean = None if scaling.mean is None else scaling.mean[fold]
        sd = None if scaling.sd is None else scaling.sd[fold]
        member = Member(stack.members[place].nodes, mean, sd)
        model = network.on(stack_inputs(self.inputs, (member,), stack.folds[fold], stack.reading))
        model.load({name: view[teacher, fold] for name, view in network.stacks().items()})
        return np.asarray(model.probabilities()[0, 0].cpu().numpy(), dtype=np.float64)[tested]

    def kept_models(self) -> list[FittedModel]:
        """The model of every fold."""
        return kept_stack(self.network, alone=not self.global_model)

    def _shared(self) -> dict[str, Tensor]:
        return {name: stack for name, stack in self.network.stacks().items() if name in self.shares}

    def _train(self, number: int, chosen: Tensor) -> Float64:
        settings, labels = self.settings, self.labels
        starts: list[Tensor] = []
        if settings.proximal:
            # One copy for all institutions if their models are equal.
            slots = slice(0, 1) if self._alike else slice(None)
            starts = [parameter.detach()[slots].clone() for parameter in self.network.parameters()]
        total, steps = torch.zeros(2, *labels.shape[:2], dtype=torch.float64, device=labels.device)
        for epoch in range(settings.local_epochs):
            for step, batch in enumerate(self.batches.of(labels, number, epoch)):
                self.network.step = (number, epoch, step)
                losses = self.network.training_step(batch, chosen).double()
                if starts:
                    self._add_proximal_gradient(starts, chosen)
                self.optimiser.step()
                total += losses.nan_to_num(0.0)
                steps += losses.isfinite()
        return np.asarray((total / steps).cpu().numpy())

    @torch.no_grad()
    def _add_proximal_gradient(self, starts: Sequence[Tensor], chosen: Tensor) -> None:
        """Add the gradient of FedProx's mu / 2 |w - w_t|^2; the recorded loss is without this term."""
        for parameter, start in zip(self.network.parameters(), starts, strict=True):
            assert parameter.grad is not None
            for place in torch.nonzero(chosen)[:, 0].tolist():
                moved = parameter[place] - start[place if len(start) > 1 else 0]
                parameter.grad[place].add_(moved, alpha=self.settings.proximal)


@dataclass(frozen=True, kw_only=True)
class StackedTraining(Training[MethodInputs, FederationSettings]):
    """A classifier of `models` on rows of features, with or without a graph.

    Attributes:
        propagate: makes the module's propagation matrix; None without a graph.
        standardise: whether every column is scaled with the training subjects of the fold and institution.
        precision: number format of the products with the features.
        dropout: share of the hidden activations that a step drops.
    """

    module: Classifier
    propagate: Propagate | None = None
    standardise: bool = True
    precision: Precision = "float32"
    dropout: float = 0.0

    @property
    def reading(self) -> Reading:
        """How the module reads the nodes on this machine."""
        reads = frozenset(self.module.reads.values())
        return Reading(reads, self.propagate, torch.device(self.run.device), getattr(torch, self.run.precision))

    @property
    def sizes(self) -> dict[int, int]:
        """Trainer -> number of its subjects; generated nodes are none."""
        return {place: self.inputs.subjects_among(own) for place, own in enumerate(self.members)}

    @property
    def stacks(self) -> list[tuple[int, ...]]:
        """As many folds at once as fit into memory."""
        return stacks_of_folds(self.module, self.inputs, self.reading.dtype, pooled=self.pooled)

    @property
    def reports(self) -> bool:
        """Whether the weights n_m / n or the number of steps depend on the numbers of subjects."""
        return self.federated and (self.schedule.weighting == "subjects" or self.schedule.batch > 0)

    @property
    def counts(self) -> dict[str, int]:
        """Multiplications and additions on the features, forward and weight gradient, over all steps and folds.

        They are nearly all of a training. Institutions of which a round draws some are assumed to have equal sizes.
        """
        inputs, sizes = self.inputs, list(self.sizes.values())
        steps = local_steps(sizes, self.schedule, inputs.streams, drawn=self.federated)
        columns = sum(self.module.get_parameter(name).shape[1] for name in self.module.reads)
        size = inputs.features[0].size
        return {"first_layer_operations": round(steps / len(sizes) * 2 * 2 * size * columns * inputs.folds)}

    @property
    def usual_server(self) -> Server:
        """The mean of the institutions that the schedule draws, with its weights, or the defence in its place."""
        return averaging(self.schedule, self.inputs.streams, defence_of(self.robustness))

    def ledger(self) -> Ledger:
        """Pooled data cross before the first round; so do moments for institutions without training subjects."""
        inputs, ledger = self.inputs, Ledger(self.shared_tensors, axes_of(self.module))
        if self.pooled:
            record_pooling(inputs, ledger)
        elif self.federated and self.standardise and inputs.unseen.any():
            record_moments(inputs, 0, ledger, {place: size for place, size in self.sizes.items() if size})
        return ledger

    def clients(self, folds: tuple[int, ...], ledger: Ledger) -> StackedClients:
        """The institutions; the number of local steps depends on the largest one, which may be elsewhere."""
        network, link = self.network(folds, ledger), self.inputs.link
        largest = max(network.stack.subjects)
        largest = link.largest(largest) if self.federated and self.schedule.batch else largest
        shares = parameters_by_wire_name(self.module) if self.federated else ()
        return StackedClients(network, self.inputs, self.schedule, shares, largest)

    def network(self, folds: Sequence[int], ledger: Ledger) -> StackedNetwork:
        """The untrained stack of these folds; the ledger checks moments that cross."""
        inputs, book = self.inputs, ledger if self.federated else None
        trained = members(inputs, self.members, folds, book, standardise=self.standardise)
        stack = stack_inputs(inputs, trained, folds, self.reading)
        dropout = Dropout(self.dropout, stack.folds, inputs.streams, self.schedule.local_epochs)
        return StackedNetwork(self.module, stack, inputs.streams, self.precision, dropout if self.dropout else None)

    def noise(self, folds: tuple[int, ...]) -> WeightNoise:
        """The noise of the schedule, drawn ahead of the rounds."""
        ahead = DrawnAhead.on(self.run.device, self.schedule.rounds, self.schedule.fraction)
        return WeightNoise(self.schedule.noise, self.inputs.streams, folds, ahead=ahead)

    def checkpoint(self, folds: tuple[int, ...]) -> Checkpoint:
        """One state for each stack of folds."""
        return self.run.checkpoint.part(f"folds-{folds[0]}-{folds[-1]}")


# Choice of the weight decay and of the number of rounds on training subjects, for any stacked training.
#
# The networks of fold f are trained without the subjects of fold f + 1 as well (the last fold is followed by the
# first), once a candidate. Folds keep duplicates together. Each institution sends the mean log loss of its held-out
# subjects after every round, one number a candidate and round. The smallest mean over institutions chooses for all;
# where no model is shared, every institution chooses for itself. The test fold takes no part. Features that are
# fitted in each fold have seen its held-out subjects, with recursive feature elimination also their labels.

Row = Mapping[str, int | str]


def train_chosen(training: StackedTraining, decays: Sequence[float]) -> Outcome:
    """Train with the weight decay and the number of rounds that held-out training subjects choose in each fold.

    Args:
        training: of the method, three folds or more; its own weight decay is not used.
        decays: candidates, ascending.

    Returns:
        See `train_networks`; the scores are those after the chosen round, the curves those of the chosen weight decay.
    """
    inputs = training.inputs
    inner = replace(training, inputs=inner_inputs(inputs))
    tried = [_with_decay(inner, decay, f"inner-{index}")[0] for index, decay in enumerate(decays)]
    losses = np.stack([held_out_losses(inputs, outcome) for outcome in tried])
    chosen = chosen_candidates(losses, alone=training.topology == "local")
    trained = {
        index: _with_decay(training, decays[index], f"chosen-{index}") for index in np.unique(chosen[0]).tolist()
    }
    outcomes = [outcome for outcome, _ in trained.values()]
    crossings = _added([*(each.crossings for each in tried), outcomes[0].crossings])
    joined = _joined(inputs, trained, chosen, (*crossings, *_validation_rows(training, losses)))
    spent = sum(outcome.counts["first_layer_operations"] for outcome in (*tried, *outcomes))
    return replace(joined, counts={**joined.counts, "first_layer_operations": spent})


def inner_inputs(inputs: MethodInputs) -> MethodInputs:
    """The same inputs, in which fold f tests the subjects of fold f + 1; the labels of both are hidden."""
    following = (np.arange(inputs.folds)[:, None] + 1) % inputs.folds
    return replace(
        inputs,
        fold=np.where(inputs.fold < 0, inputs.fold, (inputs.fold - 1) % inputs.folds),
        labels=np.where(inputs.fold == following, HIDDEN, inputs.labels),
    )


def held_out_losses(inputs: MethodInputs, outcome: Outcome) -> Float64:
    """(T, M, F) mean log loss of each institution's held-out subjects after every round; NaN without such subjects."""
    assert outcome.round_scores is not None
    rounds = len(outcome.round_scores)
    losses = np.full((rounds, len(inputs.institutions), inputs.folds), np.nan)
    for fold in range(inputs.folds):
        held_out = inputs.tested((fold + 1) % inputs.folds)
        for code in range(len(inputs.institutions)):
            own = np.flatnonzero(held_out & (inputs.institution == code))
            scores = outcome.round_scores[:, fold, own, inputs.labels[fold, own]]
            if len(own):
                losses[:, code, fold] = -np.log(np.clip(scores, 1e-12, None)).mean(axis=1)
    return losses


def chosen_candidates(losses: Float64, *, alone: bool) -> IntArray:
    """(2, M, F) candidate and round of the smallest loss: of each institution, or of the mean over institutions.

    An institution that chooses for itself and has no finite loss takes the first candidate and the last round. Of equal
    losses the earliest candidate and round.

    Args:
        losses: (K, T, M, F).
        alone: whether every institution chooses for itself.
    """
    candidates, rounds, institutions, folds = losses.shape
    chosen = np.zeros((2, institutions, folds), dtype=np.int64)
    for fold in range(folds):
        for code in range(institutions):
            own = losses[:, :, code, fold]
            if alone and not np.isfinite(own).any():
                chosen[:, code, fold] = 0, rounds - 1
                continue
            if not alone:
                known = np.isfinite(losses[:, :, :, fold]).any(axis=(0, 1))
                own = losses[:, :, known, fold].mean(axis=2) if known.any() else np.zeros((candidates, rounds))
            best = int(np.where(np.isfinite(own), own, np.inf).argmin())
            chosen[:, code, fold] = divmod(best, rounds)
    return chosen


def _with_decay(training: StackedTraining, decay: float, part: str) -> tuple[Outcome, Float64]:
    run = replace(training.run, checkpoint=training.run.checkpoint.part(part))
    return train_by_round(replace(training, schedule=replace(training.schedule, weight_decay=decay), run=run))


def _joined(
    inputs: MethodInputs,
    trained: Mapping[int, tuple[Outcome, Float64]],
    chosen: IntArray,
    crossings: tuple[dict[str, int | str], ...],
) -> Outcome:
    """The scores, curves and losses of each institution's choice in each fold."""
    first, _ = next(iter(trained.values()))
    assert first.round_scores is not None and first.training_loss is not None
    scores, curves, losses = np.full_like(first.scores, np.nan), first.round_scores.copy(), first.training_loss.copy()
    member_scores = scores.copy()
    for fold in range(inputs.folds):
        for code in range(len(inputs.institutions)):
            own, taught = (mask & (inputs.institution == code) for mask in (inputs.tested(fold), inputs.training(fold)))
            candidate, number = chosen[:, code, fold].tolist()
            outcome, members = trained[candidate]
            assert outcome.round_scores is not None and outcome.training_loss is not None
            curves[:, fold, own] = outcome.round_scores[:, fold, own]
            losses[:, code, fold] = outcome.training_loss[:, code, fold]
            # Without a global model an unseen institution has scores after the last round alone.
            known = bool(np.isfinite(curves[number, fold, own]).all())
            scores[fold, own] = curves[number if known else -1, fold, own]
            member_scores[fold, taught] = members[number, fold, taught]
    return replace(
        first,
        scores=scores,
        round_scores=curves,
        training_loss=losses,
        crossings=crossings,
        member_scores=member_scores,
        models=(),
    )


def _added(every: Sequence[Sequence[Row]]) -> tuple[dict[str, int | str], ...]:
    """Add up the ledger rows of several trainings; what subjects sent once is not sent again."""
    added: dict[tuple[str, str], dict[str, int | str]] = {}
    for rows in every:
        for row in rows:
            key = str(row["name"]), str(row["direction"])
            if key not in added:
                added[key] = dict(row)
            elif "subjects" not in str(row["axes"]).split(" x "):
                for count in ("tensors", "rounds", "bytes"):
                    added[key][count] = int(added[key][count]) + int(row[count])
    return tuple(added[key] for key in sorted(added))


def _validation_rows(training: StackedTraining, losses: Float64) -> tuple[dict[str, int | str], ...]:
    """Every institution with held-out subjects sends its losses in the first fold, and receives the choice."""
    if training.topology != "federated":
        return ()
    candidates, rounds = losses.shape[:2]
    ledger = Ledger(training.shared_tensors, {"candidates": candidates, "rounds": rounds, "chosen": 2})
    inputs = training.inputs
    sizes = {code: len(inputs.members(code)) for code in range(len(inputs.institutions))}
    senders = {code: size for code, size in sizes.items() if np.isfinite(losses[0, 0, code, 0])}
    record_uploads(ledger, senders, {"validation-loss": ((candidates, rounds), 8)})
    record_downloads(ledger, sizes, {"choice": ((2,), 8)})
    return ledger.rows()
