"""Local steps of a round: all labelled subjects at once, or batches of them (FedAvg's B)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.federation.schedule import FederationSettings
from brainfed.federation.selection import choose
from brainfed.runtime.streams import Streams


def local_steps(subjects: Sequence[int], settings: FederationSettings, streams: Streams, *, drawn: bool) -> int:
    """Number of local steps of all institutions in all rounds, for one fold.

    `drawn`: whether only the institutions that are drawn for a round train.
    """
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
        streams: random streams of the repeat.
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
