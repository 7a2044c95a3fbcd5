"""Local training of all institutions at once, for a GPU: one step and one Adam for their stacked weights."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from brainfed.federation import Adam
from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni._adversarial_step import MEASURES, StackedModules
from brainfed.inpainting.fedni._masking import DrawnMask, Institution
from brainfed.inpainting.fedni._stacked_step import (
    StackedDiscriminators,
    StackedNodes,
    StackedStep,
    padded,
    stacked_masks,
)
from brainfed.models import FIRST_WEIGHT, WIDE, Discriminator, Generator, Products
from brainfed.runtime import BoolArray, Float64

MOST_BYTES = 1 << 31
BUFFERS, SQUARES, CHOICES = 6, 3, 4
"""Arrays (M, p, d) of a step: generated and true features, their difference, two gradients, and one in passing;
(M, n, n): the adjacency, that of visible nodes, its scaled form; (M, p, n): the choice of nodes, int64 and float."""


def can_be_stacked(
    members: Sequence[Institution],
    drawn: Sequence[Sequence[DrawnMask]],
    known: Sequence[BoolArray] | None,
    settings: InpaintingSettings,
) -> bool:
    """Whether each mask gives its institution a step of all heads, and a step of all fits into `MOST_BYTES`.

    Pairs that are matched on the host are trained one institution after the other.

    Args:
        known: of each member, (n,) whether a phenotype that the generator predicts is known; None: it predicts none.
    """
    masks = [mask.mask for own in drawn for mask in own]
    if len(members) < 2 or settings.pairing == "hungarian" or any(mask is None for mask in masks):
        return False
    every = [mask for mask in masks if mask is not None]
    if known is not None and not all(
        known[index % len(members)][mask.target].any() for index, mask in enumerate(every)
    ):
        return False
    nodes = max(len(member.members) for member in members)
    pairs = padded(max(len(mask.target) for mask in every))
    rows = nodes + max(len(mask.hidden) for mask in every) + BUFFERS * pairs
    features = members[0].nodes.features
    numbers = len(members) * (rows * features.shape[1] + SQUARES * nodes**2 + CHOICES * pairs * nodes)
    return numbers * features.element_size() <= MOST_BYTES


def known_phenotypes(member: Institution, generator: Generator) -> BoolArray:
    """(n,) whether sex or age, of those that the generator predicts, is known."""
    sex, age = member.nodes.phenotype.sex >= 0, ~member.nodes.phenotype.age.isnan()
    return np.asarray(((sex & generator.sex) | (age & generator.age)).cpu().numpy())


class StackedTraining:
    """Adversarial training of M institutions, whose weights are leaves that share memory with the modules.

    Args:
        products: number format of the wide products, and their count.
    """

    def __init__(
        self,
        members: Sequence[Institution],
        generators: StackedModules[Generator],
        discriminators: StackedModules[Discriminator] | None,
        settings: InpaintingSettings,
        k: int,
        products: Products,
    ) -> None:
        self.members, self.settings = members, settings
        first = generators.modules[0]
        leaves = [
            {name: weight.detach().requires_grad_() for name, weight in stack.weights.items()}
            for stack in (generators, discriminators)
            if stack is not None
        ]
        judges = None if discriminators is None else StackedDiscriminators(leaves[1], discriminators.buffers, products)
        self.step = StackedStep(
            generator=leaves[0],
            moments=generators.buffers,
            discriminators=judges,
            sex=first.sex,
            age=first.age,
            nodes=_stacked_nodes(members),
            settings=settings,
            k=k,
            products=products,
        )
        self._optimisers = [Adam(list(own.values()), settings.learning_rate) for own in leaves]
        self._narrow = [leaf for own in leaves for name, leaf in own.items() if name not in (*WIDE, FIRST_WEIGHT)]

    def train(self, first: int, drawn: Sequence[Sequence[DrawnMask]]) -> Float64:
        """(M, measures) means over the epochs of these masks; `first` is the number of the first of them."""
        for optimiser in self._optimisers:
            optimiser.reset()
        sums: dict[str, Tensor] = {}
        for epoch, masks in enumerate(stacked_masks(self.members, drawn), first):
            for leaf in self._narrow:
                leaf.grad = None
            losses = self.step(masks)
            for optimiser in self._optimisers[: 2 if epoch % self.settings.d_interval == 0 else 1]:
                optimiser.step()
            for name, loss in losses.items():
                sums[name] = sums[name] + loss.double() if name in sums else loss.double()
        means = np.full((len(self.members), len(MEASURES) - 1), np.nan)
        # One synchronisation with the GPU a round.
        means[:, [MEASURES.index(name) for name in sums]] = torch.stack(list(sums.values()), dim=1).cpu().numpy() / len(
            drawn
        )
        return means


def _stacked_nodes(members: Sequence[Institution]) -> StackedNodes:
    most = max(len(member.members) for member in members)
    like = members[0].nodes.features
    features = like.new_zeros(len(members), most, like.shape[1])
    adjacency = like.new_zeros(len(members), most, most)
    sex = members[0].nodes.phenotype.sex.new_full((len(members), most), -1)
    age = like.new_full((len(members), most), torch.nan)
    for place, member in enumerate(members):
        own = slice(len(member.members))
        features[place, own] = member.nodes.features
        adjacency[place, own, own] = member.adjacency
        sex[place, own], age[place, own] = member.nodes.phenotype.sex, member.nodes.phenotype.age
    return StackedNodes(features, adjacency, sex, age, sum(len(member.members) for member in members))
