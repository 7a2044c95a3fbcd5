"""Every mistake of a config, and its valid parts, by which its cohorts are checked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brainfed.checking.finding import Finding, named
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.configuration.loading import extended, read_config
from brainfed.configuration.planning.experiments import Experiment
from brainfed.configuration.planning.plan import Plan, make_plan
from brainfed.configuration.planning.sweeps import expand
from brainfed.configuration.planning.variants import check_definition
from brainfed.configuration.project import ExperimentSettings, ProjectSettings
from brainfed.configuration.validation import mistakes, validate
from brainfed.deployment.attendance.study_file import require_extended_study, require_study_of
from brainfed.runtime.errors import UserError

PLACE = "config"


@dataclass(frozen=True)
class UsableConfig:
    """The parts of a config that are valid.

    Attributes:
        cohorts: by name.
        experiments: resolved.
        seed: of every random stream.
        coordinates: whether it is the coordinator's of a study between sites, whose data are at the sites.
        sites: of a study between sites, in order.
        site: the one whose config it is; empty: none.
        plan: of the whole, where all of it is valid.
    """

    cohorts: Mapping[str, CohortSettings]
    experiments: tuple[Experiment, ...]
    seed: int
    coordinates: bool = False
    sites: tuple[str, ...] = ()
    site: str = ""
    plan: Plan | None = None


def check_config(path: Path) -> tuple[UsableConfig, list[Finding]]:
    """Validate a config as the workflow does, and collect all mistakes."""
    try:
        require_extended_study(path)
        content = extended(read_config(path))
    except UserError as error:
        return UsableConfig({}, (), 0), [Finding("stops", PLACE, str(error))]
    sentences = mistakes(ProjectSettings, content, "config")
    if sentences:
        usable = UsableConfig(_valid_cohorts(content), (), 0, _coordinates(content), site=_site(content))
    else:
        project = validate(ProjectSettings, content, "config")
        experiments, sentences = _experiments(project)
        study = project.study
        usable = UsableConfig(
            project.cohorts, experiments, project.seed, _coordinates(content), study.ordered, study.site
        )
        if not sentences:
            plan = make_plan(project)
            return replace(usable, plan=plan), [*_changed_study(path, plan), *_idle_variants(project, experiments)]
    return usable, [Finding("stops", PLACE, sentence) for sentence in sentences]


def _changed_study(path: Path, plan: Plan) -> Iterator[Finding]:
    """What a site's config changes of the study that it extends."""
    try:
        require_study_of(path, plan)
    except UserError as error:
        yield Finding("stops", PLACE, str(error))


def _idle_variants(project: ProjectSettings, experiments: Sequence[Experiment]) -> Iterator[Finding]:
    """Variants that no experiment lists, a sweep as one."""
    used = {variant.name for experiment in experiments for variant in experiment.variants}
    idle = [name for name, definition in project.variants.items() if used.isdisjoint(expand({name: definition}).single)]
    if idle:
        sentence = (
            f"variants: no experiment lists {named(idle)}; add them to `variants` of one, else nothing trains them."
        )
        yield Finding("notes", PLACE, sentence)


def _coordinates(content: Mapping[str, Any]) -> bool:
    """Whether a config names the sites of a study and none as its own."""
    study = content.get("study")
    return isinstance(study, Mapping) and bool(study.get("sites")) and not study.get("site")


def _site(content: Mapping[str, Any]) -> str:
    """The site whose config it is, before the rest of it is valid."""
    study = content.get("study")
    return str(study.get("site") or "") if isinstance(study, Mapping) else ""


def _valid_cohorts(content: Mapping[str, Any]) -> dict[str, CohortSettings]:
    held = content.get("cohorts")
    cohorts = held if isinstance(held, Mapping) else {}
    return {
        str(name): validate(CohortSettings, values, str(name))
        for name, values in cohorts.items()
        if not mistakes(CohortSettings, values, str(name))
    }


def _experiments(project: ProjectSettings) -> tuple[tuple[Experiment, ...], list[str]]:
    """The experiments that can be resolved, and why the others cannot."""
    try:
        return tuple(make_plan(project).experiments.values()), []
    except UserError as error:
        whole = str(error)
    variants, sentences = _valid_variants(project)
    broken = [name for name in project.variants if name not in variants]
    resolved: list[Experiment] = []
    for name, settings in project.experiments.items():
        usable = _without(broken, settings)
        if usable is None:
            continue
        alone = replace(project, variants=variants, experiments={name: usable})
        try:
            resolved += make_plan(alone).experiments.values()
        except UserError as error:
            sentences.append(str(error))
    return tuple(resolved), list(dict.fromkeys(sentences)) or [whole]


def _without(broken: Sequence[str], settings: ExperimentSettings) -> ExperimentSettings | None:
    """An experiment without the variants that are broken, swept ones included; None where nothing is left of it."""

    def stays(variant: str) -> bool:
        return not any(variant == name or variant.startswith(f"{name}-") for name in broken)

    named = tuple(filter(stays, settings.variants))
    if settings.variants and not named:
        return None
    kept = replace(settings, variants=named)
    if not stays(settings.reference):
        return replace(kept, reference=named[0] if named else ExperimentSettings().reference)
    return kept


def _valid_variants(project: ProjectSettings) -> tuple[dict[str, dict[str, Any]], list[str]]:
    valid: dict[str, dict[str, Any]] = {}
    sentences: list[str] = []
    for name, definition in project.variants.items():
        try:
            for member, single in expand({name: definition}).single.items():
                check_definition(project, member, single)
            valid[name] = definition
        except UserError as error:
            sentences.append(str(error))
    return valid, sentences
