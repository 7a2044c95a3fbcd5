"""One local epoch of one institution (FedNI Algorithm 1, line 21), and the networks that it trains."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn.functional import one_hot

from brainfed.inpainting import InpaintingInputs, InpaintingSettings
from brainfed.inpainting.fedni._losses import (
    Phenotype,
    Upstream,
    WideLayers,
    carried,
    count_loss,
    discriminator_loss,
    generator_loss,
    phenotype_loss,
)
from brainfed.models import Discriminator, FirstWeight, Generator
from brainfed.runtime import Float64, IntArray, seeded

# Initial networks: the same weights in every institution and every strategy.

MIN_HIDDEN = 0.01
"""Smallest initial share of the count head: at 0 its logit would be infinite."""


def new_generator(inputs: InpaintingInputs, settings: InpaintingSettings) -> Generator:
    """The initial generator of every institution: torch's own initial weights from a keyed stream."""
    with seeded(inputs.streams.key("generator-start", inputs.part)):
        return Generator(
            inputs.features.shape[1],
            sex="sex" in inputs.graph_settings.phenotypes,
            age="age" in inputs.graph_settings.phenotypes,
            hidden=min(max((settings.hidden_least + settings.hidden_most) / 2, MIN_HIDDEN), 1 - MIN_HIDDEN),
            k=inputs.graph_settings.k,
            sees_degree=settings.count == "calibrated",
            proportional=settings.count == "calibrated" and inputs.graph_settings.scope == "global_cut",
        )


def new_discriminator(inputs: InpaintingInputs) -> Discriminator:
    """The initial discriminator of every institution."""
    with seeded(inputs.streams.key("discriminator-start", inputs.part)):
        return Discriminator(inputs.features.shape[1])


Module = TypeVar("Module", bound=nn.Module)


class StackedModules(Generic[Module]):
    """M copies of one module; their learnable tensors and buffers are views of tensors (M, ...).

    Args:
        make: builds the module; all institutions start from its weights.
    """

    def __init__(self, make: Callable[[], Module], institutions: int, device: torch.device, dtype: torch.dtype) -> None:
        first = make().to(device, dtype)
        self.modules = [first, *(deepcopy(first) for _ in range(institutions - 1))]
        self.weights = {name: _repeated(weight, institutions) for name, weight in first.named_parameters()}
        self.buffers = {
            name: _repeated(buffer, institutions)
            for name, buffer in first.named_buffers()
            if buffer.is_floating_point()
        }
        for number, module in enumerate(self.modules):
            for name, weight in module.named_parameters():
                weight.data = self.weights[name][number]
            for name, buffer in module.named_buffers():
                if name in self.buffers:
                    buffer.data = self.buffers[name][number]

    @property
    def parameters(self) -> int:
        """Number of parameters of one copy."""
        return sum(weight[0].numel() for weight in self.weights.values())

    def state(self, *, shared: bool) -> dict[str, NDArray[Any]]:
        """All tensors by name, (1, ...) where institutions share them."""
        kept = slice(0, 1) if shared else slice(None)
        return {name: stack[kept].cpu().numpy() for name, stack in (self.weights | self.buffers).items()}

    @torch.no_grad()
    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the tensors of a `state`."""
        for name, stack in (self.weights | self.buffers).items():
            stack.copy_(torch.from_numpy(state[name]))


def _repeated(tensor: Tensor, times: int) -> Tensor:
    return tensor.detach().unsqueeze(0).repeat(times, *(1 for _ in tensor.shape))


# One local epoch of one institution: losses and gradients of generator and discriminator (FedNI Algorithm 1, line 21).
#
# Both gradients are taken from the same generated features, before either network takes its step. `tests/reference`
# holds the plain version by autograd.

LOSSES = ("reconstruction", "adversarial", "count", "phenotype", "discriminator")
LENGTHS = ("reconstruction_gradient", "adversarial_gradient", "phenotype_gradient")
"""Frobenius norms of each loss's gradient by the generated features (p, d), the layer that the three share."""
MAX_STRETCH = 1e4
"""Largest factor that brings a gradient to the reconstruction's length (as in VQGAN)."""


@dataclass(frozen=True)
class Nodes:
    """One institution's subjects: features (n, d) in [-1, 1], and the targets of the phenotype head."""

    features: Tensor
    phenotype: Phenotype


@dataclass(frozen=True)
class MaskedGraph:
    """The incomplete graph G- of one mask, and its hidden nodes (FedNI Sec. III-B.1).

    Attributes:
        propagation: (n, n) normalised adjacency of the visible nodes; rows and columns of hidden nodes are 0.
        visible: (v,) visible nodes.
        missing: (v,) number of hidden neighbours of each.
        degree: (v,) number of visible neighbours of each.
        hidden: (h,) hidden nodes.
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
    masked: MaskedGraph,
    settings: InpaintingSettings,
    k: int,
    wide: WideLayers,
) -> dict[str, Tensor]:
    """Gradients of L_fea + L_num + L_pheno for the generator and of L_dis for the discriminator, in their buffers.

    FedNI eq. 10: L_fea = alpha L_rec + beta L_gen.

    Returns:
        the losses `LOSSES` and gradient lengths `LENGTHS` by name, on the device; those of a discriminator are missing
        where there is none. The reconstruction is a mean over features for every weight. Lengths include weights.
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
    (counted + carried(back, expanded)).backward()  # type: ignore[no-untyped-call]
    assert product.grad is not None
    with torch.no_grad():
        wide.encoder_gradient(generator, nodes.features, product.grad)
    return {"count": counted.detach(), **losses}


