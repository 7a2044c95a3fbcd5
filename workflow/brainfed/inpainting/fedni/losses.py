"""The narrow losses of FedNI's generator and discriminator (FedNI eq. 6, 9, 11, 12); eq. 8 is in `wide_layers`.

Eq. 9 and 11 as printed have no lower bound; they are the usual losses with the roles of the labels
turned round. Here: binary cross-entropy with logits, real 1 and generated 0, the generator's own
loss non-saturating. Eq. 12 lacks its minus sign.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from brainfed.models.generator import SEXES


def count_loss(predicted: Tensor, hidden: Tensor, k: int) -> Tensor:
    """Eq. 6: squared error of the share of k, mean over visible nodes.

    Args:
        predicted: (v,) in (0, 1).
        hidden: (v,) number of hidden neighbours; beyond k it counts as k.
        k: the graph's k, the same scale for every institution.
    """
    return ((predicted - hidden.clamp(max=k) / k) ** 2).mean()


def generator_loss(fake: Tensor) -> Tensor:
    """Eq. 9, non-saturating: -log of being taken for real, mean over logits (p,) of generated features."""
    return softplus(-fake).mean()


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """Eq. 11: cross-entropy of logits (h,) of hidden nodes as real and (p,) of generated ones as not."""
    return softplus(-real).mean() + softplus(fake).mean()


@dataclass(frozen=True)
class Phenotype:
    """What the phenotype head is to say: sex (n,) codes, -1 unknown; age (n,) normalised, NaN unknown."""

    sex: Tensor
    age: Tensor

    def of(self, nodes: Tensor) -> "Phenotype":
        """The phenotype of some nodes."""
        return Phenotype(self.sex[nodes], self.age[nodes])


def phenotype_loss(outputs: Tensor, true: Phenotype, *, sex: bool, age: bool) -> Tensor:
    """Eq. 12 for sex plus the squared error of age, each the mean over pairs where it is known.

    Args:
        outputs: (p, 2 sex + age): two logits of sex where it is predicted, then age.
        true: of the hidden nodes (p,).
        sex: whether the head predicts sex.
        age: whether the head predicts age.
    """
    loss = outputs.new_zeros(())
    if sex and bool((true.sex >= 0).any()):
        loss = loss + cross_entropy(outputs[:, :SEXES], true.sex, ignore_index=-1)
    known = ~torch.isnan(true.age)
    if age and bool(known.any()):
        loss = loss + ((outputs[known, -1] - true.age[known]) ** 2).mean()
    return loss
