"""What trains a generator of missing neighbours: a stage that the methods which use it share."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.methods.method import Method


@dataclass(frozen=True)
class Inpainter:
    """A way to train a generator.

    Attributes:
        name: slug of its stages.
        settings: a frozen dataclass, every field made with `runtime.settings.setting`.
        train: `module:function`, `(InpaintingInputs, settings, Run) -> TrainedGenerator`.
        load: `module:function`, `(InpaintingInputs, settings, ArrayFile, Run) -> NodeGenerator`.
        shared_tensors: every kind of tensor that may leave an institution: name -> its axes.
        max_generated: the setting that bounds the generated nodes of one subject; empty: nothing does but the cap.
    """

    name: str
    settings: type
    train: str
    load: str
    shared_tensors: Mapping[str, tuple[str, ...]]
    max_generated: str = ""


def inpainter_of(method: Method) -> Inpainter | None:
    """What trains the generator whose nodes a method needs; None where it needs none."""
    found = method.options.get("inpainting")
    assert found is None or isinstance(found, Inpainter)
    return found
