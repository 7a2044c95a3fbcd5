"""Public subjects: training subjects of every institution that the server may read."""

from typing import Any

from brainfed.cohort.settings.public import PublicSettings
from brainfed.configuration.stages.stage import Stage, StageKind
from brainfed.methods.method import Method


class Public(StageKind):
    """`public/{public}/repeat-{r}/all.parquet`, the public subjects of all folds, under either protocol."""

    name = key = folder = role = "public"
    file = "{part}.parquet"
    reads_protocol = False
    timed = False
    reads = "{public} subjects"
    manual = "keys of [public](#public) | the project's | Settings that differ; for methods with public subjects."

    def settings_class(self, method: Method) -> type[Any]:
        """The same for all methods."""
        del method
        return PublicSettings

    def slug(self, stage: Stage) -> str:
        """The share of public subjects."""
        settings: PublicSettings = stage.settings
        return f"{100 * settings.ratio:g}-percent"

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """The diagnosis: public subjects are labelled, and of all classes alike; the site as in the split above."""
        del stage
        return ("site", "diagnosis")

    def content(self, stage: Stage) -> list[Any]:
        """The split, and the settings."""
        return [stage.split, stage.chosen]


PUBLIC = Public()
