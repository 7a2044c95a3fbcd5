"""Errors of a trained FedNI generator on fresh masks, without labels and without the cut edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.federation.privacy.weight_noise import normal
from brainfed.inpainting.fedni.institution import Institution, masked_graph
from brainfed.inpainting.fedni.masking import draw_mask
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.generator import NOISE, Generator
from brainfed.runtime.streams import Streams

MASKS = 20


@dataclass(frozen=True)
class HeldOut:
    """Means over fresh masks of one institution; None where no mask hides two edges, or the mean is not finite.

    Attributes:
        count_error: squared error of the predicted number of hidden neighbours.
        degree_error: the same of the multiple of the visible degree that fits these masks best.
        reconstruction: squared error of a generated feature, in the generator's units.
        mean_reconstruction: the same of the institution's mean in place of generated nodes.
        other_reconstruction: the same of random subjects of the institution in place of generated nodes.
        spread: standard deviation of generated features over nodes (root mean square over features), as a share of the
            hidden nodes'.
    """

    count_error: float | None
    degree_error: float | None
    reconstruction: float | None
    mean_reconstruction: float | None
    other_reconstruction: float | None
    spread: float | None


NOTHING_HIDDEN = HeldOut(*(None,) * 6)
"""Where no mask hides two edges."""


@torch.no_grad()
def held_out(
    institution: Institution, generator: Generator, settings: InpaintingSettings, k: int, part: str, streams: Streams
) -> HeldOut:
    """Compare the predictions of a generator in evaluation mode with the nodes that `MASKS` fresh masks hide."""
    features, own = institution.nodes.features, len(institution.members)
    mean, product = features.mean(dim=0), generator.project(features)
    predicted, missing, degree, errors, mean_errors, other_errors = ([] for _ in range(6))
    generated: list[Tensor] = []
    hidden: list[Tensor] = []
    for number in range(MASKS):
        random = streams.numpy("held-out-mask", part, institution.number, number)
        mask = draw_mask(institution.edges, int(random.integers(own)), random, settings)
        if len(mask.target) < 2:
            continue
        noise = normal(streams, (len(mask.target), NOISE), "held-out-noise", part, institution.number, number)
        masked = masked_graph(mask, institution, noise)
        embedding = generator.embed(product, masked.propagation)
        predicted.append(k * generator.missing(embedding[masked.visible], masked.degree))
        missing.append(masked.missing)
        degree.append(masked.degree)
        made = generator.generate(embedding[masked.parent], masked.noise)
        true = features[masked.target]
        errors.append((made - true).square().mean())
        mean_errors.append((mean - true).square().mean())
        others = torch.from_numpy((masked.target.cpu().numpy() + random.integers(1, own, len(true))) % own)
        other_errors.append((features[others.to(features.device)] - true).square().mean())
        generated.append(made)
        hidden.append(true)
    if not predicted:
        return NOTHING_HIDDEN
    count, seen = torch.cat(missing), torch.cat(degree)
    slope = (count * seen).sum() / seen.square().sum()
    return HeldOut(
        _finite((torch.cat(predicted) - count).square().mean()),
        _finite((slope * seen - count).square().mean()),
        _finite(torch.stack(errors).mean()),
        _finite(torch.stack(mean_errors).mean()),
        _finite(torch.stack(other_errors).mean()),
        _finite(_spread(generated) / _spread(hidden)),
    )


def _finite(value: Tensor) -> float | None:
    return float(value) if bool(torch.isfinite(value)) else None


def _spread(pieces: Sequence[Tensor]) -> Tensor:
    """() root mean square over features of the standard deviation over rows."""
    return torch.cat(list(pieces)).var(dim=0, unbiased=False).mean().sqrt()
