"""Checks of one cohort, by its source."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from brainfed.checking import table
from brainfed.checking.exclusions import exclude_known
from brainfed.checking.files import check_files, check_orphans
from brainfed.checking.finding import Finding, Severity, boundary, collected, found_at
from brainfed.checking.further_measures import check_further_measures, without_further
from brainfed.checking.people import Checked, Look, Person, leavers_among, nobody_left, people_of, twins_among
from brainfed.checking.series import SeriesCheck
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.freesurfer.further import further_measures
from brainfed.cohort.sources.listed import EXCLUDED, ListedSubject
from brainfed.cohort.sources.missing_inputs import missing_inputs
from brainfed.cohort.sources.simulated.listing import simulated_subjects
from brainfed.cohort.sources.simulated.phenotype import simulate_subjects
from brainfed.runtime.errors import Refuse, UserError
from brainfed.runtime.streams import Streams

Looking = Callable[[ListedSubject, Refuse], Look | None]
"""Reads one subject's files and refuses their mistakes; None where they cannot be read."""

Looked = tuple[dict[str, Look], list[tuple[str, UserError]]]
"""The looks at subjects without mistakes, and the mistakes of the others."""

LookAtAll = Callable[[tuple[ListedSubject, ...]], Looked]

Remarks = Callable[[Mapping[str, Look], tuple[ListedSubject, ...]], Iterable[Finding]]


def check_cohort(name: str, settings: CohortSettings, *, every_scan: bool = False) -> Checked:
    """Findings and participants of a cohort, from its tables and files, and the voxels of `every_scan` or of some."""
    place = _place(name, "files")
    failed: list[Finding] = []
    checked, beside = Checked((), (), (), 0), False
    with boundary(f"Cohort {name!r}", lambda error: failed.append(found_at(place, error))):
        beside = bool(further_measures(settings)) and not settings.simulates_thickness
        checked = SOURCES[settings.source](name, without_further(settings) if beside else settings, every_scan)
    if settings.source not in ("simulate", "tudataset"):
        failed += collected(place, table.alike_sites, checked.sites, _place(name, "phenotype table"))
    further = collected(_place(name, "measures"), check_further_measures, name, settings) if beside else []
    return replace(checked, findings=(*failed, *checked.findings, *further))


def check_series(name: str, settings: CohortSettings) -> Checked:
    """A cohort of region series in text files."""
    series = SeriesCheck(name, settings)
    place = _place(name, "parcellation")
    mistakes = tuple(found_at(place, error) for error in series.mistakes)

    def remarks(looks: Mapping[str, Look], _: tuple[ListedSubject, ...]) -> Iterable[Finding]:
        return series.remarks(looks, _place(name, "series"))

    checked = _check_table(name, settings, lambda listed: _look_at_all(listed, series.look), remarks, series.regions)
    return replace(checked, findings=(*mistakes, *checked.findings))


def check_images(name: str, settings: CohortSettings, every_scan: bool) -> Checked:
    """A cohort of 4D images and a parcellation."""
    # Here, as nilearn takes as long to import as all else of a check.
    from brainfed.checking import images

    place = _place(name, "images")
    atlas, mistakes = images.read_atlas(settings, _place(name, "parcellation"))
    space = images.Space(atlas)

    def look(listed: ListedSubject, refuse: Refuse) -> Look | None:
        return images.look_at_image(listed, settings, space, refuse)

    def look_at_all(everybody: tuple[ListedSubject, ...]) -> Looked:
        looks, mistakes = _look_at_all(everybody, look)
        looks, unusable = images.read_scans(looks, everybody, settings, atlas, every=every_scan)
        return looks, [*mistakes, *unusable]

    def remarks(looks: Mapping[str, Look], listed: tuple[ListedSubject, ...]) -> Iterable[Finding]:
        return images.remarks(looks, listed, settings, space, place)

    checked = _check_table(name, settings, look_at_all, remarks, len(atlas.regions) if atlas else 0)
    return replace(checked, findings=(*mistakes, *checked.findings))


def check_simulation(settings: CohortSettings) -> Checked:
    """A simulated cohort: only its size may be wrong."""
    simulate = settings.simulate
    people = tuple(
        Person(subject, drawn.site, int(drawn.diagnosis == "patient"), subject, simulate.sites[drawn.site].volumes)
        for subject, drawn in simulate_subjects(settings, Streams(simulate.seed)).items()
    )
    return Checked((), people, tuple(sorted(set(simulated_subjects(settings).values()))), simulate.regions)


