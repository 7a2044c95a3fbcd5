"""Institutions that hold whole graphs, for both engines that train on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.samples.graph_samples import GraphSamples
from brainfed.samples.labelled_subjects import IntArray


@dataclass(frozen=True)
class GraphCohort:
    """The graphs of the institutions.

    Attributes:
        graphs: (M)(F) graphs of each institution in each fold, one object where folds have the same.
        labels: (M, F, n) in {0, ..., C - 1}, -1 without a training label, and beyond an institution's graphs.
        folds: numbers of the F folds; they key the streams.
        classes: number of classes C.
    """

    graphs: Sequence[Sequence[GraphSamples]]
    labels: Tensor
    folds: tuple[int, ...]
    classes: int

    @classmethod
    def of(
        cls,
        graphs: Sequence[GraphSamples],
        labels: IntArray,
        members: Sequence[IntArray],
        folds: tuple[int, ...],
        classes: int,
        widths: Sequence[int] = (),
    ) -> "GraphCohort":
        """Give every institution its own graphs.

        Args:
            graphs: of all subjects, one shared by the folds or one a fold.
            labels: (F, n) of all subjects in these folds, -1 where hidden.
            members: (M,) positions of each institution's subjects.
            folds: numbers of the F folds.
            classes: number of classes.
            widths: (M,) columns of node features that each institution has; empty: all.
        """
        held = torch.full((len(members), len(folds), max(map(len, members))), -1)
        for place, own in enumerate(members):
            held[place, :, : len(own)] = torch.from_numpy(labels[:, own])
        parts = [[each.of(own) for each in graphs] for own in members]
        if widths:
            parts = [[each.narrowed(width) for each in own] for own, width in zip(parts, widths, strict=True)]
        return cls([own if len(own) > 1 else own * len(folds) for own in parts], held, folds, classes)

    @property
    def subjects(self) -> tuple[int, ...]:
        """(M,) number of graphs of each institution."""
        return tuple(len(own[0].node_start) - 1 for own in self.graphs)

    def hidden(self, place: int, position: int) -> IntArray:
        """Positions of an institution's graphs without a training label in a fold: all that it tests among them."""
        labels = self.labels[place, position, : self.subjects[place]]
        return torch.nonzero(labels < 0)[:, 0].cpu().numpy()

    def largest_first(self) -> list[tuple[int, int]]:
        """All (institution, place of the fold): threads that take one after the other end at nearly one time."""
        sizes = {
            (place, position): len(graphs.nodes)
            for place, own in enumerate(self.graphs)
            for position, graphs in enumerate(own)
        }
        return sorted(sizes, key=lambda part: -sizes[part])
