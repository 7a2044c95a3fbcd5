"""Where training starts: the same weights in every institution and every strategy."""

import torch

from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.models.discriminator import Discriminator
from brainfed.models.generator import Generator


def new_generator(inputs: InpaintingInputs) -> Generator:
    """The generator that every institution starts from: torch's own initial weights from a keyed stream."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(inputs.streams.key("generator-start", inputs.part))
        return Generator(
            inputs.features.shape[1],
            sex="sex" in inputs.graph_settings.phenotypes,
            age="age" in inputs.graph_settings.phenotypes,
        )


def new_discriminator(inputs: InpaintingInputs) -> Discriminator:
    """The discriminator that every institution starts from."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(inputs.streams.key("discriminator-start", inputs.part))
        return Discriminator(inputs.features.shape[1])
