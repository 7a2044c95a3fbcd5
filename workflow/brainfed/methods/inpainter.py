"""What trains a generator of missing neighbours: a stage that the methods which use it share."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.inpainting.crossings import DISCRIMINATOR_CROSSES, GENERATOR_CROSSES
from brainfed.inpainting.fedsage_crossings import FEDSAGE_CROSSES
from brainfed.inpainting.fedsage_settings import FedSageSettings
from brainfed.inpainting.settings import InpaintingSettings


@dataclass(frozen=True)
class Inpainter:
    """A way to train a generator.

    Attributes:
        name: slug of its stages.
        settings: a frozen dataclass, every field made with `runtime.settings.setting`.
        train: `module:function`, `(InpaintingInputs, settings, Run) -> TrainedGenerator`.
        load: `module:function`, `(InpaintingInputs, settings, ArrayFile, Run) -> NodeGenerator`.
        crosses: every kind of tensor that may leave an institution: name -> its axes.
    """

    name: str
    settings: type
    train: str
    load: str
    crosses: Mapping[str, tuple[str, ...]]


FEDNI = Inpainter(
    name="fedni",
    settings=InpaintingSettings,
    train="brainfed.inpainting.fedni:train",
    load="brainfed.inpainting.drawing:load",
    crosses={**GENERATOR_CROSSES, **DISCRIMINATOR_CROSSES},
)

FEDSAGE = Inpainter(
    name="fedsage",
    settings=FedSageSettings,
    train="brainfed.inpainting.fedsage:train",
    load="brainfed.inpainting.fedsage:load",
    crosses=FEDSAGE_CROSSES,
)
