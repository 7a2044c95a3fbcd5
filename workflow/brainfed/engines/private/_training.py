"""A network of single subjects in every institution, in private steps or the same steps without privacy.

A step draws subjects at random (`Poisson`), sums their clipped gradients and adds noise (`_cohort`). An institution
counts its steps; what it has spent follows from that number (`federation._accounting`). All draws are keyed by
institution, fold, round, epoch and step: a training that resumes repeats the noise of the round that was cut off.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import Curves, NetworkClients, Training, content_of, parameters_by_wire_name, require_finite
from brainfed.engines.private._cohort import (
    Moment,
    Poisson,
    PrivateCohort,
    add_noise,
    apply,
    clipped_sum,
    make_optimiser,
    optimiser_arrays,
    plain_sum,
    restore_optimiser,
)
from brainfed.federation import Arrays, Content, Ledger, Message, PrivateSchedule, Spending, planned_steps, spending_row
from brainfed.models import class_probabilities
from brainfed.runtime import Float64, IntArray, Streams, below
from brainfed.samples import LabelledSubjects


@torch.no_grad()
def probabilities(module: torch.nn.Module, cohort: PrivateCohort, part: tuple[int, int], samples: Tensor) -> Float64:
    """(b, C) class probabilities of subjects at positions `samples`; `part`: institution and place of the fold."""
    module.eval()
    like = next(module.parameters())
    blocks = [np.zeros((0, cohort.classes))]
    for block in cohort.blocks(samples):
        rows = cohort.rows(*part, block, None, like)
        blocks.append(rows.of_subjects(class_probabilities(module(*rows.arguments))).cpu().numpy())
    return np.concatenate(blocks)


MODEL, OPTIMISER, STEPS = "model/", "optimiser/", "steps"


class PrivateClients(NetworkClients):
    """M institutions, each with one network a fold.

    Args:
        modules: (M)(F) networks on the device that trains; logits of a row depend on that row alone. They are trained
            in place.
        schedule: rounds, steps and privacy.
        shares: names on the wire of the parameters that leave an institution. If empty, every institution trains alone
            and its optimiser is never reset.
        names: (M,) of the institutions, for messages and `spendings`; empty: their places.

    Attributes:
        steps_taken: (M, F) local steps of each institution.
        multipliers: (M, F) noise multipliers; 0 without privacy, and without training subjects.

    Raises:
        ValueError: `shares` has a name that the networks have not, or a network normalises batches.
        UserError: delta is too large for an institution, or no noise keeps epsilon.
    """

    def __init__(
        self,
        modules: Sequence[Sequence[torch.nn.Module]],
        cohort: PrivateCohort,
        schedule: PrivateSchedule,
        streams: Streams,
        shares: Collection[str] = (),
        names: Sequence[str] = (),
    ) -> None:
        self.modules, self.cohort, self.schedule, self.streams = modules, cohort, schedule, streams
        self.shares, self.global_model = frozenset(shares), bool(shares)
        self.parameters = sum(parameter.numel() for parameter in modules[0][0].parameters())
        self.names = tuple(names) or tuple(map(str, range(len(modules))))
        _check(modules[0][0], self.shares)
        self.poisson = Poisson(schedule.batch, streams)
        self.samples = (cohort.labels >= 0).sum(dim=2)
        self.multipliers = self._multipliers()
        self.steps_taken = np.zeros(tuple(self.samples.shape), dtype=np.int64)
        self.keeps = schedule.optimiser_state == "keep" or not self.shares
        self.optimisers = [[make_optimiser(module, schedule) for module in own] for own in modules]
        self.curves = Curves.of(schedule.rounds, cohort.labels, cohort.classes)
        self.curves.probabilities[:] = np.nan

    def start(self) -> dict[str, Tensor]:
        """(F, ...) shared tensors of the first institution before the first round."""
        return self._shared(0)

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Run the local epochs of the chosen institutions in sequence.

        Raises:
            UserError: a loss is not finite.
        """
        self.curves.losses[number] = np.nan
        for place in chosen:
            for position in range(len(self.cohort.folds)):
                self.curves.losses[number, place, position] = self._train(number, place, position)
        return {place: Message(self._shared(place), self.samples[place]) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load the shared tensors; all others stay."""
        with torch.no_grad():
            for place, message in messages.items():
                for position, module in enumerate(self.modules[place]):
                    parameters = parameters_by_wire_name(module)
                    for name, tensor in message.tensors.items():
                        parameters[name].copy_(tensor[position])

    def score(self, number: int) -> str:
        """Record every institution's probabilities of its subjects without a training label."""
        self._score(self.curves.probabilities[number], trained=False)
        return self.curves.words(number, "no subject drawn")

    def member_probabilities(self) -> Float64:
        """(1, M, F, n, C) by their institution's present network."""
        scores = np.full((1, *self.cohort.labels.shape, self.cohort.classes), np.nan)
        self._score(scores[0], trained=True)
        return scores

    def _score(self, scores: Float64, *, trained: bool) -> None:
        """Write probabilities (M, F, n, C) of the subjects with a training label, or of all others."""
        for place, own in enumerate(self.modules):
            for position, module in enumerate(own):
                chosen = torch.nonzero(self.cohort.training(place, position) == trained)[:, 0]
                if len(chosen):
                    part = place, position
                    scores[place, position, chosen.numpy()] = probabilities(module, self.cohort, part, chosen)

    def foreign_probabilities(self, teacher: int, place: int, position: int, tested: IntArray) -> Float64:
        """(b, C) probabilities of these subjects by the network of `teacher`."""
        module = self.modules[teacher][position]
        return probabilities(module, self.cohort, (place, position), torch.from_numpy(tested))

    def content(self, place: int) -> Content:
        """The tensors of the network."""
        return content_of(parameters_by_wire_name(self.modules[place][0]))

    def privacy_rows(self) -> list[dict[str, int | float | str]]:
        """One row for each trainer and fold with training subjects."""
        return [spending_row(each, self.schedule) for each in self.spendings()]

    def spendings(self) -> list[Spending]:
        """The private steps taken so far, of each institution and fold with training subjects; none without privacy."""
        if not self.schedule.private:
            return []
        return [
            Spending(
                self.names[place],
                fold,
                count,
                self.poisson.rate(count),
                int(self.steps_taken[place, position]),
                float(self.multipliers[place, position]),
            )
            for place, counts in enumerate(self.samples.tolist())
            for position, (fold, count) in enumerate(zip(self.cohort.folds, counts, strict=True))
            if count
        ]

    def state(self, number: int) -> Arrays:
        """The curves, the models, the numbers of steps, and the optimisers' states where later rounds need them."""
        arrays: Arrays = {**self.curves.until(number), STEPS: self.steps_taken.copy()}
        for key, module, optimiser in self._each():
            arrays |= {f"{MODEL}{key}/{name}": each.cpu().numpy() for name, each in module.state_dict().items()}
            if self.keeps and number + 1 < self.schedule.rounds:
                arrays |= {f"{OPTIMISER}{key}/{name}": array for name, array in optimiser_arrays(optimiser).items()}
        return arrays

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.curves.restore(number, arrays)
        self.steps_taken[:] = arrays[STEPS]
        for key, module, optimiser in self._each():
            weights = below(f"{MODEL}{key}/", arrays).items()
            module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights})
            restore_optimiser(optimiser, below(f"{OPTIMISER}{key}/", arrays))

    def _each(self) -> list[tuple[str, torch.nn.Module, torch.optim.Optimizer]]:
        return [
            (f"{place}/{position}", module, self.optimisers[place][position])
            for place, own in enumerate(self.modules)
            for position, module in enumerate(own)
        ]

    def _shared(self, place: int) -> dict[str, Tensor]:
        """(F, ...) copies, by name on the wire."""
        named = [parameters_by_wire_name(module) for module in self.modules[place]]
        return {name: torch.stack([each[name].detach() for each in named]) for name in named[0] if name in self.shares}

    def _multipliers(self) -> Float64:
        multipliers = np.zeros(tuple(self.samples.shape))
        for (place, position), count in np.ndenumerate(self.samples.numpy()):
            if count and self.schedule.private:
                self.schedule.require_enough(self.names[place], int(count))
                multipliers[place, position], _, _ = planned_steps(self.schedule, int(count))
        return multipliers

    def _train(self, number: int, place: int, position: int) -> float:
        """Mean over an institution's steps in one fold of the drawn subjects' mean loss; NaN where none was drawn."""
        module, fold = self.modules[place][position], self.cohort.folds[position]
        training = self.cohort.training(place, position)
        count = int(training.sum())
        if not self.keeps:
            self.optimisers[place][position] = make_optimiser(module, self.schedule)
        module.train()
        losses: list[Tensor] = []
        for epoch in range(self.schedule.local_epochs):
            for step in range(self.poisson.steps(count)):
                moment = Moment(number, epoch, step)
                samples = self.poisson.draw(place, fold, moment, training)
                loss = self._step(place, position, samples, moment, self.poisson.rate(count) * count)
                if len(samples):
                    losses.append(loss / len(samples))
        if not losses:
            return float("nan")
        mean = float(torch.stack(losses).double().mean())
        require_finite(mean, f"institution {self.names[place]}", fold, number)
        return mean

    def _step(self, place: int, position: int, samples: Tensor, moment: Moment, expected: float) -> Tensor:
        """One local step on `expected` subjects; the summed loss of the drawn ones."""
        module, part = self.modules[place][position], (place, position)
        if self.schedule.private:
            total, loss = clipped_sum(module, self.cohort, part, samples, moment, self.schedule.clip)
            scale = float(self.multipliers[part]) * self.schedule.clip
            add_noise(total, scale, self.streams, place, self.cohort.folds[position], moment)
        else:
            total, loss = plain_sum(module, self.cohort, part, samples, moment)
        apply(module, self.optimisers[place][position], total, expected)
        self.steps_taken[part] += 1
        return loss


