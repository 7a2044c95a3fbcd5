"""What institutions with networks have in common, whatever their engine: names on the wire, local steps, curves."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Clients, Content, FederationSettings
from brainfed.federation.strategies import choose
from brainfed.models import Classifier
from brainfed.runtime import BoolArray, Float64, IntArray, Streams, UserError
from brainfed.samples import FittedModel, LabelledSubjects


def wire_name(parameter: str) -> str:
    """Name of a parameter on the wire: `weight_own_0` becomes `weight-own-0`."""
    return parameter.replace("_", "-")


def parameters_by_wire_name(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The learnable tensors of a module by their names on the wire."""
    return {wire_name(name): parameter for name, parameter in module.named_parameters()}


def content_of(tensors: Mapping[str, Tensor], stacked: int = 0) -> dict[str, tuple[tuple[int, ...], int]]:
    """For the ledger: the shape of each tensor without its first `stacked` axes, and the bytes of an entry."""
    return {name: (tuple(tensor.shape[stacked:]), tensor.element_size()) for name, tensor in tensors.items()}


def padded_labels(labels: IntArray, members: Sequence[IntArray]) -> Tensor:
    """(M, F, m) labels of the subjects of M institutions, padded with -1 to the largest one.

    Args:
        labels: (F, n) of all subjects, -1 where hidden.
        members: (M,) positions of each institution's subjects.
    """
    padded = torch.full((len(members), len(labels), max(map(len, members))), -1)
    for place, own in enumerate(members):
        padded[place, :, : len(own)] = torch.from_numpy(labels[:, own])
    return padded


def axes_of(module: Classifier) -> dict[str, int]:
    """Sizes of the axes of a classifier's tensors, for the ledger."""
    widths = module.widths
    hidden = {f"hidden-{index}": width for index, width in enumerate(widths[1:-1])}
    return {"features": widths[0], "classes": widths[-1], **hidden}


