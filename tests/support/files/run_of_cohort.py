"""What the jobs of a run make of a cohort, in one process and as one part."""

from brainfed.cohort.phenotype import ingest
from brainfed.cohort.quality import include, join_quality, list_issues
from brainfed.cohort.sources import list_cohort
from brainfed.imaging.extraction import ScanFiles, SubjectRuns, extract_bids_shard, extract_shard
from brainfed.imaging.morphometry import write_measures
from brainfed.imaging.scans import load_atlas
from brainfed.imaging.series import ShardFiles, read_shard
from brainfed.runtime import UserError, read_arrays, read_table
from support.files.quality_tables import measure


def parts_of(folder, name="part"):
    """The files of a part of a cohort."""
    return ShardFiles(*(folder / f"{name}{end}" for end in (".safetensors", "-quality.parquet", "-coverage.parquet")))


def write_part(listing, members, settings, out):
    """The part of these subjects as the job of the cohort's source writes it."""
    tr = {one.subject: settings.tr.get(one.site) for one in members}
    if settings.source == "timeseries":
        known = {subject: time for subject, time in tr.items() if time is not None}
        read_shard({one.subject: one.series for one in members}, settings, out, known)
        return
    if settings.source == "freesurfer":
        write_measures({one.subject: str(one.series) for one in members}, settings, out)
        return
    atlas = load_atlas(settings.atlas, listing.parcellation, listing.labels)
    if settings.source == "bids":
        extract_bids_shard({one.subject: SubjectRuns(one.runs) for one in members}, atlas, settings, out)
    else:
        scans = {one.subject: ScanFiles(one.series, one.confounds, tr[one.subject]) for one in members}
        extract_shard(scans, atlas, settings, out)


def of_the_jobs(folder, settings):
    """The sentence of the listing or the part that stops the run, problems by subject, and the file of series."""
    out = parts_of(folder)
    try:
        listing = list_cohort("c", settings)
        write_part(listing, [one for one in listing.subjects if one.has_series], settings, out)
    except UserError as error:
        return str(error), {}, None
    problems = read_table(out.quality).set_index("subject")["problem"].to_dict()
    return "", problems | listing.absences, read_arrays(out.series)


def of_the_run(folder, settings):
    """The sentence that stops the run, why each subject leaves (empty: it stays), and the file of numbers."""
    out = parts_of(folder)
    try:
        listing = list_cohort("c", settings)
        participants = ingest(listing.tables, settings, listing.absences)
        write_part(listing, [one for one in listing.subjects if one.has_series], settings, out)
        measured = measured_scans(participants, read_table(out.quality), read_table(out.coverage), settings)
        included = include(measured, settings)
    except UserError as error:
        return str(error), {}, None
    return "", dict(zip(included["subject"], included["reason"], strict=True)), read_arrays(out.series)


def measured_scans(participants, quality, coverage, settings):
    """The participants with the measures of their scans, but for those of connectivity."""
    measures = measure(participants, quality, coverage, settings.min_coverage)
    return join_quality(participants, quality, measures)


def decide(participants, quality, coverage, settings, measures=None, strangers=()):
    """The included table and the issues; without `measures`, nothing of connectivity is known."""
    if measures is None:
        measures = measure(participants, quality, coverage, settings.min_coverage)
    measured = join_quality(participants, quality, measures)
    included = include(measured, settings)
    return included, list_issues(measured, included, coverage, settings, strangers)


def found_by_severity(checked):
    """Of a check: the sentences that stop the run, and subject -> sentence of those that leave."""
    stops = [one.sentence for one in checked.findings if one.severity == "stops"]
    drops = {subject: one.sentence for one in checked.findings if one.severity == "drops" for subject in one.subjects}
    return stops, drops
