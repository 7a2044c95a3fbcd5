"""The masks of all institutions in one local epoch as padded tensors, copied to the GPU once a round."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.inpainting.fedni.institution import DrawnMask, Institution, visible_degree
from brainfed.inpainting.fedni.masking import Mask

PAIRS = 32
"""Numbers of pairs are padded to a multiple, so that the allocator finds the same sizes again."""


@dataclass(frozen=True)
class StackedMasks:
    """Masks of M institutions; nodes, hidden nodes and pairs are padded to the most of the round.

    Attributes:
        visible: (M, n) 1 for visible nodes.
        missing: (M, n) number of hidden neighbours of each visible node.
        degree: (M, n) number of visible neighbours of each node.
        hidden: (M, h) hidden nodes.
        is_hidden: (M, h) 1 where there is one.
        parent, target: (M, p) visible and hidden end of each pair.
        is_pair: (M, p) 1 where there is one.
        noise: (M, p, 4).
        pairs, hidden_nodes: their numbers over all institutions.
    """

    visible: Tensor
    missing: Tensor
    degree: Tensor
    hidden: Tensor
    is_hidden: Tensor
    parent: Tensor
    target: Tensor
    is_pair: Tensor
    noise: Tensor
    pairs: int
    hidden_nodes: int


def padded(pairs: int) -> int:
    """The number of pairs that so many take with padding."""
    return -(-pairs // PAIRS) * PAIRS


def stacked_masks(institutions: Sequence[Institution], epochs: Sequence[Sequence[DrawnMask]]) -> list[StackedMasks]:
    """One `StackedMasks` an epoch, from the masks of every epoch and institution; each mask has pairs."""
    like = institutions[0].adjacency
    every = [[_mask(drawn) for drawn in own] for own in epochs]
    nodes = max(len(institution.members) for institution in institutions)
    most = max(len(mask.hidden) for own in every for mask in own)
    pairs = padded(max(len(mask.target) for own in every for mask in own))
    of_nodes = np.zeros((len(every), len(institutions), 3, nodes))
    of_hidden = np.zeros((len(every), len(institutions), 2, most), dtype=np.int64)
    of_pairs = np.zeros((len(every), len(institutions), 3, pairs), dtype=np.int64)
    noise = torch.zeros(len(every), len(institutions), pairs, epochs[0][0].noise.shape[1])
    for epoch, own in enumerate(every):
        for place, (institution, mask) in enumerate(zip(institutions, own, strict=True)):
            of_nodes[epoch, place, :, : len(institution.members)] = _of_nodes(institution, mask)
            of_hidden[epoch, place, :, : len(mask.hidden)] = mask.hidden, np.ones(len(mask.hidden))
            count = len(mask.target)
            of_pairs[epoch, place, :, :count] = mask.visible, mask.target, np.ones(count)
            noise[epoch, place, :count] = epochs[epoch][place].noise
    # One copy for each array, in place of one for each mask and field.
    on_nodes = torch.from_numpy(of_nodes).to(like)
    on_hidden, on_pairs = (torch.from_numpy(array).to(like.device) for array in (of_hidden, of_pairs))
    noise = noise.to(like)
    return [
        _of_epoch(on_nodes[epoch], on_hidden[epoch], on_pairs[epoch], noise[epoch], of_hidden[epoch], of_pairs[epoch])
        for epoch in range(len(every))
    ]


def _of_epoch(
    nodes: Tensor,
    hidden: Tensor,
    pairs: Tensor,
    noise: Tensor,
    on_host: NDArray[np.int64],
    pairs_on_host: NDArray[np.int64],
) -> StackedMasks:
    """From rows (M, rows, ...), of which the last of hidden nodes and of pairs marks those that are there."""
    visible, missing, degree = nodes.unbind(dim=1)
    hidden_nodes, is_hidden = hidden.unbind(dim=1)
    parent, target, is_pair = pairs.unbind(dim=1)
    return StackedMasks(
        visible=visible,
        missing=missing,
        degree=degree,
        hidden=hidden_nodes,
        is_hidden=is_hidden.to(nodes.dtype),
        parent=parent,
        target=target,
        is_pair=is_pair.to(nodes.dtype),
        noise=noise,
        pairs=int(pairs_on_host[:, -1].sum()),
        hidden_nodes=int(on_host[:, -1].sum()),
    )


def _mask(drawn: DrawnMask) -> Mask:
    assert drawn.mask is not None
    return drawn.mask


def _of_nodes(institution: Institution, mask: Mask) -> NDArray[np.float64]:
    """(3, n) visible, missing, degree."""
    count = len(institution.members)
    is_visible = np.ones(count, dtype=np.bool_)
    is_visible[mask.hidden] = False
    missing = np.bincount(mask.visible, minlength=count)
    return np.stack([is_visible, missing * is_visible, visible_degree(institution.edges, is_visible)])
