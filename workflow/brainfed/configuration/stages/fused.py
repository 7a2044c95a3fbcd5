"""Graphs of real and generated nodes."""

import math
from collections.abc import Mapping
from typing import Any

from brainfed.configuration.stages.features import width
from brainfed.configuration.stages.inpainting import max_generated, trained_by
from brainfed.configuration.stages.stage import NOTHING, Stage, StageKind
from brainfed.inpainting.settings import FusingSettings
from brainfed.methods.method import Method
from brainfed.runtime.errors import UserError


class Fused(StageKind):
    """`fused/{fused}/repeat-{r}/{part}.safetensors`, and `fidelity/{fused}`."""

    name = folder = role = shown = "fused"
    key = "fusing"
    parents = ("features", "graph", "inpainting")
    further = ("fidelity",)
    reads = "a graph completed by {inpainting}"
    manual = "keys of [fusing](#fusing) | the method's, else the project's | As above."

    def settings_class(self, method: Method) -> type[Any]:
        """The same for all methods."""
        del method
        return FusingSettings

    def slug(self, stage: Stage) -> str:
        """The inpainter."""
        return trained_by(stage.parent("inpainting")).name

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """The method's declared settings of this stage."""
        return dict(method.options.get(self.name, NOTHING))

    def settled(self, settings: FusingSettings, method: Method, above: Mapping[str, Any], where: str) -> FusingSettings:
        """Reject `nodes: true` without a cut: no subject is missing."""
        del method
        if settings.nodes == "true" and above["graph"].scope != "global_cut":
            raise UserError(
                f"{where}.fusing.nodes: `true` restores the subjects that a cut removed, and `graph.scope: "
                f"{above['graph'].scope}` cuts nothing; expected `graph.scope: global_cut`."
            )
        return settings

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """Those that weigh edges: generated nodes have edges of their own."""
        return tuple(stage.parent("graph").settings.phenotypes)

    def content(self, stage: Stage) -> list[Any]:
        """The generator, and the settings of the fusing."""
        return [stage.parent("inpainting").name, stage.chosen]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """(g, d) features of generated nodes: 2 k neighbours a subject without a limit."""
        limits = (stage.settings.cap, max_generated(stage.parent("inpainting")), 2 * stage.parent("graph").settings.k)
        most = min(limit for limit in limits if limit is not None)
        return math.ceil(subjects * most) * width(stage.parent("features"), regions)


FUSED = Fused()
