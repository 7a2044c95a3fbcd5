"""One local epoch of all institutions at once, for a GPU (FedNI Algorithm 1, line 21)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, elu, normalize, one_hot, relu, rms_norm, softplus

from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni._adversarial_step import LENGTHS, balanced
from brainfed.inpainting.fedni._losses import carried, gradient_of
from brainfed.inpainting.fedni._masking import DrawnMask, Institution, Mask, visible_degree
from brainfed.models import ENCODER, EPSILON, FEATURE, FIRST_WEIGHT, PHENOTYPE, SEXES, Products
from brainfed.models import WIDTHS as DISCRIMINATOR
from brainfed.runtime import Float64

# The masks of all institutions in one local epoch as padded tensors, copied to the GPU once a round.

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
    on_nodes = torch.from_numpy(of_nodes).to(like).unbind(dim=2)
    on_hidden, on_pairs = (torch.from_numpy(array).to(like.device).unbind(dim=2) for array in (of_hidden, of_pairs))
    tensors = dict(zip(("visible", "missing", "degree"), on_nodes, strict=True))
    tensors |= dict(zip(("hidden", "is_hidden"), on_hidden, strict=True))
    tensors |= dict(zip(("parent", "target", "is_pair"), on_pairs, strict=True))
    tensors |= {name: tensors[name].to(like.dtype) for name in ("is_hidden", "is_pair")} | {"noise": noise.to(like)}
    return [
        StackedMasks(
            **{name: tensor[epoch] for name, tensor in tensors.items()},
            pairs=int(of_pairs[epoch, :, -1].sum()),
            hidden_nodes=int(of_hidden[epoch, :, -1].sum()),
        )
        for epoch in range(len(every))
    ]


def _mask(drawn: DrawnMask) -> Mask:
    assert drawn.mask is not None
    return drawn.mask


def _of_nodes(institution: Institution, mask: Mask) -> Float64:
    """(3, n) visible, missing, degree."""
    count = len(institution.members)
    is_visible = np.ones(count, dtype=np.bool_)
    is_visible[mask.hidden] = False
    missing = np.bincount(mask.visible, minlength=count)
    return np.stack([is_visible, missing * is_visible, visible_degree(institution.edges, is_visible)])


# The discriminators of all institutions at once: spectral normalisation, losses and gradients.

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

        FedNI eq. 9 and 11, as in `_losses`. Writes the discriminators' gradients.

        Args:
            fake: (M, p, d) generated features.
            real: (M, h, d) features of hidden nodes.
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
        hidden = relu(products + self.weights["judge_0.bias"][:, None])
        hidden = relu(hidden @ self._spectral("judge_1").mT + self.weights["judge_1.bias"][:, None])
        logits = (hidden @ self._spectral("judge_2").mT + self.weights["judge_2.bias"][:, None])[:, :, 0]
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


# One local epoch of all institutions at once, for a GPU (FedNI Algorithm 1, line 21).
#
# A step of one institution starts 400 kernels that are short beside what it takes Python to start them. Here an
# institution is an entry of a batched product. The arithmetic is that of `_adversarial_step`; sums over padded pairs
# and nodes leave padding out. No value crosses from one institution to another; sizes of padding do, and may change the
# last bits of a product.

MOMENTUM, EPSILON_OF_NORMAL = 0.1, 1e-5
"""Of `torch.nn.BatchNorm1d`."""


@dataclass(frozen=True)
class StackedNodes:
    """Subjects of M institutions, padded to n.

    Attributes:
        features: (M, n, d).
        adjacency: (M, n, n) with self-loops.
        sex: (M, n) codes, -1 unknown.
        age: (M, n) normalised, NaN unknown.
        subjects: number of subjects of all institutions.
    """

    features: Tensor
    adjacency: Tensor
    sex: Tensor
    age: Tensor
    subjects: int

    def rows(self, places: Tensor) -> Tensor:
        """(M, p, d) features of nodes (M, p)."""
        return self.features[self._institution(places), places]

    def phenotypes(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Sex and age (M, p) of nodes (M, p)."""
        institution = self._institution(places)
        return self.sex[institution, places], self.age[institution, places]

    def _institution(self, places: Tensor) -> Tensor:
        return torch.arange(len(places), device=places.device)[:, None]


