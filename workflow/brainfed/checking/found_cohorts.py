"""Cohorts whose files the workflow finds by itself: fMRIPrep's output, FreeSurfer's measures, public graphs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pandas as pd

from brainfed.checking import images
from brainfed.checking.exclusions import exclude_known
from brainfed.checking.finding import Finding, Severity, boundary, collected, found_at, named
from brainfed.checking.people import Checked, Look, Person, leavers_among, nobody_left, twins_among
from brainfed.checking.runs import look_at_runs
from brainfed.checking.table import reading_remarks, unlabelled
from brainfed.cohort.phenotype.ingest import ingest
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.bids.listing import wanted_files
from brainfed.cohort.sources.listed import EXCLUDED, Absence, ListedSubject, Listing
from brainfed.cohort.sources.listing import list_cohort
from brainfed.cohort.sources.tudataset.files import missing_graphs
from brainfed.cohort.sources.tudataset.listing import list_graphs
from brainfed.imaging.morphometry.measures import read_measures
from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.runtime.errors import UserError

NAMED_NONE: tuple[Absence, ...] = ("no series", "no FreeSurfer id")
"""Reasons that leave out one subject and do not stop the run."""

LookAtAll = Callable[[Listing], tuple[dict[str, Look], list[Finding]]]
"""Reads the files of all subjects that have any: the looks at those without mistakes, and the mistakes."""


def check_derivative(
    name: str,
    settings: CohortSettings,
    atlas: Atlas | ProbabilisticAtlas | None,
    mistakes: list[Finding],
    *,
    every_scan: bool,
) -> Checked:
    """A BIDS derivative and a parcellation, None with its mistakes where it cannot be read."""
    place = f"cohort {name}: images"

    def look_at_all(listing: Listing) -> tuple[dict[str, Look], list[Finding]]:
        space = images.Space(atlas)
        looks: dict[str, Look] = {}
        found: list[Finding] = []
        for listed in (one for one in listing.subjects if one.has_series):
            wrong: list[UserError] = []
            look = None
            with boundary(f"Subject {listed.subject}", wrong.append):
                look = look_at_runs(listed, settings, space, wrong.append)
            found += [_wrong(place, error, listed.subject, settings) for error in wrong]
            if look is not None and not wrong:
                looks[listed.subject] = look
        looks, unusable = images.read_scans(looks, listing.subjects, settings, atlas, every=every_scan)
        found += [_wrong(place, error, subject, settings) for subject, error in unusable]
        return looks, [*found, *images.remarks(looks, listing.subjects, settings, space, place)]

    checked = _check(name, settings, look_at_all, place)
    regions = 0 if atlas is None else len(atlas.regions)
    return replace(checked, findings=(*mistakes, *checked.findings), regions=regions)


def check_measures(name: str, settings: CohortSettings) -> Checked:
    """FreeSurfer's tables, or the stats files of a SUBJECTS_DIR."""
    place = f"cohort {name}: measures"

    def look_at_all(listing: Listing) -> tuple[dict[str, Look], list[Finding]]:
        identities = {one.subject: str(one.series) for one in listing.subjects if one.has_series}
        failed: list[UserError] = []
        with boundary(place, failed.append):
            measures = read_measures(identities, settings)
        if failed:
            return {}, [found_at(place, error) for error in failed]
        wrong = [
            _wrong(place, UserError(problem), subject, settings)
            for subject, problem in sorted(measures.problems.items())
        ]
        notes = [Finding("notes", place, remark) for remark in measures.remarks]
        return {str(subject): Look(0, str(subject)) for subject in measures.values.index}, [*wrong, *notes]

    return _check(name, settings, look_at_all, place)


def check_graphs(name: str, settings: CohortSettings) -> Checked:
    """A cohort of graphs: every missing file, or the first mistake in the labels."""
    place = f"cohort {name}: graphs"
    wrong = [*missing_graphs(f"Cohort {name!r}", settings.tudataset, settings.fetch)]
    if not wrong:
        with boundary(place, wrong.append):
            graphs = ingest(list_graphs(name, settings).phenotype, settings, {})
    if wrong:
        return Checked(tuple(found_at(place, mistake) for mistake in wrong), (), (), 0)
    rows = graphs[["subject", "site", "diagnosis"]].itertuples(index=False)
    people = tuple(Person(subject, site, int(label), subject, 0) for subject, site, label in rows)
    return Checked((), people, tuple(sorted(set(graphs["site"]))), 0)


