"""One cohort, by its source: region series, images, FreeSurfer's measures, public graphs, or a simulation."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from brainfed.checking._files import alike_sites, list_table, read_table
from brainfed.checking._finding import Finding, boundary, collected, failures, found_at, named, note, place_of, refusals
from brainfed.checking._people import Checked, Content, Look, Person, concluded, look_at_all, silent_regions
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
from brainfed.imaging.morphometry import read_measures
from brainfed.imaging.series import SeriesReader, checksum, shared_regions, varying_regions
from brainfed.runtime import Refuse, Streams, UserError


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
    identities = {one.subject: str(one.series) for one in listing.subjects if one.has_series}
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
