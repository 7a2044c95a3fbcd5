"""Losses of FedNI's count head, discriminator and phenotype head; `wide_layers` has the reconstruction's.

The adversarial losses as printed have no lower bound: they are the usual ones with exchanged labels. Here they are
binary cross-entropies with logits, real 1 and generated 0, and the generator's is non-saturating.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from brainfed.models.generator import SEXES


def count_loss(predicted: Tensor, hidden: Tensor, k: int) -> Tensor:
    """FedNI eq. 6: L_num = sum_i (N_i - sigmoid(f_n(z_i)))^2, N_i a share of k; here a mean over visible nodes.

    Args:
        predicted: (v,) sigmoid(f_n(z)), in (0, 1).
        hidden: (v,) number of hidden neighbours, at most k of which count.
        k: the graph's k, the same scale for every institution.
    """
    return ((predicted - hidden.clamp(max=k) / k) ** 2).mean()


def generator_loss(fake: Tensor) -> Tensor:
    """FedNI eq. 9, non-saturating: L_gen = -E log f_d(x~), from logits (p,) of generated features."""
    return softplus(-fake).mean()


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """FedNI eq. 11: L_dis = -E log f_d(x) - E log(1 - f_d(x~)).

    Args:
        real: (h,) logits of hidden nodes.
        fake: (p,) logits of generated nodes.
    """
    return softplus(-real).mean() + softplus(fake).mean()


@dataclass(frozen=True)
class Phenotype:
    """Targets of the phenotype head: sex (n,) codes, -1 unknown; age (n,) normalised, NaN unknown."""

    sex: Tensor
    age: Tensor

    def of(self, nodes: Tensor) -> "Phenotype":
        """The phenotype of some nodes."""
        return Phenotype(self.sex[nodes], self.age[nodes])


def phenotype_loss(outputs: Tensor, true: Phenotype, *, sex: bool, age: bool) -> Tensor:
    """FedNI eq. 12: L_pheno = -sum_k (u_k log u~_k + (1 - u_k) log(1 - u~_k)) for sex, plus the squared error of age.

    The paper prints no minus sign. Both are means over the pairs whose phenotype is known.

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
