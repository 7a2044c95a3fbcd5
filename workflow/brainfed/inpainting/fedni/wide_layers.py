"""The layers of generator and discriminator that are d wide, in blocks of features that stay in the cache.

With d = 19,900 connections these layers are nearly all of the arithmetic, and a pass over (p, d) numbers
in memory costs as much as a tenth of a product. So each block of generated features is made, passed to both heads
and later differentiated while it is in the cache. Gradient buffers live as long as the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from brainfed.models.discriminator import FirstWeight
from brainfed.models.generator import PHENOTYPE, Generator
from brainfed.models.products import Products

CPU_BLOCK = 1024
ENCODER_BLOCK = 512
"""Features of a block of the encoder's gradient on a CPU: 256 rows of it beside all nodes' features."""


@dataclass(frozen=True)
class Upstream:
    """Gradients that reach the generated features.

    Attributes:
        target: (p,) rows of X, the targets of the generated features (p, d).
        weight: of the mean squared error over pairs and features.
        adversarial: (p, 128) gradient of L_gen by fake @ first_weight.T; None without a discriminator.
        phenotype: (p, 32) gradient of L_pheno by the phenotype head's first product; None without a head.
    """

    target: Tensor
    weight: float
    adversarial: Tensor | None
    phenotype: Tensor | None


@dataclass
class WideLayers:
    """Forward and backward of the wide layers of one device; one object serves all institutions."""

    products: Products
    block: int = CPU_BLOCK
    encoder_block: int = ENCODER_BLOCK
    _rooms: dict[str, Tensor] = field(default_factory=dict)

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
        fake = self._room("fake", len(source), weight)
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

    def by_features(
        self, generator: Generator, fake: Tensor, features: Tensor, first_weight: Tensor | None, upstream: Upstream
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Gradients of L_rec, L_gen and L_pheno by the generated features (p, d).

        Args:
            generator: as in `generate`.
            fake: (p, d) from `generate`.
            features: (n, d) of the real nodes.
            first_weight: as in `generate`.
            upstream: gradients of the losses.

        Returns:
            Frobenius norms (3,) of the three gradients, and those of L_gen and L_pheno, (p, d) or None, which the next
            call overwrites.
        """
        squared = fake.new_zeros(3)
        weight = generator.feature_2.weight
        adversarial = phenotype = None
        if upstream.adversarial is not None and first_weight is not None:
            adversarial = self._room("adversarial", len(fake), weight)
        if upstream.phenotype is not None:
            phenotype = self._room("phenotype", len(fake), weight)
        for block in self._blocks(fake.shape[1]):
            error = fake[:, block] - features[:, block].index_select(0, upstream.target)
            squared[0] += torch.linalg.vector_norm(error) ** 2
            if adversarial is not None and upstream.adversarial is not None and first_weight is not None:
                self.products.write(upstream.adversarial, first_weight[:, block], adversarial[:, block])
                squared[1] += torch.linalg.vector_norm(adversarial[:, block]) ** 2
            if phenotype is not None and upstream.phenotype is not None:
                self.products.write(upstream.phenotype, generator.phenotype_0.weight[:, block], phenotype[:, block])
                squared[2] += torch.linalg.vector_norm(phenotype[:, block]) ** 2
        lengths = squared.sqrt()
        lengths[0] *= 2 * upstream.weight / fake.numel()
        return lengths, adversarial, phenotype

    def backward(
        self,
        generator: Generator,
        source: Tensor,
        fake: Tensor,
        features: Tensor,
        upstream: Upstream,
        weights: Tensor,
        by_features: Sequence[Tensor | None],
    ) -> tuple[Tensor, Tensor]:
        """L_rec, and the gradients of the wide generator layers behind the encoder.

        FedNI eq. 8: L_rec = sum over i and k in N_i of |x_k - x~_k|^2; here a mean over pairs and features.

        Args:
            generator: as in `generate`.
            source: as in `generate`.
            fake: (p, d) from `generate`.
            features: (n, d) of the real nodes.
            upstream: gradients of the losses.
            weights: (3,) factors of L_rec, L_gen and L_pheno.
            by_features: gradients of L_gen and L_pheno from the function of this name.

        Returns:
            L_rec, and the gradient of all losses by `source` (p, 256).
        """
        weight = generator.feature_2.weight
        gradient, bias_gradient = gradient_of(weight), gradient_of(generator.feature_2.bias)
        back, squared = torch.zeros_like(source), source.new_zeros(())
        scale = 2 * upstream.weight / fake.numel() * weights[0]
        for block in self._blocks(len(weight)):
            made = fake[:, block]
            error = made - features[:, block].index_select(0, upstream.target)
            squared += torch.linalg.vector_norm(error) ** 2
            error.mul_(scale)
            for factor, own in zip(weights[1:], by_features, strict=True):
                if own is not None:
                    error.addcmul_(own[:, block], factor)
            if upstream.phenotype is not None:
                head = gradient_of(generator.phenotype_0.weight)
                self.products.write(upstream.phenotype.T, made, head[:, block])
            error.addcmul_(error, made.square(), value=-1)
            self.products.write(error.T, source, gradient[block])
            torch.sum(error, dim=0, out=bias_gradient[block])
            self.products.add(error, weight[block], back)
        return squared / fake.numel(), back

    def encoder_gradient(self, generator: Generator, features: Tensor, upstream: Tensor) -> None:
        """The gradient of the encoder's first weight (256, d), written into its buffer.

        Args:
            generator: its encoder is used.
            features: (n, d) of the real nodes.
            upstream: (n, 256) gradient of the losses by features @ weight.T.
        """
        gradient = gradient_of(generator.encoder_0.weight)
        for block in _blocks(features.shape[1], self.encoder_block):
            self.products.write(upstream.T, features[:, block], gradient[:, block])

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
        return _blocks(width, self.block)

    def _room(self, name: str, pairs: int, like: Tensor) -> Tensor:
        """A buffer (pairs, d), kept between calls."""
        kept = self._rooms.get(name)
        if kept is None or len(kept) < pairs or kept.dtype != like.dtype:
            kept = self._rooms[name] = like.new_empty(pairs + pairs // 4, len(like))
        return kept[:pairs]


def _blocks(width: int, size: int) -> Iterator[slice]:
    for start in range(0, width, size):
        yield slice(start, min(start + size, width))


def gradient_of(parameter: Tensor) -> Tensor:
    """The parameter's gradient buffer, allocated at its first use."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter)
    return parameter.grad
