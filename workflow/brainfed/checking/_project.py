"""A cohort by its source, and a whole project: its config, every cohort, every split, and room on the disk."""

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brainfed.checking._files import alike_sites, check_dates, check_others, list_table, read_table
from brainfed.checking._finding import (
    Finding,
    boundary,
    collected,
    failures,
    found_at,
    gathered,
    named,
    note,
    place_of,
    refusals,
)
from brainfed.checking._people import Checked, Content, Look, Person, concluded, look_at_all, silent_regions
from brainfed.checking._split import SplitCheck
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.settings import CohortSettings, FreeSurferSettings
from brainfed.cohort.sources import (
    ListedSubject,
    further_identities,
    further_measures,
    list_cohort,
    list_graphs,
    missing_graphs,
    simulate_subjects,
    simulated_subjects,
    unusable_measures,
)
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
from brainfed.imaging.morphometry import read_measures
from brainfed.imaging.series import SeriesReader, checksum, shared_regions, varying_regions
from brainfed.runtime import Refuse, Streams, UserError, resolve

# One cohort, by its source: region series, images, FreeSurfer's measures, public graphs, or a simulation.


def check_cohort(name: str, settings: CohortSettings, *, every_scan: bool = False) -> Checked:
    """Findings and participants of a cohort, from its tables and files, and the voxels of `every_scan` or of some."""
    place = place_of(name, "files")
    failed: list[Finding] = []
    checked, beside = Checked((), (), (), 0), False
    with failures(place, failed, f"Cohort {name!r}"):
        beside = bool(further_measures(settings)) and not settings.simulates_thickness
        checked = SOURCES[settings.source](name, without_further(settings) if beside else settings, every_scan)
    if settings.source not in ("simulate", "tudataset"):
        failed += collected(place_of(name, "phenotype table"), alike_sites, checked.sites)
    further = collected(place_of(name, "measures"), check_further_measures, name, settings) if beside else []
    return replace(checked, findings=(*failed, *checked.findings, *further))


def check_series(name: str, settings: CohortSettings, _: bool) -> Checked:
    """A cohort of region series in files."""
    series, place = SeriesCheck(name, settings), place_of(name, "series")
    mistakes = tuple(found_at(place_of(name, "parcellation"), error) for error in series.mistakes)
    table = read_table(name, settings)
    if isinstance(table, list):
        return Checked((*mistakes, *table), (), (), series.regions)
    content = look_at_all(table.listed, series.look)
    content.notes += collected(place, series.remarks, content.looks)
    checked = concluded(name, settings, place, table, content, series.regions)
    return replace(checked, findings=(*mistakes, *checked.findings))


class SeriesCheck:
    """Reads the region series of a cohort as the jobs read them: part by part, by the same reader.

    After `mistakes` in the region table the series are read without it; `regions` is their number, 0 if not known.
    """

    def __init__(self, name: str, settings: CohortSettings) -> None:
        self.mistakes: list[UserError] = []
        usable = settings.labels is not None and Path(settings.labels).is_file()
        self._settings = settings if usable else replace(settings, labels=None)
        self.regions = settings.regions or 0
        with boundary(f"Cohort {name!r}, region table {settings.labels}", self.mistakes.append):
            self.regions = len(SeriesReader(self._settings).regions)
        if self.mistakes:
            self._settings = replace(settings, labels=None)
        self._readers: dict[str, SeriesReader] = {}
        self._used: set[str] = set()

    def look(self, listed: ListedSubject, refuse: Refuse) -> Look | None:
        """The length and the content of one subject's series; None where it cannot be used."""
        reader = self._readers.setdefault(listed.shard, SeriesReader(self._settings))
        series = None
        with boundary(f"Subject {listed.subject}, {listed.series}", refuse):
            series = reader.read(listed.subject, str(listed.series)).series
        if series is None:
            return None
        self._used.add(listed.shard)
        silent = int((~varying_regions(series)).sum())
        barely = silent if self._settings.min_coverage > 0 else 0
        measures = {"silent_regions": silent, "barely_seen_regions": barely, "coverage": 1 - silent / series.shape[1]}
        return Look(len(series), checksum(series), measures=measures)

    def remarks(self, looks: Mapping[str, Look]) -> Iterator[Finding]:
        """Parts that name their regions differently, and subjects with regions without a signal."""
        parts = (
            (reader.first_file or shard, reader.regions, shard in self._used)
            for shard, reader in sorted(self._readers.items())
        )
        yield from refusals("", shared_regions, parts)
        yield from silent_regions(looks, self.regions, self._settings)


