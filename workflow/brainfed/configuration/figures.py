"""Whether an experiment has what its figure is drawn from."""

from collections.abc import Sequence
from dataclasses import fields

from brainfed.cohort.split_settings import SplitSettings
from brainfed.configuration.project import ExperimentSettings
from brainfed.configuration.stages import Variant
from brainfed.configuration.validation import nearest
from brainfed.runtime.errors import UserError

AXES = {"line": 1, "rounds": 1, "surface": 2}
"""How many swept settings a figure is drawn against."""


def check_figure(where: str, settings: ExperimentSettings, variants: Sequence[Variant], *, swept: bool) -> None:
    """Refuse a figure that could not be drawn after hours of training.

    Args:
        where: how the message names the experiment.
        settings: the experiment as the config gives it.
        variants: its variants.
        swept: whether its split is.

    Raises:
        UserError: too few or too many axes, one that no variant has, or a figure of what no variant makes.
    """
    kind, needed = settings.figure, AXES.get(settings.figure)
    if needed is not None and len(settings.axes) != needed:
        raise UserError(
            f"{where}.axes: a figure of the kind {kind!r} is drawn against {needed} swept setting(s), found "
            f"{len(settings.axes)}; name as many."
        )
    allowed = {f"split.{field.name}" for field in fields(SplitSettings)}.union(*map(_settings_of, variants))
    for axis in settings.axes:
        if axis not in allowed:
            raise UserError(f"{where}.axes: no variant has the setting {axis!r}{nearest(axis, sorted(allowed))}")
    if kind == "clients" and not swept:
        raise UserError(f"{where}.figure: `clients` compares splits; give a list in {where}.split.count.")
    if kind == "distribution" and not any(variant.fused for variant in variants):
        raise UserError(
            f"{where}.figure: `distribution` is of generated nodes, which no variant has; add one that has."
        )
    if kind == "fidelity" and not any(knows_truth(variant) for variant in variants):
        raise UserError(
            f"{where}.figure: `fidelity` needs a variant of FedNI with `graph: {{scope: global_cut}}`; add one."
        )


def knows_truth(variant: Variant) -> bool:
    """Whether true neighbours of a variant's generated nodes are known, and these have a phenotype to compare."""
    if variant.fused is None:
        return False
    inpainting = variant.fused.inpainting
    return inpainting.graph.settings.scope == "global_cut" and inpainting.inpainter.name == "fedni"


def _settings_of(variant: Variant) -> set[str]:
    """Every setting of a variant, those of a stage with its name before them."""
    staged = {f"{stage}.{key}" for stage, held in variant.stages().items() for key in held}
    return staged.union(variant.settings)
