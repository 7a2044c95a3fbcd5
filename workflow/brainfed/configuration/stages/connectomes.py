"""Connectomes as graphs, one a subject: samples of methods that classify whole graphs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brainfed.configuration.stages.stage import Stage, StageKind
from brainfed.graphs.connectome.settings import ConnectomeSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.methods.method import Method
from brainfed.runtime.errors import UserError

NODE_NUMBERS, EDGE_NUMBERS = 1, 5
"""Numbers of four bytes an entry of the matrix, and an edge (two of them of eight bytes)."""


class Connectomes(StageKind):
    """`connectomes/{connectomes}/all.safetensors`, or `repeat-{r}/fold-{f}.safetensors` for features fitted by fold."""

    name = key = folder = role = "connectomes"
    parents = ("features",)
    reads = "connectomes"
    manual = (
        "keys of [connectomes](#connectomes) | the project's | Settings that differ; for methods of connectomes, "
        "whose features are connectivity without selection, also where the project has others."
    )

    def settings_class(self, method: Method) -> type[Any]:
        """The same for all methods."""
        del method
        return ConnectomeSettings

    def slug(self, stage: Stage) -> str:
        """The rule that chooses edges, and its number."""
        settings: ConnectomeSettings = stage.settings
        if settings.edges == "absolute":
            return f"threshold-{settings.threshold:g}"
        return f"density-{settings.density:g}"

    def settled(
        self, settings: ConnectomeSettings, method: Method, above: Mapping[str, Any], where: str
    ) -> ConnectomeSettings:
        """Without the number of the other rule.

        Raises:
            UserError: the features are not one number a connection, or no correlation reaches the threshold.
        """
        features: FeatureSettings = above["features"]
        found = _other_than_connections(features)
        if found:
            raise UserError(
                f"{where}.features: method {method.name!r} reads connectomes, expected one number for each connection "
                f"of two regions, found {found}; leave that out, or choose another method."
            )
        if settings.edges == "proportional":
            return replace(settings, threshold=ConnectomeSettings.threshold)
        if features.correlations and settings.threshold > 1:
            raise UserError(
                f"{where}.connectomes.threshold: expected at most 1, the largest correlation, found "
                f"{settings.threshold:g}; lower it."
            )
        return replace(settings, density=ConnectomeSettings.density)

    def reads_split(self, settings: ConnectomeSettings) -> bool:
        """False: a connectome depends on its subject alone, and on the split as far as its features do."""
        del settings
        return False

    def content(self, stage: Stage) -> list[Any]:
        """The features, and the settings."""
        return [stage.parent("features").name, stage.chosen]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """(R, R) rows of nodes, and both directions of every edge: source, target, weight."""
        settings: ConnectomeSettings = stage.settings
        edges = 2 * settings.most_connections(regions)
        return subjects * (NODE_NUMBERS * regions**2 + EDGE_NUMBERS * edges)


CONNECTOMES = Connectomes()


def _other_than_connections(features: FeatureSettings) -> str:
    """The setting that makes features something else than one number a connection; empty for connectivity."""
    if features.views:
        return f"{len(features.views)} views"
    if features.kind != "connectivity":
        return f"kind: {features.kind}"
    return "selection: rfe" if features.reads_labels else ""