def local_steps(subjects: Sequence[int], settings: FederationSettings, streams: Streams, *, drawn: bool) -> int:
    """Number of local steps of all institutions in all rounds of one fold; `drawn`: of those that a round draws."""
    batches = 1 if settings.batch == 0 else -(-max(subjects) // settings.batch)
    rounds = (
        len(choose(len(subjects), settings.fraction, streams, number)) if drawn else len(subjects)
        for number in range(settings.rounds)
    )
    return sum(rounds) * settings.local_epochs * batches


@dataclass(frozen=True)
class Batches:
    """The split of an epoch's labelled subjects into steps.

    Attributes:
        size: largest number of subjects a step; 0: all subjects in one step.
        subjects: (M,) subjects of each institution. If steps are even, the largest decides their number, so that no
            fold depends on another's size.
        folds: numbers of the folds; they key the streams.
        even: whether all institutions take equally many steps, or each as many as its own training subjects need.
    """

    size: int
    subjects: Sequence[int]
    folds: Sequence[int]
    streams: Streams
    even: bool = True

    def of(self, labels: Tensor, number: int, epoch: int) -> list[Tensor]:
        """Labels (M, F, n) of each local step in an epoch of round `number`, -1 for subjects outside the batch."""
        if self.size == 0:
            return [labels]
        labelled = labels.cpu() >= 0
        counts = labelled.sum(dim=2)
        needed = torch.full_like(counts, max(self.subjects)) if self.even else counts.clamp(min=1)
        steps = -(-needed // self.size)
        most = int(steps.max())
        if most == 1:
            return [labels]
        step = torch.full(labels.shape, -1)
        for institution in range(labels.shape[0]):
            for position, fold in enumerate(self.folds):
                nodes = torch.nonzero(labelled[institution, position])[:, 0].numpy()
                order = self.streams.numpy("batches", institution, fold, number, epoch).permutation(nodes)
                step[institution, position, torch.from_numpy(order)] = (
                    torch.arange(len(order)) % steps[institution, position]
                )
        step = step.to(labels.device)
        return [torch.where(step == index, labels, -1) for index in range(most)]


@dataclass(frozen=True)
class Curves:
    """Scores and losses of all rounds.

    Attributes:
        probabilities: (T, M, F, n, C) after every round, each institution by its own current model.
        losses: (T, M, F) training loss, mean over the round's local steps that had a labelled subject; NaN where an
            institution had none or did not train.
    """

    probabilities: Float64
    losses: Float64

    @classmethod
    def of(cls, rounds: int, labels: Tensor, classes: int) -> "Curves":
        """Empty curves for labels (M, F, n)."""
        return cls(np.zeros((rounds, *labels.shape, classes)), np.zeros((rounds, *labels.shape[:2])))

    def until(self, number: int) -> dict[str, Float64]:
        """Arrays of the rounds up to `number`, by name."""
        return {"probabilities": self.probabilities[: number + 1], "losses": self.losses[: number + 1]}

    def restore(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the arrays of `until`."""
        for name, curve in self.until(number).items():
            curve[:] = arrays[name]

    def words(self, number: int, untrained: str = "nobody here was drawn") -> str:
        """The mean loss of a round, for the progress line."""
        losses = self.losses[number]
        return f"loss {np.nanmean(losses):.4f}" if np.isfinite(losses).any() else untrained


def require_finite(loss: float, trainer: str, fold: int, number: int) -> None:
    """Refuse a training that diverges.

    Raises:
        UserError: the loss of round `number` is not finite.
    """
    if not math.isfinite(loss):
        raise UserError(
            f"training of {trainer} (fold {fold}, round {number + 1}): expected a finite loss, found NaN or an "
            "infinite one; lower learning_rate."
        )


def of_subjects(
    inputs: LabelledSubjects,
    members: Sequence[IntArray],
    probabilities: Float64,
    chosen: Callable[[int], BoolArray],
    folds: Sequence[int],
) -> Float64:
    """(T, F, n, C) scores of subjects from (T, M, F, m, C) of the institutions; NaN of subjects that are not chosen.

    Args:
        members: (M,) positions of the subjects of each trainer.
        probabilities: of every trainer's subjects, padded to the largest one.
        chosen: fold -> (n,) mask.
    """
    scores = np.full((len(probabilities), len(folds), len(inputs.subjects), inputs.classes), np.nan)
    for position, fold in enumerate(folds):
        for place, own in enumerate(members):
            kept = chosen(fold)[own]
            scores[:, position, own[kept]] = probabilities[:, place, position, : len(own)][:, kept]
    return scores


class NetworkClients(Clients, ABC):
    """M institutions with one network in each of F folds; `engines._training` drives them.

    Attributes:
        samples: (M, F) numbers of training samples, on the CPU.
        curves: scores and losses of all rounds.
        parameters: number of parameters of a network; of several kinds, that of the largest.
        global_model: whether one model of all institutions scores those without training subjects.
    """

    samples: Tensor
    curves: Curves
    parameters: int
    global_model: bool

    @property
    def institutions(self) -> tuple[int, ...]:
        """Places of the institutions."""
        return tuple(range(len(self.samples)))

    def start(self) -> dict[str, Tensor]:
        """(F, ...) shared tensors before the first round; none where institutions send no parameters."""
        return {}

    @abstractmethod
    def content(self, place: int) -> Content:
        """What an institution without training subjects receives, to be scored by the network of `place` in a fold."""

    @abstractmethod
    def member_probabilities(self) -> Float64:
        """(1, M, F, n, C) probabilities of the training subjects of each fold by the last networks, NaN of others.

        The first axis is that of the rounds in an engine that has these probabilities after every round.
        """

    @abstractmethod
    def foreign_probabilities(self, teacher: int, place: int, position: int, tested: IntArray) -> Float64:
        """(b, C) probabilities of subjects of an institution that trains nothing in a fold, by another's last network.

        Args:
            tested: (b,) positions among the institution's subjects.
        """

    def kept_models(self) -> list[FittedModel]:
        """The model of every fold, for a run that keeps them; none of an engine whose models need other subjects."""
        return []

    def privacy_rows(self) -> list[dict[str, int | float | str]]:
        """The privacy that each institution has spent in each fold; none without privacy."""
        return []
