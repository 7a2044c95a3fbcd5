"""Losses of FedNI's generator and discriminator: eq. 6, 8, 9, 11 and 12, and their gradients in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from brainfed.models import PHENOTYPE, SEXES, FirstWeight, Generator, Products


def carried(gradient: Tensor, tensor: Tensor) -> Tensor:
    """A loss () whose gradient by `tensor` is `gradient`, both of one shape.

    `tensor.backward(gradient)` gives the same numbers, but imports SymPy, which takes each job about a second.
    """
    assert gradient.shape == tensor.shape, (gradient.shape, tensor.shape)
    return (tensor * gradient).sum()


# Losses of FedNI's count head, discriminator and phenotype head; the reconstruction's stands with its layer below.
#
# The adversarial losses as printed have no lower bound: they are the usual ones with exchanged labels. Here they are
# binary cross-entropies with logits, real 1 and generated 0, and the generator's is non-saturating.


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


# The layers of generator and discriminator that are d wide, in blocks of features that stay in the cache.
#
# With d = 19,900 connections these layers are nearly all of the arithmetic, and a pass over (p, d) numbers in memory
# costs as much as a tenth of a product. So each block of generated features is made, passed to both heads and later
# differentiated while it is in the cache. Buffers of weights' gradients, of the generated features and of three
# gradients by them live as long as the job.

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


@dataclass(frozen=True)
class ByFeatures:
    """Gradients by the generated features (p, d), in blocks (p, block) of features.

    Attributes:
        reconstruction: L_rec ().
        lengths: (3,) Frobenius norms of the gradients of L_rec, L_gen and L_pheno.
        scale: of the gradient of L_rec over `error`.
        error: generated minus true features.
        adversarial, phenotype: gradients of L_gen and L_pheno; None without a discriminator, or a phenotype head.
    """

    reconstruction: Tensor
    lengths: Tensor
    scale: float
    error: list[Tensor]
    adversarial: list[Tensor] | None
    phenotype: list[Tensor] | None


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
        fake = self._room("fake", len(source) * len(weight), weight).view(len(source), -1)
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
    ) -> ByFeatures:
        """Gradients of L_rec, L_gen and L_pheno by the generated features; the next call overwrites them.

        FedNI eq. 8: L_rec = sum over i and k in N_i of |x_k - x~_k|^2; here a mean over pairs and features.

        Args:
            generator: as in `generate`.
            fake: (p, d) from `generate`.
            features: (n, d) of the real nodes.
            first_weight: as in `generate`.
        """
        squared = fake.new_zeros(3)
        error = self._kept("error", fake)
        adversarial = phenotype = None
        if upstream.adversarial is not None and first_weight is not None:
            adversarial = self._kept("adversarial", fake)
        if upstream.phenotype is not None:
            phenotype = self._kept("phenotype", fake)
        for place, block in enumerate(self._blocks(fake.shape[1])):
            torch.sub(fake[:, block], features[:, block].index_select(0, upstream.target), out=error[place])
            squared[0] += torch.linalg.vector_norm(error[place]) ** 2
            if adversarial is not None and upstream.adversarial is not None and first_weight is not None:
                self.products.write(upstream.adversarial, first_weight[:, block], adversarial[place])
                squared[1] += torch.linalg.vector_norm(adversarial[place]) ** 2
            if phenotype is not None and upstream.phenotype is not None:
                self.products.write(upstream.phenotype, generator.phenotype_0.weight[:, block], phenotype[place])
                squared[2] += torch.linalg.vector_norm(phenotype[place]) ** 2
        scale = 2 * upstream.weight / fake.numel()
        lengths = squared.sqrt()
        lengths[0] *= scale
        return ByFeatures(squared[0] / fake.numel(), lengths, scale, error, adversarial, phenotype)

    def backward(
        self,
        generator: Generator,
        source: Tensor,
        fake: Tensor,
        upstream: Upstream,
        by_features: ByFeatures,
        weights: Tensor,
    ) -> Tensor:
        """Write the gradients of the wide generator layers behind the encoder.

        Args:
            generator: as in `generate`.
            source: as in `generate`.
            fake: (p, d) from `generate`.
            by_features: from the function of this name; used up.
            weights: (3,) factors of L_rec, L_gen and L_pheno.

        Returns:
            the gradient of all losses by `source` (p, 256).
        """
        weight = generator.feature_2.weight
        gradient, bias_gradient = gradient_of(weight), gradient_of(generator.feature_2.bias)
        back = torch.zeros_like(source)
        others = [*zip(weights[1:], (by_features.adversarial, by_features.phenotype), strict=True)]
        for place, block in enumerate(self._blocks(len(weight))):
            made, total = fake[:, block], by_features.error[place]
            total.mul_(by_features.scale * weights[0])
            for factor, own in others:
                if own is not None:
                    total.addcmul_(own[place], factor)
            if upstream.phenotype is not None:
                head = gradient_of(generator.phenotype_0.weight)
                self.products.write(upstream.phenotype.T, made, head[:, block])
            total.addcmul_(total, made.square(), value=-1)
            self.products.write(total.T, source, gradient[block])
            torch.sum(total, dim=0, out=bias_gradient[block])
            self.products.add(total, weight[block], back)
        return back

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
            self.products.write(scaled.T, torch.cat([real[:, block], fake[:, block]]), gradient[:, block])
        inner = torch.dot(upstream.flatten(), products.flatten()) / first.sigma
        gradient.addr_(first.left * -inner, first.right)

    def encoder_gradient(self, generator: Generator, features: Tensor, upstream: Tensor) -> None:
        """The gradient of the encoder's first weight (256, d), written into its buffer.

        Args:
            features: (n, d) of the real nodes.
            upstream: (n, 256) gradient of the losses by features @ weight.T.
        """
        gradient = gradient_of(generator.encoder_0.weight)
        for block in _blocks(features.shape[1], self.encoder_block):
            self.products.write(upstream.T, features[:, block], gradient[:, block])

    def _blocks(self, width: int) -> Iterator[slice]:
        return _blocks(width, self.block)

    def _kept(self, name: str, like: Tensor) -> list[Tensor]:
        """Buffers (p, block) for all blocks of features, each in one piece of memory."""
        pairs, width = like.shape
        room = self._room(name, pairs * width, like)
        return [room[pairs * each.start : pairs * each.stop].view(pairs, -1) for each in self._blocks(width)]

    def _room(self, name: str, numbers: int, like: Tensor) -> Tensor:
        """A buffer of so many numbers, kept between calls."""
        kept = self._rooms.get(name)
        if kept is None or len(kept) < numbers or kept.dtype != like.dtype:
            kept = self._rooms[name] = like.new_empty(numbers + numbers // 4)
        return kept[:numbers]


def _blocks(width: int, size: int) -> Iterator[slice]:
    for start in range(0, width, size):
        yield slice(start, min(start + size, width))


def gradient_of(parameter: Tensor) -> Tensor:
    """The parameter's gradient buffer, allocated at its first use."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter)
    return parameter.grad