def _check_derivative(name: str, settings: CohortSettings, every_scan: bool) -> Checked:
    from brainfed.checking.found_cohorts import check_derivative
    from brainfed.checking.images import read_atlas

    atlas, mistakes = read_atlas(settings, _place(name, "parcellation"))
    return check_derivative(name, settings, atlas, mistakes, every_scan=every_scan)


def _check_measures(name: str, settings: CohortSettings, _: bool) -> Checked:
    from brainfed.checking.found_cohorts import check_measures

    return check_measures(name, settings)


def _check_graphs(name: str, settings: CohortSettings, _: bool) -> Checked:
    from brainfed.checking.found_cohorts import check_graphs

    return check_graphs(name, settings)


SOURCES: dict[str, Callable[[str, CohortSettings, bool], Checked]] = {
    "simulate": lambda _, settings, __: check_simulation(settings),
    "nifti": check_images,
    "timeseries": lambda name, settings, _: check_series(name, settings),
    "bids": _check_derivative,
    "freesurfer": _check_measures,
    "tudataset": _check_graphs,
}


def _check_table(
    name: str, settings: CohortSettings, look_at_all: LookAtAll, remarks: Remarks, regions: int
) -> Checked:
    """The table, the files that it names, and the header of each."""
    files = _place(name, "files")
    findings = collected(files, _missing, name, settings, files)
    if settings.series is None or not settings.tables or not all(map(os.path.isfile, settings.tables)):
        return Checked(tuple(findings), (), (), regions)
    place = _place(name, "phenotype table")
    roster, found = table.read_roster(name, settings, place)
    if roster.listed:
        found += collected(place, table.reading_remarks, settings.tables, settings, place)
    findings = [*found, *findings, *collected(files, check_files, name, roster.listed, settings, files)]
    if roster.complete:
        findings += collected(place, table.remarks, roster.participants, settings, place)
        findings += collected(files, check_orphans, roster.listed, settings, files)
    content = _place(name, "series" if settings.source == "timeseries" else "images")
    looks, wrong = look_at_all(roster.listed)
    severity: Severity = "stops" if settings.on_invalid == "error" else "drops"
    findings += [found_at(content, error, severity, (subject,)) for subject, error in wrong]
    fixed = {one.subject: Look(0, one.subject) for one in roster.listed if one.absence not in ("no series", EXCLUDED)}
    everybody = people_of(roster.participants, fixed | looks if settings.on_invalid == "error" else looks)
    people = tuple(one for one in everybody if settings.unlabelled == "keep" or one.diagnosis is not None)
    if not everybody:
        findings += nobody_left(name, content, [subject for subject, _ in wrong])
    if everybody and not people:
        sentence = (
            f"Cohort {name!r}: expected a subject whose {settings.target} is known, found none among "
            f"{len(everybody)}; fix columns.{settings.target}, its codes or the table."
        )
        findings.append(Finding("stops", place, sentence))
    findings += [
        *twins_among(content, people),
        *collected(content, remarks, looks, roster.listed),
    ]
    mean_fd = {subject: person.mean_fd for subject, person in roster.participants.items()}
    people, excluded, reasons = exclude_known(content, people, looks, mean_fd, settings)
    findings += excluded
    reasons |= {subject: str(error) for subject, error in reversed(wrong)}
    reasons |= {one.subject: one.absence for one in roster.listed if one.absence}
    rows = {subject: (person.site, person.diagnosis) for subject, person in roster.participants.items()}
    sites = tuple(sorted({site for site, _ in rows.values()}))
    leavers = leavers_among(rows, people, reasons)
    return Checked(tuple(findings), people if roster.complete else (), sites, regions, leavers)


def _missing(name: str, settings: CohortSettings, place: str) -> Iterable[Finding]:
    """Files of the settings that do not exist."""
    return (found_at(place, mistake) for mistake in missing_inputs(name, settings))


def _look_at_all(everybody: Iterable[ListedSubject], look: Looking) -> Looked:
    """The looks at subjects without mistakes, and the mistakes of the others."""
    looks: dict[str, Look] = {}
    mistakes: list[tuple[str, UserError]] = []
    for listed in everybody:
        wrong: list[UserError] = []
        seen = None
        if listed.has_series:
            with boundary(f"Subject {listed.subject}, {listed.series}", wrong.append):
                seen = look(listed, wrong.append)
        mistakes += [(listed.subject, error) for error in wrong]
        if seen is not None and not wrong:
            looks[listed.subject] = seen
    return looks, mistakes


def _place(name: str, part: str) -> str:
    return f"cohort {name}: {part}"
