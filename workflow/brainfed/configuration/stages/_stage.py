"""What all kinds of stages have in common: key, settings, parents, name, path, and when two are comparable."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from brainfed.configuration import ProjectSettings, defaults_of
from brainfed.methods import Inpainter, Method


@dataclass(frozen=True)
class Regime:
    """Split, protocol and labels of an evaluation.

    `unseen`: whether tested institutions take no part in training (leave-one-site-out). `partial`: whether the split
    leaves subjects out (`split.share`, `split.held_back`).
    """

    name: str
    split: str
    protocol: str
    labels: str
    unseen: bool
    partial: bool = False

    @property
    def generates(self) -> bool:
        """Whether a generator may be trained: False if an unseen institution's features would train it."""
        return not self.unseen or self.protocol == "inductive"


# A kind of stage, declared in one place, and a stage: a kind with settings and a name.
#
# A stage is called `slug-digest` after its own resolved settings and those of the stages above it, so two variants that
# share it share its files, and switching a setting back finds the old result.

NOTHING: Mapping[str, Any] = MappingProxyType({})


def stage_name(slug: str, content: Any) -> str:
    """`slug-digest` over canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Stage:
    """An artefact that variants share.

    Attributes:
        name: name of its folder.
        settings: a dataclass of resolved settings.
        parents: the stages that its job reads.
        split: name of its split; empty if it does not depend on one.
        protocol: protocol of the regime; empty without a split, and where it has no effect.
        by_fold: whether every fold has its own part.
        maker: the inpainter that trains it, if its kind has several.
    """

    kind: "StageKind"
    name: str
    settings: Any
    parents: tuple["Stage", ...]
    split: str
    protocol: str
    by_fold: bool
    maker: Inpainter | None = None

    @cached_property
    def values(self) -> dict[str, Any]:
        """Its settings as builtins, not to be changed."""
        return asdict(self.settings)

    @property
    def chosen(self) -> dict[str, Any]:
        """The values that differ from the defaults: a setting that is added later renames no stage."""
        usual = defaults_of(type(self.settings))
        return {name: value for name, value in self.values.items() if value != usual[name]}

    def parent(self, kind: str) -> "Stage":
        """The stage of that kind that its job reads."""
        return next(stage for stage in self.parents if stage.kind.name == kind)


class StageKind(ABC):
    """Declaration of a kind of stage; a new kind is one module beside this one, which the registry finds.

    Attributes:
        name: its name in `Method.needs`, and the wildcard of its rules.
        key: key of its settings in a config, for the project and for a variant.
        settings: dataclass of its settings. Where this has a property `fitted` that is true, training subjects fit the
            stage, and every fold has a part of its own.
        folder: folder of its artefacts under `results/{cohort}`; the role of the files in a method's job.
        read_as: the role in its place, if a method's job reads the files as those of another kind: `features`, rows.
        parents: the kinds of the artefacts that its job reads.
        role: role of its artefact among the inputs of another stage's job.
        file: path of one part in the folder of a repeat.
        further: other folders under `results/{cohort}` with folders of its stages.
        reads_split: whether it depends on institutions and folds also where it is not fitted and its parents do not.
        reads_protocol: whether a stage that depends on a split differs between protocols.
        timed: whether its job writes a timing file next to the artefact.
        holds_series: whether a part holds the region series of all subjects, in all their time points.
        shown: key of its artefacts in a report's outline; empty: they are not shown.
        records: further files of a part that a report reads: name in the outline -> file.
        reads: phrase of the manual for a method that reads it; `{kind}` becomes a link to the settings of that kind.
        manual: type, default and meaning of its key of a variant, as columns of the manual's table.
    """

    name: str
    key: str
    settings: type[Any]
    folder: str
    read_as: str = ""
    parents: tuple[str, ...] = ()
    role: str
    file: str = "{part}.safetensors"
    further: tuple[str, ...] = ()
    reads_split: bool = True
    reads_protocol: bool = True
    timed: bool = True
    holds_series: bool = False
    shown: str = ""
    records: Mapping[str, str] = NOTHING
    reads: str = ""
    manual: str

    @abstractmethod
    def slug(self, stage: Stage) -> str:
        """First part of a stage's name."""

    def settings_class(self, method: Method) -> type[Any]:
        """The dataclass of its settings for a method that needs it."""
        return self.settings

    def of_method(self, method: Method) -> Mapping[str, Any]:
        """Settings that differ for a method."""
        return NOTHING

    def defaults(self, project: ProjectSettings, method: Method) -> Mapping[str, Any]:
        """Default settings of a variant: the project's settings if they are of this class, then these."""
        of_project = getattr(project, self.key, None)
        below = asdict(of_project) if of_project and type(of_project) is self.settings_class(method) else {}
        return {**below, **self.of_method(method)}

    def settled(self, settings: Any, method: Method, above: Mapping[str, Any], where: str) -> Any:
        """The settings, each valid alone, with those without effect at their defaults.

        `above` has the settings of the stages above by kind, `where` names the variant in messages.

        Raises:
            UserError: they do not fit the method or the stages above.
        """
        return settings

    def under(self, settings: Any, method: Method, regime: Regime, where: str) -> Any:
        """The settings under a regime; a UserError if the stage would read data that the regime hides."""
        return settings

    def allowed(self, regime: Regime) -> bool:
        """Whether an experiment without a list of variants includes those with such a stage."""
        return True

    def sources(self, settings: Any) -> Sequence[Any]:
        """Settings of the stages of the same kind that its job starts from: what all folds share, or several views."""
        return ()

    def phenotypes(self, stage: Stage) -> tuple[str, ...]:
        """The columns of the participants (`cohort.phenotype._participant`) that its job reads; no other reaches it."""
        return ()

    def maker(self, method: Method) -> Inpainter | None:
        """The inpainter that trains it, if its kind has several."""
        return None

    def content(self, stage: Stage) -> list[Any]:
        """Content of the digest in a stage's name; a change loses the results of earlier runs."""
        return [*(parent.name for parent in stage.parents), stage.split, stage.protocol, stage.chosen]

    def numbers(self, stage: Stage, subjects: int, regions: int) -> float:
        """Upper limit of the count of numbers in one part; 0 if it is small."""
        return 0

    def numbers_of_all_parts(self, stage: Stage, subjects: int, regions: int) -> float:
        """Upper limit of the count of numbers that all its parts read; 0 if it is small."""
        return 0

    def folders(self, stage: Stage) -> list[str]:
        """The folders of a stage under `results/{cohort}`."""
        return [f"{folder}/{stage.name}" for folder in (self.folder, *self.further)]

    def shared(self, values: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
        """The settings that a federated variant shares with its counterpart on pooled data, or alone."""
        return dict(values)

    def shortened(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Settings to show to a user: without those that need not be written."""
        return dict(values)

    def section(self, method: Method) -> str:
        """The section of the manual that lists its settings for a method."""
        return self.key
