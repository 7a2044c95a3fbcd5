"""Region series of all subjects: samples of methods that read the signal itself."""

from typing import Any

from brainfed.configuration.stages.stage import Stage, StageKind
from brainfed.imaging.series.settings import SeriesSettings
from brainfed.methods.method import Method


class Series(StageKind):
    """`series/{series}/all.safetensors`, which all repeats, folds and protocols share."""

    name = key = folder = role = "series"
    timed = False
    holds_series = True
    reads = "region series"
    manual = "keys of [series](#series) | the project's | Settings that differ; for methods of region series."

    def settings_class(self, method: Method) -> type[Any]:
        """The same for all methods."""
        del method
        return SeriesSettings

    def slug(self, stage: Stage) -> str:
        """How a series is scaled."""
        settings: SeriesSettings = stage.settings
        return settings.scale.replace("_", "-")

    def reads_split(self, settings: SeriesSettings) -> bool:
        """False: a series depends on its subject alone."""
        del settings
        return False

    def content(self, stage: Stage) -> list[Any]:
        """The settings."""
        return [stage.chosen]


SERIES = Series()