OF_ONE_SUBJECT = (
    *(torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d),
    *(torch.nn.LazyInstanceNorm1d, torch.nn.LazyInstanceNorm2d, torch.nn.LazyInstanceNorm3d),
)
"""Layers with running statistics, as layers of batches have them, that see one subject alone."""


def _check(module: torch.nn.Module, shares: Collection[str]) -> None:
    """Refuse names that the network has not, and layers in which one subject changes another's logits."""
    known = parameters_by_wire_name(module)
    if unknown := sorted(set(shares) - known.keys()):
        raise ValueError(f"shares: expected names among {', '.join(known)}, found {unknown[0]}")
    layers = ((name, layer) for name, layer in module.named_modules() if hasattr(layer, "running_mean"))
    if wrong := [name for name, layer in layers if not isinstance(layer, OF_ONE_SUBJECT)]:
        raise ValueError(
            f"expected layers that see one subject alone, as GroupNorm, found batch statistics: {wrong[0]}"
        )


POOLED = "pooled"
"""Name of the one trainer of a central training."""

Subjects = TypeVar("Subjects", bound=LabelledSubjects)


@dataclass(frozen=True)
class PrivateTraining(Training[Subjects, PrivateSchedule]):
    """A network that sees one subject alone; a federated one shares all of its parameters."""

    @property
    @abstractmethod
    def axes(self) -> Mapping[str, int]:
        """Sizes of axes that the ledger knows."""

    @abstractmethod
    def network(self, fold: int, place: int) -> torch.nn.Module:
        """An institution's network with initial weights, float32 on the CPU."""

    @abstractmethod
    def cohort(self) -> PrivateCohort:
        """`PrivateCohort.of` the `members` with what their networks read."""

    def record_data(self, ledger: Ledger) -> None:
        """Record pooled data, or a shared graph, which leave institutions before the first round; nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """(M,) names of the trainers."""
        return (POOLED,) if self.pooled else self.inputs.institutions

    def ledger(self) -> Ledger:
        """The ledger, with the rows of `record_data`."""
        ledger = Ledger(self.shared_tensors, self.axes)
        if len(self.inputs.institutions) > 1:
            self.record_data(ledger)
        return ledger

    def clients(self, folds: tuple[int, ...], _ledger: Ledger) -> PrivateClients:
        """The institutions.

        Raises:
            UserError: the privacy settings do not fit the cohort.
        """
        device, dtype, places = self.run.device, getattr(torch, self.run.precision), range(len(self.members))
        modules = [[self.network(fold, place).to(device, dtype) for fold in folds] for place in places]
        shares = parameters_by_wire_name(modules[0][0]) if self.federated else ()
        return PrivateClients(modules, self.cohort(), self.schedule, self.inputs.streams, shares, self.names)
