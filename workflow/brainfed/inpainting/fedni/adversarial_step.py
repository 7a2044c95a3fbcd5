"""One local epoch of one institution: every loss and every gradient of generator and discriminator.

Both see the same generated features: the generator's gradient is taken against the discriminator before
its step, the discriminator's against the features before the generator's. `tests/reference` holds the
plain version, in which autograd does all of it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn.functional import one_hot

from brainfed.inpainting.fedni.losses import Phenotype, count_loss, discriminator_loss, generator_loss, phenotype_loss
from brainfed.inpainting.fedni.wide_layers import Upstream, WideLayers, gradient_of
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.discriminator import Discriminator, FirstWeight
from brainfed.models.generator import Generator

LOSSES = ("reconstruction", "adversarial", "count", "phenotype", "discriminator")
LENGTHS = ("reconstruction_gradient", "adversarial_gradient", "phenotype_gradient")
"""Frobenius norms of what each loss asks of the generated features (p, d), the layer that the three share."""
STEEPEST = 1e4
"""A gradient that is brought to the reconstruction's length is stretched at most so far (as in VQGAN)."""


@dataclass(frozen=True)
class Nodes:
    """One institution's subjects: features (n, d) in [-1, 1], and what the phenotype head is to say."""

    features: Tensor
    phenotype: Phenotype


@dataclass(frozen=True)
class HiddenNodes:
    """One mask.

    Attributes:
        propagation: (n, n) normalised adjacency of what is left; rows and columns of hidden nodes are 0.
        visible: (v,) the nodes that are left.
        missing: (v,) number of hidden neighbours of each.
        degree: (v,) number of visible ones.
        hidden: (h,) the others.
        parent, target: (p,) a visible node and its hidden neighbour, in order.
        noise: (p, 4) of the generator.
    """

    propagation: Tensor
    visible: Tensor
    missing: Tensor
    degree: Tensor
    hidden: Tensor
    parent: Tensor
    target: Tensor
    noise: Tensor


def train_step(
    generator: Generator,
    discriminator: Discriminator | None,
    nodes: Nodes,
    masked: HiddenNodes,
    settings: InpaintingSettings,
    k: int,
    wide: WideLayers,
) -> dict[str, Tensor]:
    """Fill the gradients of alpha L_rec + beta L_gen + L_num + L_pheno and of L_dis (FedNI eq. 6, 8 to 12).

    Returns:
        every loss of `LOSSES` and every length of `LENGTHS` by name, on the device: the reconstruction as a mean over
        features whatever its weight; those of the discriminator are missing where there is none. Lengths are those of
        the gradients as they enter, weights included.
    """
    first = generator.encoder_0.weight
    with torch.no_grad():
        product = torch.empty(len(nodes.features), len(first), device=first.device, dtype=first.dtype)
        wide.products.write(nodes.features, first.T, product)
    product.requires_grad_()
    embedding = generator.embed(product, masked.propagation)
    counted = count_loss(generator.missing(embedding[masked.visible], masked.degree), masked.missing, k)
    chosen = one_hot(masked.parent, len(embedding)).to(embedding.dtype)
    expanded = generator.expand(chosen @ embedding, masked.noise)
    losses, back = _train_wide(generator, discriminator, nodes, masked, settings, wide, expanded.detach())
    torch.autograd.backward([counted, expanded], [torch.ones_like(counted), back])
    assert product.grad is not None
    with torch.no_grad():
        wide.products.write(product.grad.T, nodes.features, gradient_of(first))
    return {"count": counted.detach(), **losses}


