"""The population graph: over all subjects for a method that pools, else inside institutions or cut between them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.stages.features import true_labels
from brainfed.configuration.stages.regime import Regime
from brainfed.configuration.stages.stage import Stage, StageKind
from brainfed.graphs.settings import GraphSettings
from brainfed.methods.method import Method
from brainfed.runtime.errors import UserError


class PopulationGraph(StageKind):
    """`graphs/{graph}/repeat-{r}/{part}.safetensors`."""

    name = key = role = "graph"
    folder = "graphs"
    parents = ("features",)
    reads = "a graph"
    manual = "keys of [graph](#graph) | the project's | Settings that differ; for methods that read a graph."

    def settings_class(self, method: Method) -> type[Any]:
        """The same for all methods."""
        del method
        return GraphSettings

    def slug(self, stage: Stage) -> str:
        """Its scope, and the number of neighbours of each row."""
        settings: GraphSettings = stage.settings
        return f"{settings.scope.replace('_', '-')}-k{settings.k}"

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """A graph over all subjects for a method that pools all data."""
        return {"scope": "global"} if _pools(method) else {}

    def defaults(self, project: ProjectSettings, method: Method) -> Mapping[str, Any]:
        """Cut the graph for a method that trains inside institutions, unless the project builds local graphs."""
        held = {**super().defaults(project, method)}
        if not _pools(method) and held["scope"] == "global":
            held["scope"] = "global_cut"
        return held

    def settled(self, settings: GraphSettings, method: Method, above: Mapping[str, Any], where: str) -> GraphSettings:
        """Without the dimensions of an unused embedding; measures in different units are standardised."""
        if not _pools(method) and settings.scope == "global":
            raise UserError(
                f"{where}.graph.scope: method {method.name!r} trains inside institutions, which a `global` graph "
                "joins; use `local`, or `global_cut` for a simulation."
            )
        if settings.embedding == "none":
            settings = replace(settings, embedding_dimensions=GraphSettings.embedding_dimensions)
        return replace(settings, scaling="columns") if above["features"].kind == "morphometry" else settings

    def under(self, settings: GraphSettings, method: Method, regime: Regime, where: str) -> GraphSettings:
        """Built inside institutions if one is unseen: before a cut it would influence the graphs of the others."""
        del method
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
        settings: GraphSettings = stage.settings
        return (*settings.phenotypes, *(("diagnosis",) if settings.fitted else ()))

    def fitted(self, settings: GraphSettings) -> bool:
        """Under RFE."""
        return settings.fitted

    def shared(self, values: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
        """All settings for a twin inside institutions; all but the scope for a pooled twin."""
        return {key: value for key, value in values.items() if key != "scope" or not pooled}


GRAPH = PopulationGraph()


def _pools(method: Method) -> bool:
    """Whether a method trains on pooled data."""
    return method.topology == "central"
