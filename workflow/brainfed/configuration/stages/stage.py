"""A kind of stage, declared in one place, and a stage: a kind with settings and a name.

A stage is called `slug-digest` after its own resolved settings and those of the stages above it, so two variants that
share it share its files, and switching a setting back finds the old result.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.stages.regime import Regime
from brainfed.methods.inpainter import Inpainter
from brainfed.methods.method import Method

NOTHING: Mapping[str, Any] = MappingProxyType({})


def stage_name(slug: str, content: Any) -> str:
    """`slug-digest` over canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Stage:
    """An artefact that variants share.

    Attributes:
        kind: its declaration.
        name: of its folder.
        settings: a dataclass, all that counts resolved.
        parents: the stages that its job reads.
        split: name of the split behind it; empty where it is the same for all.
        protocol: as of the regime; empty where there is no split.
        by_fold: whether every fold has one of its own.
        maker: what trains it, where methods bring ways of their own.
    """

    kind: "StageKind"
    name: str
    settings: Any
    parents: tuple["Stage", ...]
    split: str
    protocol: str
    by_fold: bool
    maker: Inpainter | None = None

    @property
    def values(self) -> dict[str, Any]:
        """Its settings as builtins."""
        return asdict(self.settings)

    def parent(self, kind: str) -> "Stage":
        """The stage of that kind that its job reads."""
        return next(stage for stage in self.parents if stage.kind.name == kind)


class StageKind(ABC):
    """What all stages of one kind have in common; a new kind is one subclass and one line of the registry.

    Attributes:
        name: in `Method.needs`, and the wildcard of its rules.
        key: holds its settings in a config, of the project and of a variant.
        folder: of its artefacts, under `results/{cohort}`; in a method's job the role of the files.
        parents: the kinds whose artefacts its job reads.
        role: of its artefact among the inputs of another stage's job.
        file: where one part lies in the folder of a repeat.
        further: folders under `results/{cohort}` of what else is named after its stages.
        timed: whether its job leaves a timing beside the artefact.
        shown: what a report's outline calls the artefacts that a variant is trained on; empty: it has none.
        records: further files of a part that a report reads: name in the outline -> file.
        reads: how the manual says that a method reads it; `{kind}` stands for a link to the settings of that kind.
        manual: type, default and meaning of its key of a variant, as the manual's table has them.
    """

    name: str
    key: str
    folder: str
    parents: tuple[str, ...] = ()
    role: str
    file: str = "{part}.safetensors"
    further: tuple[str, ...] = ()
    timed: bool = True
    shown: str = ""
    records: Mapping[str, str] = NOTHING
    reads: str = ""
    manual: str

    @abstractmethod
    def settings_class(self, method: Method) -> type[Any]:
        """The dataclass of its settings for a method that needs it."""

    @abstractmethod
    def slug(self, stage: Stage) -> str:
        """What the name of a stage begins with."""

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """Settings that differ for a method."""
        del method
        return NOTHING

    def defaults(self, project: ProjectSettings, method: Method) -> Mapping[str, Any]:
        """What holds where a variant says nothing: the project's settings, where they are of this class, then these."""
        held = getattr(project, self.key, None)
        below = asdict(held) if held is not None and type(held) is self.settings_class(method) else {}
        return {**below, **self.of_method(method)}

    def settled(self, settings: Any, method: Method, above: Mapping[str, Any], where: str) -> Any:
        """The settings with those that do not count at their defaults.

        Args:
            settings: as the config gives them, valid each for itself.
            method: of the variant.
            above: kind -> settings of the stages above it.
            where: how a message names the variant.

        Raises:
            UserError: they do not fit the method or the stages above.
        """
        del method, above, where
        return settings

    def under(self, settings: Any, method: Method, regime: Regime, where: str) -> Any:
        """The settings as a regime lets them be.

        Raises:
            UserError: the stage would see what the regime hides.
        """
        del method, regime, where
        return settings

    def allowed(self, regime: Regime) -> bool:
        """Whether variants with such a stage have a place in an experiment that names none."""
        del regime
        return True

    def reads_split(self, settings: Any) -> bool:
        """Whether a stage depends on institutions and folds; otherwise all repeats share it."""
        del settings
        return True

    def fitted(self, settings: Any) -> bool:
        """Whether the settings alone put a stage on the fold axis."""
        del settings
        return False

    def whole(self, settings: Any) -> Any | None:
        """Settings of the stage of the same kind that every fold starts from; None: there is none."""
        del settings
        return None

    def maker(self, method: Method) -> Inpainter | None:
        """What trains it, where methods bring ways of their own."""
        del method
        return None

    def content(self, stage: Stage) -> list[Any]:
        """What the name of a stage is a digest of: to change it is to lose the results of earlier runs."""
        return [*(parent.name for parent in stage.parents), stage.split, stage.protocol, stage.values]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """How many numbers one part holds at most, where they are many."""
        del stage, subjects, regions
        return 0

    def shared(self, values: Mapping[str, Any], twin: Method) -> dict[str, Any]:
        """Those of the settings that the twin of a federated variant has in common with it."""
        del twin
        return dict(values)

    def section(self, method: Method) -> str:
        """The section of the manual that lists its settings for a method."""
        del method
        return self.key
