"""The stages of graphs: connectomes, population graphs, inpainting, fused graphs."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brainfed.configuration import ProjectSettings
from brainfed.configuration.stages._stage import NOTHING, Regime, Stage, StageKind
from brainfed.configuration.stages.features import true_labels, width
from brainfed.graphs import ConnectomeSettings, GraphSettings
from brainfed.imaging import FeatureSettings
from brainfed.inpainting import FusingSettings, InpaintingSettings
from brainfed.methods import Inpainter, Method, inpainter_of
from brainfed.runtime import UserError

NODE_NUMBERS, EDGE_NUMBERS = 1, 5
"""Numbers of four bytes an entry of the matrix, and an edge (two of them of eight bytes)."""


class Connectomes(StageKind):
    """`connectomes/{connectomes}/all.safetensors`, or `repeat-{r}/fold-{f}.safetensors` for features fitted by fold."""

    name = key = folder = role = "connectomes"
    settings = ConnectomeSettings
    reads_split = False
    parents = ("features",)
    reads = "connectomes"
    manual = (
        "keys of [connectomes](#connectomes) | the project's | Settings that differ; for methods of connectomes, "
        "whose features are connectivity without selection, also where the project has others."
    )

    def slug(self, stage: Stage) -> str:
        """The rule that chooses edges, and its number."""
        rule = "threshold" if stage.settings.edges == "absolute" else "density"
        return f"{rule}-{getattr(stage.settings, rule):g}"

    def settled(
        self, settings: ConnectomeSettings, method: Method, above: Mapping[str, Any], where: str
    ) -> ConnectomeSettings:
        """Without the number of the other rule.

        Raises:
            UserError: the features are not one number a connection, or no correlation reaches the threshold.
        """
        features: FeatureSettings = above["features"]
        if other := _other_than_connections(features):
            raise UserError(
                f"{where}.features: method {method.name!r} reads connectomes, expected one number for each connection "
                f"of two regions, found {other}; leave that out, or choose another method."
            )
        if settings.edges == "proportional":
            return replace(settings, threshold=ConnectomeSettings.threshold)
        if features.correlations and settings.threshold > 1:
            raise UserError(
                f"{where}.connectomes.threshold: expected at most 1, the largest correlation, found "
                f"{settings.threshold:g}; lower it."
            )
        return replace(settings, density=ConnectomeSettings.density)

    def content(self, stage: Stage) -> list[Any]:
        """The features, and the settings."""
        return [stage.parent("features").name, stage.chosen]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """(R, R) rows of nodes, and both directions of every edge: source, target, weight."""
        edges: int = 2 * stage.settings.most_connections(regions)
        return subjects * (NODE_NUMBERS * regions**2 + EDGE_NUMBERS * edges)


CONNECTOMES = Connectomes()


def _other_than_connections(features: FeatureSettings) -> str:
    """The setting that makes features something else than one number a connection; empty for connectivity."""
    if features.views:
        return f"{len(features.views)} views"
    if features.kind != "connectivity":
        return f"kind: {features.kind}"
    return "selection: rfe" if features.reads_labels else ""


# The population graph: over all subjects for a method that pools, else inside institutions or cut between them.


class PopulationGraph(StageKind):
    """`graphs/{graph}/repeat-{r}/{part}.safetensors`."""

    name = key = role = "graph"
    settings = GraphSettings
    folder = "graphs"
    parents = ("features",)
    reads = "a graph"
    manual = "keys of [graph](#graph) | the project's | Settings that differ; for methods that read a graph."

    def slug(self, stage: Stage) -> str:
        """Its scope, and the number of neighbours of each row."""
        return f"{stage.settings.scope.replace('_', '-')}-k{stage.settings.k}"

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """A graph over all subjects for a method that pools all data."""
        return {"scope": "global"} if method.topology == "central" else {}

    def defaults(self, project: ProjectSettings, method: Method) -> Mapping[str, Any]:
        """Cut the graph for a method that trains inside institutions, unless the project builds local graphs."""
        usual = super().defaults(project, method)
        inside = method.topology != "central" and usual["scope"] == "global"
        return {**usual, "scope": "global_cut"} if inside else usual

    def settled(self, settings: GraphSettings, method: Method, above: Mapping[str, Any], where: str) -> GraphSettings:
        """Without the dimensions of an unused embedding; measures in different units are standardised."""
        if method.topology != "central" and settings.scope == "global":
            raise UserError(
                f"{where}.graph.scope: method {method.name!r} trains inside institutions, which a `global` graph "
                "joins; use `local`, or `global_cut` for a simulation."
            )
        if settings.embedding == "none":
            settings = replace(settings, embedding_dimensions=GraphSettings.embedding_dimensions)
        return replace(settings, scaling="columns") if above["features"].kind == "morphometry" else settings

    def under(self, settings: GraphSettings, method: Method, regime: Regime, where: str) -> GraphSettings:
        """Built inside institutions if one is unseen: before a cut it would influence the graphs of the others."""
        if settings.scope == "global_cut" and not regime.generates:
            settings = replace(settings, scope="local")
        if regime.labels == "permuted" and settings.fitted:
            raise UserError(true_labels(f"{where}.graph.embedding"))
        if regime.unseen and (settings.scope, settings.embedding, settings.distance) == ("local", "rfe", "correlation"):
            raise UserError(
                f"{where}.graph.distance: expected euclidean with `embedding: rfe` in graphs of an institution that is "
                "left out, which has no training labels to choose features by, found correlation; choose "
                "`embedding: none`."
            )
        return settings

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """Those that weigh edges, and under RFE the diagnosis."""
        return (*stage.settings.phenotypes, *(("diagnosis",) if stage.settings.fitted else ()))

    def shared(self, values: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
        """All settings inside institutions; all but the scope on pooled data."""
        return {key: value for key, value in values.items() if key != "scope" or not pooled}


GRAPH = PopulationGraph()


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


class Fused(StageKind):
    """`fused/{fused}/repeat-{r}/{part}.safetensors`, and `fidelity/{fused}`."""

    name = folder = role = shown = "fused"
    key = "fusing"
    settings = FusingSettings
    parents = ("features", "graph", "inpainting")
    further = ("fidelity",)
    reads = "a graph completed by {inpainting}"
    manual = "keys of [fusing](#fusing) | the method's, else the project's | As above."

    def slug(self, stage: Stage) -> str:
        """The inpainter."""
        return trained_by(stage.parent("inpainting")).name

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """The method's declared settings of this stage."""
        return dict(method.options.get(self.name, NOTHING))

    def settled(self, settings: FusingSettings, method: Method, above: Mapping[str, Any], where: str) -> FusingSettings:
        """Reject `nodes: true` without a cut: no subject is missing."""
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