def check_measures(name: str, settings: CohortSettings, _: bool) -> Checked:
    """FreeSurfer's tables, or the stats files of a SUBJECTS_DIR."""
    place, listed = place_of(name, "measures"), list_table(name, settings)
    if isinstance(listed, list):
        return Checked(tuple(listed), (), (), 0)
    listing, table = listed
    identities = {listed.subject: str(listed.series) for listed in listing.subjects if listed.has_series}
    content, failed = Content(), list[Finding]()
    with failures(place, failed):
        measures = read_measures(identities, settings)
        content.looks = {str(subject): Look(0, str(subject)) for subject in measures.values.index}
        content.wrong = [(subject, UserError(problem)) for subject, problem in sorted(measures.problems.items())]
        content.notes = [Finding("notes", place, remark) for remark in measures.remarks]
    content.notes += failed
    return concluded(name, settings, place, table, content)


def check_further_measures(name: str, settings: CohortSettings) -> Iterator[Finding]:
    """Mistakes of FreeSurfer's measures beside scans, and subjects without; nothing if no scans can be listed."""
    place = place_of(name, "measures")
    try:
        listing = list_cohort(name, replace(without_further(settings), on_invalid="drop"))
    except UserError:  # The check of the scans has its sentence.
        return
    wrong = [*unusable_measures(name, listing.subjects, settings)]
    if not wrong:
        with boundary(place, wrong.append):
            measures = read_measures(further_identities(name, listing.subjects, settings), settings)
    yield from (found_at(place, error) for error in wrong)
    lacking = () if wrong else tuple(sorted({*listing.with_series} - {*map(str, measures.values.index)}))
    if lacking:
        yield note(
            f"{len(lacking)} of {len(listing.with_series)} subjects with a scan have no whole FreeSurfer measures and "
            f"lack this view: {named(lacking)}.",
            lacking,
        )


def without_further(settings: CohortSettings) -> CohortSettings:
    """The same cohort of scans without FreeSurfer's measures."""
    return replace(settings, freesurfer=FreeSurferSettings())


def check_graphs(name: str, settings: CohortSettings, _: bool) -> Checked:
    """A cohort of graphs: every missing file, or the first mistake in the labels."""
    place = place_of(name, "graphs")
    wrong = [*missing_graphs(f"Cohort {name!r}", settings.tudataset, settings.fetch)]
    if not wrong:
        with boundary(place, wrong.append):
            graphs = ingest(list_graphs(name, settings).tables, settings, {})
    if wrong:
        return Checked(tuple(found_at(place, mistake) for mistake in wrong), (), (), 0)
    rows = graphs[["subject", "site", "diagnosis"]].itertuples(index=False)
    people = tuple(Person(subject, site, int(label), subject, 0) for subject, site, label in rows)
    return Checked((), people, tuple(sorted(set(graphs["site"]))), 0)


def check_simulation(_: str, settings: CohortSettings, __: bool) -> Checked:
    """A simulated cohort: only its size may be wrong."""
    simulate = settings.simulate
    people = tuple(
        Person(subject, drawn.site, int(drawn.diagnosis == "patient"), subject, simulate.sites[drawn.site].volumes)
        for subject, drawn in simulate_subjects(settings, Streams(simulate.seed)).items()
    )
    return Checked((), people, tuple(sorted(set(simulated_subjects(settings).values()))), simulate.regions)


def _check_images(name: str, settings: CohortSettings, every_scan: bool) -> Checked:
    # Here, as nilearn takes as long to import as all else of a check.
    from brainfed.checking._images import check_images

    return check_images(name, settings, every_scan=every_scan)


SOURCES: dict[str, Callable[[str, CohortSettings, bool], Checked]] = {
    "simulate": check_simulation,
    "nifti": _check_images,
    "timeseries": check_series,
    "bids": _check_images,
    "freesurfer": check_measures,
    "tudataset": check_graphs,
}


# A whole project: its config, every cohort, every split, and room on the disk.

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
    for experiment in (experiment for experiment in experiments if experiment.default):
        folds = sites if experiment.split.test_folds is None else experiment.split.test_folds
        for stage in (stage for variant in experiment.variants for stage in variant.stages.values()):
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
        cohorts, site = _valid_cohorts(content.get("cohorts")), str(study.get("site") or "")
        usable = UsableConfig(cohorts, (), 0, coordinates, site=site)
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


def _valid_cohorts(cohorts: object) -> dict[str, CohortSettings]:
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
    variants: dict[str, dict[str, Any]] = {}
    sentences: list[str] = []
    for name, definition in project.variants.items():
        try:
            for member, single in expand({name: definition}).single.items():
                check_definition(project, member, single)
            variants[name] = definition
        except UserError as error:
            sentences.append(str(error))
    broken = [name for name in project.variants if name not in variants]
    resolved: list[Experiment] = []
    for name, settings in project.experiments.items():
        try:
            if (usable := _without(broken, settings)) is not None:
                alone = replace(project, variants=variants, experiments={name: usable})
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
