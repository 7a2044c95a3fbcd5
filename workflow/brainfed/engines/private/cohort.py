"""Institutions whose subjects have gradients of their own: a network sees one subject, or one of its windows, alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.engines.private.poisson import Moment
from brainfed.samples.labelled_subjects import IntArray, LabelledSubjects

Arguments = Callable[[int, int, Tensor, Moment | None], tuple[Tensor, ...]]
"""Institution, place of the fold, samples (b,), moment of the step -> arguments of the network, one row a sample, or
one row a window where a cohort has `windows_of`. The samples are positions among the institution's subjects. The moment
is None to score; it keys random crops. Rows of one sample are neighbours, in the order of the samples."""

WindowsOf = Callable[[int, int, Tensor, Moment | None], Tensor]
"""The same -> (b,) numbers of windows of each sample, at least 1: rows that `Arguments` has of it."""

BLOCK = 64
"""Samples that a network reads at once."""


@dataclass(frozen=True)
class Rows:
    """What a network reads of b subjects at once.

    Attributes:
        arguments: of the network, one row a window.
        owner: (rows,) place of each row's subject among these subjects; None: a row a subject.
        means: (b, rows) 1 / windows of the subject where a row is one of its windows, else 0; None with `owner`.
    """

    arguments: tuple[Tensor, ...]
    owner: Tensor | None = None
    means: Tensor | None = None

    def of_rows(self, labels: Tensor) -> Tensor:
        """(rows,) from (b,)."""
        return labels if self.owner is None else labels[self.owner]

    def of_subjects(self, values: Tensor) -> Tensor:
        """(b, ...) means over each subject's windows, from (rows, ...)."""
        if self.means is None:
            return values
        held = values.reshape(len(values), -1)
        return (self.means.to(values) @ held).view(-1, *values.shape[1:])


@dataclass(frozen=True)
class PrivateCohort:
    """The data of the institutions.

    Attributes:
        arguments: of the institutions' networks, which return logits (rows, C).
        labels: (M, F, n) in {0, ..., C - 1}, -1 without a training label, and beyond an institution's subjects; on the
            CPU.
        subjects: (M,) number of subjects of each institution.
        folds: numbers of the F folds; they key the streams.
        classes: number of classes C.
        windows_of: numbers of windows; None: every sample is one row. A subject counts once: its loss and its score
            are means over its windows.
        block: samples that a network reads at once.
    """

    arguments: Arguments
    labels: Tensor
    subjects: Sequence[int]
    folds: tuple[int, ...]
    classes: int
    windows_of: WindowsOf | None = None
    block: int = BLOCK

    @classmethod
    def of(
        cls,
        inputs: LabelledSubjects,
        members: Sequence[IntArray],
        arguments: Arguments,
        windows_of: WindowsOf | None = None,
        block: int = BLOCK,
    ) -> "PrivateCohort":
        """Give every institution its subjects and training labels, of all folds.

        Args:
            inputs: of the repeat.
            members: (M,) positions of each institution's subjects.
            arguments: see the attributes.
            windows_of: see the attributes.
            block: see the attributes.
        """
        labels = torch.full((len(members), inputs.folds, max(map(len, members))), -1)
        for place, own in enumerate(members):
            labels[place, :, : len(own)] = torch.from_numpy(inputs.labels[:, own])
        sizes = [len(own) for own in members]
        return cls(arguments, labels, sizes, tuple(range(inputs.folds)), inputs.classes, windows_of, block)

    def training(self, place: int, position: int) -> Tensor:
        """(n,) whether each subject of an institution has a training label in a fold."""
        return self.labels[place, position, : self.subjects[place]] >= 0

    def blocks(self, samples: Tensor) -> Iterator[Tensor]:
        """The samples in parts that fit into memory."""
        return iter(torch.split(samples, self.block)) if len(samples) else iter(())

    def rows(self, place: int, position: int, samples: Tensor, moment: Moment | None, like: Tensor) -> Rows:
        """What a network reads of these samples, on the device and in the floating-point type of `like`."""
        found = tuple(
            each.to(like) if each.is_floating_point() else each.to(like.device)
            for each in self.arguments(place, position, samples, moment)
        )
        if self.windows_of is None:
            return Rows(found)
        windows = self.windows_of(place, position, samples, moment)
        if (windows == 1).all():
            return Rows(found)
        owner = torch.repeat_interleave(torch.arange(len(samples)), windows)
        means = torch.nn.functional.one_hot(owner, len(samples)).T.double() / windows[:, None]
        return Rows(found, owner.to(like.device), means.to(like))
