"""A trained generator of missing neighbours; methods declare its inpainter."""

from typing import Any

from brainfed.configuration.stages.regime import Regime
from brainfed.configuration.stages.stage import Stage, StageKind
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.methods.inpainter import Inpainter, inpainter_of
from brainfed.methods.method import Method
from brainfed.runtime.errors import UserError


class Inpainting(StageKind):
    """`inpainting/{inpainting}/repeat-{r}/{part}/generator.safetensors`; the project's settings are FedNI's alone."""

    name = key = folder = "inpainting"
    parents = ("features", "graph")
    role = "generator"
    file = "{part}/generator.safetensors"
    timed = False
    records = {"histories": "history.parquet", "costs": "cost.json", "timings": "timing.json"}  # noqa: RUF012
    manual = (
        "keys of the method's inpainter | the project's (FedNI), the defaults (others) | "
        "Settings that differ; for methods that complete the graph."
    )

    def settings_class(self, method: Method) -> type[Any]:
        """The settings of the method's inpainter."""
        return self.maker(method).settings

    def maker(self, method: Method) -> Inpainter:
        """The method's inpainter."""
        inpainter = inpainter_of(method)
        assert inpainter is not None, f"{method.name} needs an inpainter among its options"
        return inpainter

    def slug(self, stage: Stage) -> str:
        """The inpainter."""
        return trained_by(stage).name

    def under(self, settings: Any, method: Method, regime: Regime, where: str) -> Any:
        """Reject a generator that is trained on the unseen site."""
        if not self.allowed(regime):
            raise UserError(
                f"{where}: the generator of method {method.name!r} would be trained on the site that is left out, "
                "which `protocol: transductive` shows to it; use `protocol: inductive`, or leave the variant out of "
                "the experiment with `validation: leave_one_site_out`."
            )
        return settings

    def allowed(self, regime: Regime) -> bool:
        """True unless the unseen site would train it."""
        return regime.generates

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """Those that weigh edges: generated nodes have edges of their own."""
        return tuple(stage.parent("graph").settings.phenotypes)

    def content(self, stage: Stage) -> list[Any]:
        """The graph that hides nodes, the inpainter, its settings."""
        return [stage.parent("graph").name, trained_by(stage).name, stage.chosen]

    def section(self, method: Method) -> str:
        """FedNI's settings are the project's; every other inpainter has a section of its own."""
        inpainter = self.maker(method)
        return self.key if inpainter.settings is InpaintingSettings else f"inpainter: {inpainter.name}"


INPAINTING = Inpainting()


def trained_by(generator: Stage) -> Inpainter:
    """The inpainter that trains a generator."""
    assert generator.maker is not None
    return generator.maker


def max_generated(generator: Stage) -> int | None:
    """Largest number of generated nodes of one subject: FedSage+'s number of targets; None without a limit."""
    named = trained_by(generator).max_generated
    return int(getattr(generator.settings, named)) if named else None