def _train_wide(
    generator: Generator,
    discriminator: Discriminator | None,
    nodes: Nodes,
    masked: MaskedGraph,
    settings: InpaintingSettings,
    wide: WideLayers,
    source: Tensor,
) -> tuple[dict[str, Tensor], Tensor]:
    """Losses of the generated features, and the gradient of the generator's losses by `source` (p, 256)."""
    first = None if discriminator is None else discriminator.first_weight()
    first_weight = None if first is None else first.original.detach()
    with torch.no_grad():
        fake, product, phenotype = wide.generate(generator, source, first_weight)
    target = paired(fake, nodes.features, masked) if settings.pairing == "hungarian" else masked.target
    losses: dict[str, Tensor] = {}
    phenotype_gradient = None
    if phenotype is not None:
        phenotype.requires_grad_()
        loss = phenotype_loss(
            generator.predict_phenotype(phenotype), nodes.phenotype.of(target), sex=generator.sex, age=generator.age
        )
        losses["phenotype"] = loss.detach()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        phenotype_gradient = torch.zeros_like(phenotype) if phenotype.grad is None else phenotype.grad
    product_gradient = None
    if discriminator is not None and first is not None and product is not None:
        adversarial, by_products = _adversarial_losses(
            discriminator, first, product, fake, nodes.features[masked.hidden], wide
        )
        product_gradient = by_products / first.sigma
        losses |= adversarial
    with torch.no_grad():
        weight = 1 if settings.reconstruction == "mean" else fake.shape[1]
        upstream = Upstream(target, weight, product_gradient, phenotype_gradient)
        by_features = wide.by_features(generator, fake, nodes.features, first_weight, upstream)
        weights = balanced(settings, by_features.lengths)
        back = wide.backward(generator, source, fake, upstream, by_features, weights)
    entering = {name: length * by for name, length, by in zip(LENGTHS, by_features.lengths, weights, strict=True)}
    present = (True, product_gradient is not None, phenotype_gradient is not None)
    shown = {name: length for (name, length), there in zip(entering.items(), present, strict=True) if there}
    return {"reconstruction": by_features.reconstruction, **losses, **shown}, back


def balanced(settings: InpaintingSettings, lengths: Tensor) -> Tensor:
    """Factors of the gradients of L_rec, L_gen and L_pheno: alpha, beta, 1, balanced where the settings say so.

    Args:
        lengths: (3,) of one institution, or (3, M).

    Returns:
        factors of the shape of `lengths`.
    """
    alike = (len(LENGTHS), *(1 for _ in lengths.shape[1:]))
    chosen = lengths.new_tensor([settings.alpha, settings.beta, 1.0]).view(alike).expand_as(lengths)
    if settings.reconstruction != "balanced":
        return chosen
    stretch = (lengths[0] / lengths).clamp(max=MAX_STRETCH)
    return chosen * torch.where(lengths > 0, stretch, 1)


def _adversarial_losses(
    discriminator: Discriminator, first: FirstWeight, product: Tensor, fake: Tensor, real: Tensor, wide: WideLayers
) -> tuple[dict[str, Tensor], Tensor]:
    """L_gen and L_dis, and the gradient of L_gen by the products of `fake` (p, 128); fills the discriminator's own."""
    with torch.no_grad():
        real_product = torch.empty(len(real), product.shape[1], device=real.device, dtype=real.dtype)
        wide.products.write(real, first.original.T, real_product)
        products = torch.cat([real_product, product]) / first.sigma
    products.requires_grad_()
    logits = discriminator.decide(products)
    real_logits, fake_logits = logits[: len(real)], logits[len(real) :]
    deceiving, distinguishing = generator_loss(fake_logits), discriminator_loss(real_logits, fake_logits)
    (by_generator,) = torch.autograd.grad(deceiving, products, retain_graph=True)
    distinguishing.backward()  # type: ignore[no-untyped-call]
    assert products.grad is not None
    with torch.no_grad():
        wide.discriminator_gradient(first, fake, real, products.grad, products)
    return {"adversarial": deceiving.detach(), "discriminator": distinguishing.detach()}, by_generator[len(real) :]


def paired(fake: Tensor, features: Tensor, masked: MaskedGraph) -> Tensor:
    """(p,) hidden neighbours, paired with each node's draws by the smallest total error (`pairing: hungarian`)."""
    parent, target = masked.parent.cpu().numpy(), masked.target.cpu().numpy()
    column = np.searchsorted(masked.hidden.cpu().numpy(), target)
    error = torch.cdist(fake, features[masked.hidden]).square().cpu().numpy()
    chosen: IntArray = target.copy()
    for place in np.split(np.arange(len(parent)), np.flatnonzero(np.diff(parent)) + 1):
        if len(place) > 1:
            draw, hidden = linear_sum_assignment(error[np.ix_(place, column[place])])
            chosen[place[draw]] = target[place[hidden]]
    return torch.from_numpy(chosen).to(masked.target.device)


MEASURES = (*LOSSES, *LENGTHS, "hidden_fraction")


def history_of(measures: Float64, institutions: Sequence[str]) -> pd.DataFrame:
    """Columns institution, round (from 1), loss (one of `MEASURES`) and value, from means (rounds, M, measures)."""
    rounds, count, kinds = measures.shape
    number, place, kind = (axis.ravel() for axis in np.indices((rounds, count, kinds)))
    return pd.DataFrame(
        {
            "institution": np.asarray(institutions, dtype=object)[place],
            "round": (number + 1).astype(np.int32),
            "loss": np.asarray(MEASURES, dtype=object)[kind],
            "value": measures.ravel(),
        }
    )
