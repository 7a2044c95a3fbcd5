"""The layers of generator and discriminator that are d wide, in blocks of features that stay in the cache.

With d = 19,900 connections these layers are nearly all of the arithmetic, and a pass over (p, d) numbers
in memory costs as much as a tenth of a product. So each block of generated features is made, passed to both heads
and later differentiated while it is in the cache. Gradient buffers live as long as the job.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from brainfed.models.discriminator import FirstWeight
from brainfed.models.generator import PHENOTYPE, Generator
from brainfed.models.products import Products

CPU_BLOCK = 1024


@dataclass(frozen=True)
class Upstream:
    """Gradients that reach the generated features.

    Attributes:
        target: (p,) rows of X, the targets of the generated features (p, d).
        weight: of the mean squared error over pairs and features, a number or a tensor ().
        adversarial: (p, 128) gradient of L_gen by fake @ first_weight.T; None without a discriminator.
        phenotype: (p, 32) gradient of L_pheno by the phenotype head's first product; None without a head.
        unweighted_phenotype: (p, 32) the same for the weights of the head itself.
    """

    target: Tensor
    weight: float | Tensor
    adversarial: Tensor | None
    phenotype: Tensor | None
    unweighted_phenotype: Tensor | None = None

    def weighted(self, reconstruction: Tensor, adversarial: Tensor, phenotype: Tensor) -> "Upstream":
        """The three gradients, each multiplied by a number ()."""
        return Upstream(
            self.target,
            self.weight * reconstruction,
            None if self.adversarial is None else self.adversarial * adversarial,
            None if self.phenotype is None else self.phenotype * phenotype,
            self.phenotype,
        )


@dataclass
class WideLayers:
    """Forward and backward of the wide layers of one device; one object serves all institutions."""

    products: Products
    block: int = CPU_BLOCK
    _fake: Tensor = field(default_factory=lambda: torch.empty(0, 0))

    def generate(
        self, generator: Generator, source: Tensor, first_weight: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Generate features, and the first products of discriminator and phenotype head.

        Args:
            generator: its last feature layer and first phenotype layer are used.
            source: (p, 256) from `Generator.expand`.
            first_weight: (128, d) the discriminator's first weight, or None.

        Returns:
            features (p, d), which the next call overwrites; their products (p, 128) with `first_weight`, and (p, 32)
            with the phenotype head.
        """
        weight, bias = generator.feature_2.weight, generator.feature_2.bias
        fake = self._room(len(source), weight)
        product = None if first_weight is None else source.new_zeros(len(source), len(first_weight))
        phenotype = source.new_zeros(len(source), PHENOTYPE) if generator.predicts_phenotypes else None
        for block in self._blocks(len(weight)):
            made = fake[:, block]
            self.products.write(source, weight[block].T, made)
            made.add_(bias[block]).tanh_()
            if product is not None and first_weight is not None:
                self.products.add(made, first_weight[:, block].T, product)
            if phenotype is not None:
                self.products.add(made, generator.phenotype_0.weight[:, block].T, phenotype)
        return fake, product, phenotype

    def lengths(
        self, generator: Generator, fake: Tensor, features: Tensor, first_weight: Tensor | None, upstream: Upstream
    ) -> Tensor:
        """Frobenius norms (3,) of the gradients of L_rec, L_gen and L_pheno by the generated features (p, d).

        Args:
            generator: as in `generate`.
            fake: (p, d) from `generate`.
            features: (n, d) of the real nodes.
            first_weight: as in `generate`.
            upstream: gradients of the losses.
        """
        squared = fake.new_zeros(3)
        for block in self._blocks(fake.shape[1]):
            error = fake[:, block] - features[:, block].index_select(0, upstream.target)
            squared[0] += torch.linalg.vector_norm(error) ** 2
            gradient = torch.empty_like(error)
            if upstream.adversarial is not None and first_weight is not None:
                self.products.write(upstream.adversarial, first_weight[:, block], gradient)
                squared[1] += torch.linalg.vector_norm(gradient) ** 2
            if upstream.phenotype is not None:
                self.products.write(upstream.phenotype, generator.phenotype_0.weight[:, block], gradient)
                squared[2] += torch.linalg.vector_norm(gradient) ** 2
        lengths = squared.sqrt()
        lengths[0] *= 2 * upstream.weight / fake.numel()
        return lengths

    def backward(
        self,
        generator: Generator,
        source: Tensor,
        fake: Tensor,
        features: Tensor,
        first_weight: Tensor | None,
        upstream: Upstream,
    ) -> tuple[Tensor, Tensor]:
        """L_rec, and the gradients of the wide generator layers behind the encoder.

        FedNI eq. 8: L_rec = sum over i and k in N_i of |x_k - x~_k|^2; here a mean over pairs and features.

        Args:
            generator: as in `generate`.
            source: as in `generate`.
            fake: (p, d) from `generate`.
            features: (n, d) of the real nodes.
            first_weight: as in `generate`.
            upstream: gradients of the losses.

        Returns:
            L_rec, and the gradient of all losses by `source` (p, 256).
        """
        weight = generator.feature_2.weight
        gradient, bias_gradient = gradient_of(weight), gradient_of(generator.feature_2.bias)
        back, squared = torch.zeros_like(source), source.new_zeros(())
        scale = 2 * upstream.weight / fake.numel()
        for block in self._blocks(len(weight)):
            made = fake[:, block]
            error = made - features[:, block].index_select(0, upstream.target)
            squared += torch.linalg.vector_norm(error) ** 2
            error.mul_(scale)
            if upstream.adversarial is not None and first_weight is not None:
                self.products.add(upstream.adversarial, first_weight[:, block], error)
            if upstream.phenotype is not None:
                head = generator.phenotype_0.weight
                self.products.add(upstream.phenotype, head[:, block], error)
                unweighted_phenotype = (
                    upstream.phenotype if upstream.unweighted_phenotype is None else upstream.unweighted_phenotype
                )
                self.products.write(unweighted_phenotype.T, made, gradient_of(head)[:, block])
            error.addcmul_(error, made.square(), value=-1)
            self.products.write(error.T, source, gradient[block])
            torch.sum(error, dim=0, out=bias_gradient[block])
            self.products.add(error, weight[block], back)
        return squared / fake.numel(), back

    def discriminator_gradient(
        self, first: FirstWeight, fake: Tensor, real: Tensor, upstream: Tensor, products: Tensor
    ) -> None:
        """The gradient of the discriminator's first weight W, written into its buffer.

        With G the gradient by W / sigma: G / sigma - <G, W> / sigma^2 u v^T, and <G, W> / sigma is the inner
        product of `upstream` and `products`.

        Args:
            first: the weight in parts.
            fake: (p, d).
            real: (h, d).
            upstream: (h + p, 128) gradients of the loss by `products`.
            products: (h + p, 128) of the real, then the generated features with W / sigma.
        """
        gradient = gradient_of(first.original)
        scaled = upstream / first.sigma
        for block in self._blocks(fake.shape[1]):
            self.products.write(scaled[len(real) :].T, fake[:, block], gradient[:, block])
            self.products.add(scaled[: len(real)].T, real[:, block], gradient[:, block])
        inner = torch.dot(upstream.flatten(), products.flatten()) / first.sigma
        gradient.addr_(first.left * -inner, first.right)

    def _blocks(self, width: int) -> Iterator[slice]:
        for start in range(0, width, self.block):
            yield slice(start, min(start + self.block, width))

    def _room(self, pairs: int, like: Tensor) -> Tensor:
        """A buffer (pairs, d), kept between calls."""
        if len(self._fake) < pairs or self._fake.dtype != like.dtype:
            self._fake = like.new_empty(pairs + pairs // 4, len(like))
        return self._fake[:pairs]


def gradient_of(parameter: Tensor) -> Tensor:
    """The parameter's gradient buffer, allocated at its first use."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter)
    return parameter.grad
