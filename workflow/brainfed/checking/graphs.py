"""Checks of a cohort of public graphs: the files and the labels of its data sets; jobs alone read the edges."""

from brainfed.checking.finding import Finding
from brainfed.checking.people import Checked, Person
from brainfed.cohort.phenotype.ingest import ingest
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.tudataset.files import missing_graphs
from brainfed.cohort.sources.tudataset.listing import list_graphs
from brainfed.runtime.errors import UserError


def check_graphs(name: str, settings: CohortSettings) -> Checked:
    """A cohort of graphs: every missing file, or the first mistake in the labels."""
    place = f"cohort {name}: graphs"
    missing = [*missing_graphs(f"Cohort {name!r}", settings.tudataset, settings.fetch)]
    if missing:
        return Checked(tuple(Finding("stops", place, str(mistake)) for mistake in missing), (), (), 0)
    try:
        graphs = ingest(list_graphs(name, settings).phenotype, settings, {})
    except UserError as error:
        return Checked((Finding("stops", place, str(error)),), (), (), 0)
    rows = graphs[["subject", "site", "diagnosis"]].itertuples(index=False)
    people = tuple(Person(subject, site, int(label), subject, 0) for subject, site, label in rows)
    return Checked((), people, tuple(sorted(set(graphs["site"]))), 0)