@dataclass(frozen=True)
class StackedStep:
    """Losses and gradients of one local epoch.

    Attributes:
        generator: weights by name; gradients of those with an axis of d are overwritten.
        moments: running means and variances of its batch normalisation, updated in place.
        discriminators: of all institutions, if there are any.
        sex, age: whether the phenotype head predicts them.
        products: number format of the wide products, and their count.
    """

    generator: Stacks
    moments: Stacks
    discriminators: StackedDiscriminators | None
    sex: bool
    age: bool
    nodes: StackedNodes
    settings: InpaintingSettings
    k: int
    products: Products

    def __call__(self, masks: StackedMasks) -> dict[str, Tensor]:
        """The losses and lengths of `_adversarial_step.train_step`, (M,) each."""
        counted_before = self.products.operations
        weights, features = self.generator, self.nodes.features
        first = weights["encoder_0.weight"]
        with torch.no_grad():
            product = features.new_empty(*features.shape[:2], first.shape[1])
            self.products.write_each(features, first.mT, product)
        product.requires_grad_()
        embedding = self._embedding(product, masks)
        counted = self._count_loss(embedding, masks)
        chosen = one_hot(masks.parent, features.shape[1]).to(embedding.dtype) * masks.is_pair[:, :, None]
        expanded = self._expanded(chosen @ embedding, masks)
        losses, back = self._wide(expanded.detach(), masks)
        (counted.sum() + carried(back, expanded)).backward()  # type: ignore[no-untyped-call]
        assert product.grad is not None
        with torch.no_grad():
            self.products.write(product.grad.mT, features, gradient_of(first))
        # Padding is no work.
        self.products.operations = counted_before + self._operations(masks)
        return {"count": counted.detach(), **losses}

    def _embedding(self, product: Tensor, masks: StackedMasks) -> Tensor:
        """(M, n, 64), FedNI eq. 5 on the visible graphs."""
        weights, kept = self.generator, masks.visible
        adjacency = kept[:, :, None] * self.nodes.adjacency * kept[:, None, :]
        scale = adjacency.sum(dim=2).clamp(min=0).rsqrt()
        scale = torch.where(torch.isfinite(scale), scale, 0)
        propagation = scale[:, :, None] * adjacency * scale[:, None, :]
        hidden = elu(propagation @ product + weights["encoder_0.bias"][:, None])
        return elu(propagation @ (hidden @ weights["encoder_1.weight"].mT) + weights["encoder_1.bias"][:, None])

    def _count_loss(self, embedding: Tensor, masks: StackedMasks) -> Tensor:
        """(M,) squared error of predicted shares of k, as `_losses.count_loss`."""
        weights, known = self.generator, embedding
        if weights["count.weight"].shape[2] > ENCODER[1]:
            known = torch.cat([rms_norm(embedding.detach(), ENCODER[1:]), masks.degree.log1p()[:, :, None]], dim=2)
        logits = known @ weights["count.weight"].mT + weights["count.bias"][:, None]
        squares = (logits[:, :, 0].sigmoid() - masks.missing.clamp(max=self.k) / self.k) ** 2
        return mean_of(squares, masks.visible)

    def _expanded(self, rows: Tensor, masks: StackedMasks) -> Tensor:
        """(M, p, 256) inputs of the last feature layer; 0 in padding."""
        weights, expanded = self.generator, torch.cat([rows, masks.noise], dim=2)
        for layer in range(len(FEATURE)):
            linear = expanded @ weights[f"feature_{layer}.weight"].mT + weights[f"feature_{layer}.bias"][:, None]
            expanded = self._normal(relu(linear), f"normal_{layer}", masks.is_pair)
        return expanded * masks.is_pair[:, :, None]

    def _normal(self, values: Tensor, name: str, there: Tensor) -> Tensor:
        """Batch normalisation over pairs, as `torch.nn.BatchNorm1d` in training."""
        count, within = there.sum(dim=1)[:, None], there[:, :, None]
        mean = (values * within).sum(dim=1) / count
        centred = (values - mean[:, None]) * within
        variance = centred.square().sum(dim=1) / count
        with torch.no_grad():
            unbiased = variance * count / (count - 1)
            for moment, value in (("mean", mean), ("var", unbiased)):
                self.moments[f"{name}.running_{moment}"].lerp_(value, MOMENTUM)
        scaled = centred * (variance + EPSILON_OF_NORMAL).rsqrt()[:, None]
        return scaled * self.generator[f"{name}.weight"][:, None] + self.generator[f"{name}.bias"][:, None]

    def _wide(self, source: Tensor, masks: StackedMasks) -> tuple[dict[str, Tensor], Tensor]:
        """Losses of the generated features, and the gradient of the generator's losses by `source` (M, p, 256)."""
        weights, products, there = self.generator, self.products, masks.is_pair[:, :, None]
        losses: dict[str, Tensor] = {}
        with torch.no_grad():
            wide = weights["feature_2.weight"]
            fake = source.new_empty(*source.shape[:2], wide.shape[1])
            products.write(source, wide.mT, fake)
            fake.add_(weights["feature_2.bias"][:, None]).tanh_()
            squared = fake.new_zeros(3, len(fake))
            total = (fake - self.nodes.rows(masks.target)).mul_(there)
            numbers = masks.is_pair.sum(dim=1) * fake.shape[2]
            squared[0] = torch.linalg.vector_norm(total, dim=(1, 2)) ** 2
            by_heads: list[Tensor | None] = [None, None]
        if self.discriminators is not None:
            adversarial, upstream = self.discriminators(fake, self.nodes.rows(masks.hidden), masks)
            losses |= adversarial
            with torch.no_grad():
                by_heads[0] = by_discriminators = torch.empty_like(fake)
                products.write(upstream, self.discriminators.weights[FIRST_WEIGHT], by_discriminators)
        if self.sex or self.age:
            losses["phenotype"], upstream = self._phenotype(fake, masks)
            with torch.no_grad():
                head = weights["phenotype_0.weight"]
                by_heads[1] = by_head = torch.empty_like(fake)
                products.write(upstream, head, by_head)
                products.write(upstream.mT, fake, gradient_of(head))
        with torch.no_grad():
            weight = 1 if self.settings.reconstruction == "mean" else fake.shape[2]
            scale = 2 * weight / numbers
            for row, gradient in enumerate(by_heads, 1):
                if gradient is not None:
                    squared[row] = torch.linalg.vector_norm(gradient, dim=(1, 2)) ** 2
            lengths = squared.sqrt()
            lengths[0] *= scale
            factors = balanced(self.settings, lengths)
            total *= (scale * factors[0])[:, None, None]
            for factor, gradient in zip(factors[1:], by_heads, strict=True):
                if gradient is not None:
                    total.addcmul_(gradient, factor[:, None, None])
            total.addcmul_(total, fake.square(), value=-1)
            products.write(total.mT, source, gradient_of(wide))
            torch.sum(total, dim=1, out=gradient_of(weights["feature_2.bias"]))
            back = torch.empty_like(source)
            products.write_each(total, wide, back)
        present = (True, *(gradient is not None for gradient in by_heads))
        shown = {
            name: length for name, length, is_there in zip(LENGTHS, lengths * factors, present, strict=True) if is_there
        }
        return {"reconstruction": squared[0] / numbers, **losses, **shown}, back

    def _phenotype(self, fake: Tensor, masks: StackedMasks) -> tuple[Tensor, Tensor]:
        """L_pheno (M,), FedNI eq. 12, and its gradient by the head's first products (M, p, 32)."""
        weights = self.generator
        product = fake.new_empty(*fake.shape[:2], PHENOTYPE)
        with torch.no_grad():
            self.products.write_each(fake, weights["phenotype_0.weight"].mT, product)
        product.requires_grad_()
        hidden = relu(product + weights["phenotype_0.bias"][:, None])
        outputs = hidden @ weights["phenotype_1.weight"].mT + weights["phenotype_1.bias"][:, None]
        sex, age = self.nodes.phenotypes(masks.target)
        loss = fake.new_zeros(len(fake))
        if self.sex:
            missed = cross_entropy(outputs[:, :, :SEXES].mT, sex, ignore_index=-1, reduction="none")
            loss = loss + mean_of(missed, masks.is_pair * (sex >= 0))
        if self.age:
            known = masks.is_pair * ~torch.isnan(age)
            loss = loss + mean_of((outputs[:, :, -1] - age.nan_to_num(nan=0.0)) ** 2, known)
        loss.sum().backward()  # type: ignore[no-untyped-call]
        assert product.grad is not None
        return loss.detach(), product.grad

    def _operations(self, masks: StackedMasks) -> int:
        """Multiplications and additions of the wide products, as `Products` counts those of one institution."""
        discriminator = 0 if self.discriminators is None else DISCRIMINATOR[0]
        head = PHENOTYPE * (self.sex or self.age)
        of_pairs = 3 * FEATURE[1] + 3 * discriminator + 3 * head
        each = 2 * ENCODER[0] * self.nodes.subjects + of_pairs * masks.pairs + 2 * discriminator * masks.hidden_nodes
        return 2 * self.nodes.features.shape[2] * each
