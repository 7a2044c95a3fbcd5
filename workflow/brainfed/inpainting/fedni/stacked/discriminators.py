"""The discriminators of all institutions at once: spectral normalisation, losses and gradients."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, relu, softplus

from brainfed.inpainting.fedni.stacked.masks import StackedMasks
from brainfed.inpainting.fedni.wide_layers import gradient_of
from brainfed.models.discriminator import EPSILON, FIRST_WEIGHT
from brainfed.models.products import Products

Stacks = Mapping[str, Tensor]
"""Name -> (M, ...) leaves with a gradient, or buffers."""


@dataclass(frozen=True)
class StackedDiscriminators:
    """Discriminators of M institutions.

    Attributes:
        weights: by name; the gradient of the first is overwritten.
        vectors: of the spectral normalisation, updated in place.
        products: number format of the wide products, and their count.
    """

    weights: Stacks
    vectors: Stacks
    products: Products

    def __call__(self, fake: Tensor, real: Tensor, masks: StackedMasks) -> tuple[dict[str, Tensor], Tensor]:
        """L_gen and L_dis (M,), and the gradient of L_gen by fake @ W.T (M, p, 128).

        FedNI eq. 9 and 11, as in `losses`. Writes the discriminators' gradients.

        Args:
            fake: (M, p, d) generated features.
            real: (M, h, d) features of hidden nodes.
            masks: of the epoch.
        """
        with torch.no_grad():
            first = self.weights[FIRST_WEIGHT]
            left, right = self._vectors("judge_0")
            sigma = (left * (first @ right[:, :, None])[:, :, 0]).sum(dim=1)[:, None, None]
            both = fake.new_empty(len(fake), real.shape[1] + fake.shape[1], first.shape[1])
            self.products.write_each(real, first.mT, both[:, : real.shape[1]])
            self.products.write_each(fake, first.mT, both[:, real.shape[1] :])
            products = both / sigma
        products.requires_grad_()
        found = relu(products + self.weights["judge_0.bias"][:, None])
        found = relu(found @ self._spectral("judge_1").mT + self.weights["judge_1.bias"][:, None])
        logits = (found @ self._spectral("judge_2").mT + self.weights["judge_2.bias"][:, None])[:, :, 0]
        real_logits, fake_logits = logits.tensor_split((real.shape[1],), dim=1)
        deceiving = mean_of(softplus(-fake_logits), masks.is_pair)
        distinguishing = mean_of(softplus(-real_logits), masks.is_hidden) + mean_of(
            softplus(fake_logits), masks.is_pair
        )
        (by_generator,) = torch.autograd.grad(deceiving.sum(), products, retain_graph=True)
        distinguishing.sum().backward()  # type: ignore[no-untyped-call]
        assert products.grad is not None
        with torch.no_grad():
            scaled, gradient = products.grad / sigma, gradient_of(first)
            of_real, of_fake = scaled.tensor_split((real.shape[1],), dim=1)
            self.products.write(of_real.mT, real, gradient)
            self.products.add(of_fake.mT, fake, gradient)
            inner = (products.grad * products).sum(dim=(1, 2))[:, None, None] / sigma
            gradient.baddbmm_(left[:, :, None] * -inner, right[:, None, :])
        losses = {"adversarial": deceiving.detach(), "discriminator": distinguishing.detach()}
        return losses, by_generator[:, real.shape[1] :] / sigma

    @torch.no_grad()
    def _vectors(self, layer: str) -> tuple[Tensor, Tensor]:
        """Copies of u (M, rows) and v (M, columns) of a layer after one step of its power iteration."""
        weight = self.weights[f"{layer}.parametrizations.weight.original"]
        left, right = (self.vectors[f"{layer}.parametrizations.weight.0.{name}"] for name in ("_u", "_v"))
        left.copy_(normalize((weight @ right[:, :, None])[:, :, 0], dim=1, eps=EPSILON))
        right.copy_(normalize((weight.mT @ left[:, :, None])[:, :, 0], dim=1, eps=EPSILON))
        return left.clone(), right.clone()

    def _spectral(self, layer: str) -> Tensor:
        """(M, rows, columns) weights over their largest singular value, with a gradient."""
        left, right = self._vectors(layer)
        weight = self.weights[f"{layer}.parametrizations.weight.original"]
        sigma = (left * (weight @ right[:, :, None])[:, :, 0]).sum(dim=1)
        return weight / sigma[:, None, None]


def mean_of(values: Tensor, there: Tensor) -> Tensor:
    """(M,) means of the values (M, n) that are there; 0 where none is."""
    return (values * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)