def _check(name: str, settings: CohortSettings, look_at_all: LookAtAll, place: str) -> Checked:
    """The tables and files as the workflow lists them, then the content of the files."""
    tables = f"cohort {name}: tables and files"
    wrong: list[UserError] = []
    with boundary(tables, wrong.append):
        listing = list_cohort(name, replace(settings, on_invalid="drop"))
        participants = ingest(listing.phenotype, settings, listing.absences, listing.motion_tables)
    if wrong:
        return Checked(tuple(found_at(tables, error) for error in wrong), (), (), 0)
    looks, found = look_at_all(listing)
    everybody = _people(participants, listing.subjects, looks, settings)
    mean_fd = dict(zip(participants["subject"], participants["mean_fd"].astype("float64"), strict=True))
    people, excluded, reasons = exclude_known(place, everybody, looks, mean_fd, settings)
    wrong_files = [one for one in found if one.severity != "notes"]
    reasons |= {subject: one.sentence for one in reversed(wrong_files) for subject in one.subjects}
    reasons |= listing.absences
    phenotype = (listing.phenotype,) if isinstance(listing.phenotype, str) else listing.phenotype
    absent = [*_left_out(listing, tables, settings)]
    dropped = {subject for one in (*absent, *found) if one.severity == "drops" for subject in one.subjects}
    unknown = participants.loc[participants["diagnosis"].isna(), "subject"].tolist()
    findings = [
        *collected(tables, reading_remarks, phenotype, settings, tables),
        *([unlabelled(unknown, len(participants), settings, tables)] if unknown else []),
        *absent,
        *found,
        *(nobody_left(name, place, dropped) if not everybody else ()),
        *(_nobody_known(name, tables, settings, len(unknown)) if not everybody and not dropped and unknown else ()),
        *twins_among(place, everybody),
        *excluded,
    ]
    sites = tuple(sorted(set(participants["site"])))
    return Checked(tuple(findings), people, sites, 0, leavers_among(_labels(participants), people, reasons))


def _nobody_known(name: str, place: str, settings: CohortSettings, subjects: int) -> Iterator[Finding]:
    """What stops a run of a cohort without a label."""
    sentence = (
        f"Cohort {name!r}: expected a subject whose {settings.target} is known, found none among {subjects}; fix "
        f"columns.{settings.target}, its codes or the table."
    )
    yield Finding("stops", place, sentence)


def _labels(participants: pd.DataFrame) -> dict[str, tuple[str, int | None]]:
    """Subject -> site and label."""
    rows = participants[["subject", "site", "diagnosis"]].astype({"diagnosis": "float64"})
    return {
        subject: (site, int(label) if label >= 0 else None) for subject, site, label in rows.itertuples(index=False)
    }


def _people(
    participants: pd.DataFrame,
    listed: tuple[ListedSubject, ...],
    looks: Mapping[str, Look],
    settings: CohortSettings,
) -> tuple[Person, ...]:
    """The people who take part once the mistakes that stop the run are fixed."""
    fixed = {one.subject: Look(0, one.subject) for one in listed if one.absence not in (*NAMED_NONE, EXCLUDED)}
    known = fixed | dict(looks) if settings.on_invalid == "error" else looks
    rows = participants.set_index("subject").loc[sorted(known), ["site", "diagnosis"]].astype({"diagnosis": "float64"})
    return tuple(
        Person(subject, site, int(label) if label >= 0 else None, known[subject].twin, known[subject].timepoints)
        for subject, site, label in rows.itertuples(name=None)
        if settings.unlabelled == "keep" or label >= 0
    )


def _left_out(listing: Listing, place: str, settings: CohortSettings) -> Iterator[Finding]:
    """Rows without files to use, by reason, and files without a row."""
    total, wanted = len(listing.subjects), wanted_files(settings) if settings.source == "bids" else {}
    for reason in sorted(set(listing.absences.values()) - {EXCLUDED}):
        subjects = tuple(subject for subject, absence in listing.absences.items() if absence == reason)
        if reason in NAMED_NONE:
            sentence = f"{len(subjects)} of {total} rows are left out ({reason}): {named(subjects)}."
            yield Finding("notes", place, sentence, subjects)
            continue
        dropping = settings.on_invalid == "drop"
        pattern = f", {wanted[reason][1]} in {settings.bids.derivatives}" if reason in wanted else ""
        remedy = "they are left out" if dropping else "bring the files, or leave them out with on_invalid: drop"
        yield Finding(
            "drops" if dropping else "stops",
            place,
            f"{len(subjects)} of {total} subjects: {reason}{pattern} ({named(subjects)}); {remedy}.",
            subjects,
        )
    if listing.unlisted:
        more = len(listing.unlisted)
        strangers = "1 subject with files has" if more == 1 else f"{more} subjects with files have"
        yield Finding(
            "notes",
            place,
            f"{strangers} no row in the table, the first is "
            f"{listing.unlisted[0]}; add rows, or fix the ids if they should be found.",
        )


def _wrong(place: str, error: UserError, subject: str, settings: CohortSettings) -> Finding:
    severity: Severity = "stops" if settings.on_invalid == "error" else "drops"
    return found_at(place, error, severity, (subject,))
