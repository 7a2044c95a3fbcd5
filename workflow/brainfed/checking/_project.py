"""A whole project: its config, every cohort, every split, and room on the disk."""

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brainfed.checking._cohort import check_cohort
from brainfed.checking._files import check_dates, check_others
from brainfed.checking._finding import Finding, collected, failures, gathered, named, note, place_of, refusals
from brainfed.checking._people import Checked
from brainfed.checking._split import SplitCheck
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.splits import require_own
from brainfed.configuration import (
    STUDY_FILE,
    STUDY_KEPT,
    ExperimentSettings,
    ProjectSettings,
    extended,
    mistakes,
    read_config,
    validate,
)
from brainfed.configuration.planning import Experiment, Plan, check_definition, expand, make_plan
from brainfed.runtime import UserError, resolve

CONFIG, DISK = "config", "disk"
FLOAT = 4
AT_THE_SITES = (
    "This is the coordinator's config of a study between sites: paths and files of the cohort are the sites' own; each "
    "site checks them in its own config. If this is a site's config, set `study.site`."
)


@dataclass(frozen=True)
class UsableConfig:
    """The parts of a config that are valid.

    Attributes:
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


def check_project(
    config: Path, results: Path = Path("results"), *, few: bool = False, every_scan: bool = False
) -> list[Finding]:
    """All mistakes that tables and files show, as far as one does not hide another.

    Region series are read as the jobs read them; of images the headers, and the voxels of some subjects of each site,
    or of `every_scan`. `few` notes also that few people are tested, which no file shows to be a mistake; the disk needs
    room at `results`.
    """
    usable, findings = UsableConfig({}, (), 0), list[Finding]()
    with failures(CONFIG, findings, str(config)):
        usable, findings = check_config(config)
    of_cohorts: list[Finding] = []
    needed: dict[str, int] = {}
    for name, settings in usable.cohorts.items():
        if usable.coordinates and settings.source != "simulate":
            of_cohorts.append(Finding("notes", place_of(name, "files"), AT_THE_SITES))
            continue
        checked = check_cohort(name, settings, every_scan=every_scan)
        files = place_of(name, "files")
        of_cohorts += [*checked.findings, *collected(files, check_dates, name, settings)]
        if len(usable.cohorts) > 1:
            of_cohorts += collected(files, check_others, name, settings, usable.cohorts)
        experiments = [experiment for experiment in usable.experiments if name in experiment.cohorts]
        of_cohorts += _check_splits(name, settings, checked, experiments, usable, few=few)
        with failures(DISK, findings, place_of(name, "results")):
            needed[name] = needed_bytes(checked, experiments)
    return [*findings, *gathered(of_cohorts), *collected(DISK, check_disk, needed, results)]


def _check_splits(
    name: str,
    settings: CohortSettings,
    checked: Checked,
    experiments: Sequence[Experiment],
    usable: UsableConfig,
    *,
    few: bool,
) -> list[Finding]:
    """What the draws of institutions and folds refuse, and what the experiments lack in this cohort."""
    place = place_of(name, "institutions and folds")
    check = SplitCheck(checked, experiments, usable.seed, settings.classes, settings.target, study=usable.sites)
    findings: list[Finding] = []
    if usable.site and checked.people:
        findings += refusals(place, require_own, sorted({person.site for person in checked.people}), usable.site)
    if checked.people and not findings:
        for part in (check.splits, check.public, check.sites_left_out):
            findings += collected(place, part)
        if usable.site and usable.plan:
            findings += collected(place, check.released, usable.plan)
        if settings.refuses_contradictions:
            findings += collected(place, check.copies)
        if few:
            findings += collected(place, check.few)
    findings += collected(place, check.harmonisation)
    return [*findings, *collected(place_of(name, "connectomes"), check.connectomes)]


def needed_bytes(checked: Checked, experiments: Sequence[Experiment]) -> int:
    """Bytes of series and of stages with many numbers (as many as there may be) of the experiments that always run."""
    sites, subjects = len(checked.sites), len(checked.people)
    series = sum(person.timepoints for person in checked.people) * checked.regions
    total = series
    counted: set[str] = set()
    for experiment in (one for one in experiments if one.default):
        folds = sites if experiment.split.test_folds is None else experiment.split.test_folds
        for stage in (held for one in experiment.variants for held in one.stages.values()):
            if stage.name not in counted:
                counted.add(stage.name)
                parts = (experiment.repeats if stage.split else 1) * (folds if stage.by_fold else 1)
                total += math.ceil(stage.kind.numbers(stage, subjects, checked.regions)) * parts
                total += series if stage.kind.holds_series else 0
                total += math.ceil(stage.kind.numbers_of_all_parts(stage, subjects, checked.regions))
    return FLOAT * total


def check_disk(needed: Mapping[str, int], results: Path) -> list[Finding]:
    """Compare the bytes that the cohorts need, less those that they hold, with the free space for results."""
    present = {name: sum(path.stat().st_size for path in (results / name).rglob("*.safetensors")) for name in needed}
    missing = sum(max(0, size - present[name]) for name, size in needed.items())
    standing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(standing).free
    if missing <= free:
        return []
    sentence = (
        f"{standing}: expected about {missing / 1e9:.1f} GB of free disk for series, features, connectomes and "
        f"generated nodes, found {free / 1e9:.1f} GB; make room, or run where there is more."
    )
    return [Finding("stops", DISK, sentence)]


def check_config(path: Path) -> tuple[UsableConfig, list[Finding]]:
    """Validate a config as the workflow does, and collect all mistakes."""
    try:
        content = extended(read_config(path))
        written = content.get("study")
        study = written if isinstance(written, Mapping) else {}
        if study.get("site"):
            resolve(STUDY_FILE)(path)
    except UserError as error:
        return UsableConfig({}, (), 0), [Finding("stops", CONFIG, str(error))]
    coordinates = bool(study.get("sites")) and not study.get("site")
    sentences = mistakes(ProjectSettings, content, "config")
    if sentences:
        usable = UsableConfig(_valid_cohorts(content), (), 0, coordinates, site=str(study.get("site") or ""))
    else:
        project = validate(ProjectSettings, content, "config")
        experiments, sentences = _experiments(project)
        sites, site = project.study.ordered, project.study.site
        usable = UsableConfig(project.cohorts, experiments, project.seed, coordinates, sites, site)
        if not sentences:
            plan = make_plan(project)
            findings = refusals(CONFIG, resolve(STUDY_KEPT), path, plan) if site else []
            return replace(usable, plan=plan), findings + collected(CONFIG, _idle_variants, project, experiments)
    return usable, [Finding("stops", CONFIG, sentence) for sentence in sentences]


def _idle_variants(project: ProjectSettings, experiments: Sequence[Experiment]) -> Iterator[Finding]:
    """Variants that no experiment lists, a sweep as one."""
    used = {variant.name for experiment in experiments for variant in experiment.variants}
    idle = [name for name, definition in project.variants.items() if used.isdisjoint(expand({name: definition}).single)]
    if idle:
        yield note(
            f"variants: no experiment lists {named(idle)}; add them to `variants` of one, else nothing trains them."
        )


def _valid_cohorts(content: Mapping[str, Any]) -> dict[str, CohortSettings]:
    cohorts = content.get("cohorts")
    return {
        str(name): validate(CohortSettings, values, str(name))
        for name, values in (cohorts.items() if isinstance(cohorts, Mapping) else ())
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
    """The definitions that are valid, and why the others are not."""
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
