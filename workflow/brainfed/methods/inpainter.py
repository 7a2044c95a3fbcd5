"""Declaration of a stage that trains a generator of missing neighbours; several methods can share it."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.methods.method import Method


@dataclass(frozen=True)
class Inpainter:
    """One training algorithm of a generator.

    Attributes:
        name: slug of its stages.
        settings: a frozen dataclass, every field made with `runtime.settings.setting`.
        train: `module:function`, `(InpaintingInputs, settings, Run) -> TrainedGenerator`.
        load: `module:function`, `(InpaintingInputs, settings, ArrayFile, Run) -> NodeGenerator`.
        shared_tensors: every kind of tensor that may leave an institution: name -> its axes.
        max_generated: the setting that limits the generated nodes of one subject; empty: only the cap limits them.
    """

    name: str
    settings: type
    train: str
    load: str
    shared_tensors: Mapping[str, tuple[str, ...]]
    max_generated: str = ""


def inpainter_of(method: Method) -> Inpainter | None:
    """The inpainter of the generator that a method needs; None if it needs none."""
    found = method.options.get("inpainting")
    assert found is None or isinstance(found, Inpainter)
    return found
