"""From one repeat's inputs to tensors stacked over institutions and folds.

All constants are computed here, once: the normalised adjacency, the propagated features A X, the training means and
standard deviations of every fold, and those of an institution that trains nothing in a fold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brainfed.engines import padded_labels
from brainfed.engines.stacked._first_layer import (
    DENSE_NUMBERS,
    Design,
    FoldDesign,
    Propagate,
    Propagation,
    SharedDesign,
    SparsePropagation,
    institution_blocks,
    row_sums,
)
from brainfed.federation import Ledger, add_up, record_downloads, record_uploads
from brainfed.graphs import dense_block, edges_by_block
from brainfed.models import Read
from brainfed.runtime import Float64, IntArray
from brainfed.samples import MethodInputs, training_moments

MEAN, SD, CONSTANT, HELPING = "feature-mean", "feature-sd", "constant-features", "helping-institutions"
MOMENT_BYTES = 8
"""Bytes of a number of a sum, float64."""


def mean_moments(inputs: MethodInputs, ledger: Ledger | None, means: Float64, sds: Float64) -> tuple[Float64, Float64]:
    """Means and deviations (F, d), each the mean over all institutions that train in the fold.

    A deviation is infinite if the column is constant in one of them.

    Args:
        ledger: of a federation, which adds up the sums of all processes if an institution is left out in a fold.
        means: (M, F, d) of the institutions here; NaN of one that trains nothing in the fold.
        sds: the same; infinite of a constant column.
    """
    trains, constant = ~np.isnan(means[:, :, 0]), np.isinf(sds)
    total = {
        MEAN: np.where(trains[:, :, None], means, 0.0).sum(axis=0),
        SD: np.where(trains[:, :, None] & ~constant, sds, 0.0).sum(axis=0),
        CONSTANT: constant.sum(axis=0).astype(np.float64),
        HELPING: trains.sum(axis=0).astype(np.float64),
    }
    if ledger is not None and inputs.unseen.any():
        total = add_up(inputs.link, ledger, len(inputs.subjects), total, stacked=True)
    helping = total[HELPING][:, None]
    return total[MEAN] / helping, np.where(total[CONSTANT] > 0, np.inf, total[SD] / helping)


def record_moments(inputs: MethodInputs, fold: int, ledger: Ledger, sizes: dict[int, int]) -> None:
    """Record the sums of `mean_moments` in one fold: all that train send theirs, all receive the total."""
    vector = ((inputs.features[0].shape[1],), MOMENT_BYTES)
    content = {MEAN: vector, SD: vector, CONSTANT: vector, HELPING: ((), MOMENT_BYTES)}
    unseen = inputs.unseen[:, fold]
    record_uploads(ledger, {code: size for code, size in sizes.items() if not unseen[code]}, content)
    record_downloads(ledger, sizes, content)


@dataclass(frozen=True)
class Member:
    """One trainer of the stack: its nodes and their scaling.

    Attributes:
        nodes: positions of its n nodes.
        mean, sd: (F, d) moments by fold; None without standardisation.
    """

    nodes: IntArray
    mean: Float64 | None
    sd: Float64 | None


@dataclass(frozen=True)
class Reading:
    """How a network reads the nodes.

    Attributes:
        reads: factors of its first weights, see `models._classifier`.
        propagate: graph -> row, column and value of A; None without a graph.
        device: device of the training.
        dtype: number format of everything with a gradient.
    """

    reads: frozenset[Read]
    propagate: Propagate | None
    device: torch.device
    dtype: torch.dtype


@dataclass(frozen=True)
class Stack:
    """Inputs of the stacked network and its rounds.

    Attributes:
        members: M trainers.
        subjects: (M,) number of subjects of each trainer.
        folds: numbers of the F folds.
        designs: input of the first weights -> one design a trainer, see `_first_layer`.
        propagation: A (M, 1 or F, n, n) zero-padded, sparse if large; None without a graph.
        labels: (M, F, n), -1 for unlabelled nodes and padding.
    """

    members: tuple[Member, ...]
    subjects: tuple[int, ...]
    folds: tuple[int, ...]
    designs: Mapping[Read, tuple[Design, ...]]
    propagation: Propagation | None
    labels: Tensor
    reading: Reading


def members(
    inputs: MethodInputs, groups: Sequence[IntArray], folds: Sequence[int], ledger: Ledger | None, *, standardise: bool
) -> tuple[Member, ...]:
    """One member for each group of nodes, with its scaling.

    Scaling is fitted on the member's training subjects of each fold. A member without any takes the mean of the other
    members' moments, so that a column that is constant in one of them has no effect.

    Args:
        groups: positions of each member's nodes.
        ledger: of a federation, which sums these moments; it declares them. None: they do not cross as sums.
        standardise: whether columns are scaled.
    """
    if not standardise:
        return tuple(Member(nodes, None, None) for nodes in groups)
    means = np.full((len(groups), len(folds), inputs.features[0].shape[1]), np.nan)
    sds = means.copy()
    for index, nodes in enumerate(groups):
        for position, fold in enumerate(folds):
            mask = np.zeros(len(inputs.subjects), dtype=bool)
            mask[nodes] = inputs.training(fold)[nodes]
            if mask.any():
                means[index, position], sds[index, position] = training_moments(inputs.fold_features(fold), mask)
    absent = np.isnan(means[:, :, :1])
    if absent.any():
        mean, sd = mean_moments(inputs, ledger, means, sds)
        means, sds = np.where(absent, mean, means), np.where(absent, sd, sds)
    return tuple(Member(nodes, means[index], sds[index]) for index, nodes in enumerate(groups))


def stack_inputs(inputs: MethodInputs, trained: tuple[Member, ...], folds: Sequence[int], reading: Reading) -> Stack:
    """Lay out labels, adjacency and first-layer designs of `trained` for the folds in `folds`."""
    labels = padded_labels(inputs.labels[list(folds)], [member.nodes for member in trained])
    propagation = None
    if reading.propagate is not None:
        propagation = stack_graphs(inputs, trained, folds, reading.propagate, reading.dtype)
    blocks: dict[Read, Propagation | None] = {"own": None, "propagated": propagation}
    return Stack(
        members=trained,
        subjects=tuple(inputs.subjects_among(member.nodes) for member in trained),
        folds=tuple(folds),
        designs={
            read: _designs(inputs, trained, folds, blocks[read], reading) for read in blocks if read in reading.reads
        },
        propagation=None if propagation is None else propagation.to(reading.device),
        labels=labels.to(reading.device),
        reading=reading,
    )


def _designs(
    inputs: MethodInputs,
    trained: tuple[Member, ...],
    folds: Sequence[int],
    propagation: Propagation | None,
    reading: Reading,
) -> tuple[Design, ...]:
    sizes = [len(member.nodes) for member in trained]
    blocks = [None if propagation is None else institution_blocks(propagation, m, n) for m, n in enumerate(sizes)]
    if len(inputs.features) > 1 or (propagation is not None and len(inputs.graphs) > 1):
        return tuple(
            _fold_design(inputs, member, folds, block, reading) for member, block in zip(trained, blocks, strict=True)
        )
    # One allocation for all: many allocations of a few megabytes would fragment the memory.
    d = inputs.features[0].shape[1]
    count = sum(sizes) + len(trained) * len(folds)
    rows = torch.empty(count, d, device=reading.device, dtype=reading.dtype)
    parts = torch.split(rows, [n + len(folds) for n in sizes])
    return tuple(
        _shared_design(inputs, member, block, part) for member, block, part in zip(trained, blocks, parts, strict=True)
    )


def stack_graphs(
    inputs: MethodInputs, trained: tuple[Member, ...], folds: Sequence[int], propagate: Propagate, dtype: torch.dtype
) -> Propagation:
    """(M, 1 or F, n, n) propagation matrix of each graph, by member, zero-padded; sparse if large."""
    graphs = [inputs.graphs[fold] for fold in folds] if len(inputs.graphs) > 1 else [inputs.graphs[0]]
    width = max(len(member.nodes) for member in trained)
    if len(trained) * len(graphs) * width**2 > DENSE_NUMBERS:
        groups = [member.nodes for member in trained]
        blocks = [edges_by_block(*propagate(graph), groups, graph.nodes) for graph in graphs]
        return SparsePropagation.of_edges([*zip(*blocks, strict=True)], width, dtype)
    dense = torch.zeros(len(trained), len(graphs), width, width, dtype=dtype)
    for position, graph in enumerate(graphs):
        row, column, value = propagate(graph)
        for index, member in enumerate(trained):
            block = dense_block(row, column, value, member.nodes, graph.nodes)
            dense[index, position, : len(member.nodes), : len(member.nodes)] = torch.from_numpy(block).to(dtype)
    return dense


def _shared_design(
    inputs: MethodInputs, member: Member, propagation: Tensor | tuple[Tensor, ...] | None, rows: Tensor
) -> SharedDesign:
    """Fill `rows` (n + F, d) with the features, propagated if there is a graph, and the folds' means."""
    n = len(member.nodes)
    folds, d = len(rows) - n, rows.shape[1]
    features = torch.from_numpy(inputs.features[0][member.nodes]).to(rows)
    sums = rows.new_ones(n)
    if propagation is None:
        rows[:n] = features
    else:
        block = propagation[0].to(rows.device)
        rows[:n], sums = block @ features, row_sums(block)
    rows[n:] = torch.zeros(folds, d) if member.mean is None else torch.from_numpy(member.mean)
    sd = torch.ones(folds, d) if member.sd is None else torch.from_numpy(member.sd)
    return SharedDesign(rows, sums, sd.reciprocal().T.contiguous()[:, :, None].to(rows))


def _fold_design(
    inputs: MethodInputs,
    member: Member,
    folds: Sequence[int],
    propagation: Tensor | tuple[Tensor, ...] | None,
    reading: Reading,
) -> FoldDesign:
    device, dtype, layers = reading.device, reading.dtype, []
    for position, fold in enumerate(folds):
        rows = torch.from_numpy(inputs.fold_features(fold)[member.nodes]).to(device, dtype)
        if member.mean is not None and member.sd is not None:
            mean, sd = torch.from_numpy(member.mean[position]), torch.from_numpy(member.sd[position])
            rows = (rows - mean.to(device, dtype)) / sd.to(device, dtype)
        if propagation is not None:
            rows = propagation[position if len(propagation) > 1 else 0].to(device) @ rows
        layers.append(rows)
    return FoldDesign(torch.stack(layers))
