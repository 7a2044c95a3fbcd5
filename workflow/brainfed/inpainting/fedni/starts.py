"""Initial networks: the same weights in every institution and every strategy."""

from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.discriminator import Discriminator
from brainfed.models.generator import Generator
from brainfed.runtime.seeded import seeded

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
