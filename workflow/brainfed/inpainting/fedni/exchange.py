"""What institutions exchange in federated inpainting: four strategies (FedNI Fig. 3)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from brainfed.federation.aggregation import average
from brainfed.federation.exchange import DIRECTIONS, Ledger
from brainfed.federation.privacy import add_weight_noise
from brainfed.inpainting.fedni.crossings import DISCRIMINATOR_CROSSES, GENERATOR_CROSSES
from brainfed.inpainting.fedni.institution import Institution
from brainfed.inpainting.fedni.stacked_modules import StackedModules
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.discriminator import WIDTHS, Discriminator
from brainfed.models.generator import ENCODER, FEATURE, NOISE, PHENOTYPE, Generator
from brainfed.runtime.streams import Streams

SPECTRAL_BUFFERS = ("_u", "_v")


def crossings_by(settings: InpaintingSettings) -> dict[str, tuple[str, ...]]:
    """What may cross under these settings: name -> axes."""
    crosses: dict[str, tuple[str, ...]] = {}
    if settings.federated in ("generator", "both"):
        crosses |= GENERATOR_CROSSES
    if settings.federated in ("discriminator", "both"):
        crosses |= DISCRIMINATOR_CROSSES
    return crosses


def axes_of(features: int, generator: Generator) -> dict[str, int]:
    """Sizes of the axes on the wire."""
    outputs = {"phenotypes": generator.phenotype_1.out_features} if generator.predicts_phenotypes else {}
    return {
        "features": features,
        "encoder-0": ENCODER[0],
        "encoder-1": ENCODER[1],
        "embedding-and-degree": ENCODER[1] + generator.sees_degree,
        "embedding-and-noise": ENCODER[1] + NOISE,
        "feature-0": FEATURE[0],
        "feature-1": FEATURE[1],
        "phenotype-0": PHENOTYPE,
        "judge-0": WIDTHS[0],
        "judge-1": WIDTHS[1],
        "one": 1,
        **outputs,
    }


def exchange_weights(
    generators: StackedModules[Generator],
    discriminators: StackedModules[Discriminator] | None,
    institutions: Sequence[Institution],
    settings: InpaintingSettings,
    streams: Streams,
    part: str,
    number: int,
    ledger: Ledger,
) -> None:
    """Noise, upload, average with equal weights, broadcast: whatever the strategy lets cross.

    Noise goes on learnable weights, never on batch normalisation's running moments, which are averaged.
    Spectral normalisation's vectors are no weights and stay where they are.
    """
    fold = -1 if part == "all" else int(part.removeprefix("fold-"))
    if settings.federated in ("generator", "both"):
        _average(generators.weights, generators.buffers, institutions, settings.noise, streams, fold, number, ledger)
    if settings.federated in ("discriminator", "both") and discriminators is not None:
        _average(discriminators.weights, {}, institutions, settings.noise, streams, fold, number, ledger)


@torch.no_grad()
def _average(
    weights: Mapping[str, Tensor],
    buffers: Mapping[str, Tensor],
    institutions: Sequence[Institution],
    noise: float,
    streams: Streams,
    fold: int,
    number: int,
    ledger: Ledger,
) -> None:
    stacks = {wire_name(name): stack.unsqueeze(1) for name, stack in weights.items()}
    add_weight_noise(stacks, noise, streams, number, [fold])
    stacks |= {wire_name(name): stack.unsqueeze(1) for name, stack in buffers.items()}
    for name, stack in stacks.items():
        for institution in institutions:
            for direction in DIRECTIONS:
                ledger.record(
                    name,
                    stack.shape[2:],
                    stack.element_size(),
                    direction=direction,
                    round_index=number,
                    institution=institution.number,
                    subjects=len(institution.members),
                )
    equal = torch.full((len(institutions), 1), 1 / len(institutions), dtype=torch.float64)
    for name, mean in average(stacks, equal).items():
        stacks[name].copy_(mean)


def wire_name(name: str) -> str:
    """What a module's tensor is called on the wire: spectral normalisation's original is the weight."""
    return name.replace("parametrizations.weight.original", "weight")