def _train_wide(
    generator: Generator,
    discriminator: Discriminator | None,
    nodes: Nodes,
    masked: HiddenNodes,
    settings: InpaintingSettings,
    wide: WideLayers,
    source: Tensor,
) -> tuple[dict[str, Tensor], Tensor]:
    """Losses of the generated features, and the gradient of the generator's by `source` (p, 256)."""
    first = None if discriminator is None else discriminator.first_weight()
    judge = None if first is None else first.original.detach()
    with torch.no_grad():
        fake, judged, phenotype = wide.generate(generator, source, judge)
    target = paired(fake, nodes.features, masked) if settings.pairing == "hungarian" else masked.target
    losses: dict[str, Tensor] = {}
    phenotype_gradient = None
    if phenotype is not None:
        phenotype.requires_grad_()
        told_loss = phenotype_loss(
            generator.predict_phenotype(phenotype), nodes.phenotype.of(target), sex=generator.sex, age=generator.age
        )
        losses["phenotype"] = told_loss.detach()
        if told_loss.requires_grad:
            told_loss.backward()  # type: ignore[no-untyped-call]
        phenotype_gradient = torch.zeros_like(phenotype) if phenotype.grad is None else phenotype.grad
    judged_back = None
    if discriminator is not None and first is not None and judged is not None:
        adversarial, by_products = _judge(discriminator, first, judged, fake, nodes.features[masked.hidden], wide)
        judged_back = by_products / first.sigma
        losses |= adversarial
    with torch.no_grad():
        weight = 1 if settings.reconstruction == "mean" else fake.shape[1]
        upstream = Upstream(target, weight, judged_back, phenotype_gradient)
        lengths = wide.lengths(generator, fake, nodes.features, judge, upstream)
        weights = _weights(settings, lengths)
        upstream = upstream.weighted(*weights)
        reconstruction, back = wide.backward(generator, source, fake, nodes.features, judge, upstream)
    entering = {name: length * by for name, length, by in zip(LENGTHS, lengths, weights, strict=True)}
    present = (True, judged_back is not None, phenotype_gradient is not None)
    shown = {name: length for (name, length), there in zip(entering.items(), present, strict=True) if there}
    return {"reconstruction": reconstruction, **losses, **shown}, back


def _weights(settings: InpaintingSettings, lengths: Tensor) -> Tensor:
    """(3,) by what the gradients of reconstruction, adversarial and phenotype loss are multiplied (FedNI eq. 10)."""
    chosen = lengths.new_tensor([settings.alpha, settings.beta, 1.0])
    if settings.reconstruction != "balanced":
        return chosen
    stretch = (lengths[0] / lengths).clamp(max=STEEPEST)
    return chosen * torch.where(lengths > 0, stretch, 1)


def _judge(
    discriminator: Discriminator, first: FirstWeight, judged: Tensor, fake: Tensor, real: Tensor, wide: WideLayers
) -> tuple[dict[str, Tensor], Tensor]:
    """Fill the discriminator's gradients; its losses, and the gradient of L_gen by the products of `fake` (p, 128)."""
    with torch.no_grad():
        met = torch.empty(len(real), judged.shape[1], device=real.device, dtype=real.dtype)
        wide.products.write(real, first.original.T, met)
        products = torch.cat([met, judged]) / first.sigma
    products.requires_grad_()
    logits = discriminator.decide(products)
    taken, caught = logits[: len(real)], logits[len(real) :]
    fooled, told_apart = generator_loss(caught), discriminator_loss(taken, caught)
    (by_generator,) = torch.autograd.grad(fooled, products, retain_graph=True)
    told_apart.backward()  # type: ignore[no-untyped-call]
    assert products.grad is not None
    with torch.no_grad():
        wide.judge_gradient(first, fake, real, products.grad, products)
    return {"adversarial": fooled.detach(), "discriminator": told_apart.detach()}, by_generator[len(real) :]


def paired(fake: Tensor, features: Tensor, masked: HiddenNodes) -> Tensor:
    """(p,) hidden neighbours in the order in which each node's draws come closest to them (`pairing: hungarian`)."""
    parent, target = masked.parent.cpu().numpy(), masked.target.cpu().numpy()
    column = np.searchsorted(masked.hidden.cpu().numpy(), target)
    error = torch.cdist(fake, features[masked.hidden]).square().cpu().numpy()
    chosen: NDArray[np.int64] = target.copy()
    for place in np.split(np.arange(len(parent)), np.flatnonzero(np.diff(parent)) + 1):
        if len(place) > 1:
            draw, met = linear_sum_assignment(error[np.ix_(place, column[place])])
            chosen[place[draw]] = target[place[met]]
    return torch.from_numpy(chosen).to(masked.target.device)
