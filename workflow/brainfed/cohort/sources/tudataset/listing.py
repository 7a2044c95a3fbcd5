"""List a cohort of public graphs: a graph stands where other cohorts have a subject."""

from brainfed.cohort.phenotype.graph_labels import COLUMNS, SITE, class_codes, graph_rows
from brainfed.cohort.phenotype.participant import read_participant
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.listed import ListedSubject, Listing, shard_name
from brainfed.cohort.sources.tudataset.files import missing_graphs, raw_folder, text_file


def list_graphs(name: str, settings: CohortSettings) -> Listing:
    """List cohort `name` with source tudataset.

    Raises:
        UserError: no data set is named, a file is absent, or the labels are unusable.
    """
    source = settings.tudataset
    for mistake in missing_graphs(f"Cohort {name!r}", source, settings.fetch):
        raise mistake
    tables = tuple(str(text_file(source, data_set, "graph_labels")) for data_set in source.names)
    codes = class_codes(settings.classes)
    subjects = tuple(
        ListedSubject(
            row.subject,
            str(row.cells[SITE]),
            str(raw_folder(source, str(row.cells[SITE]))),
            None,
            "",
            shard_name(row.subject, settings.shards),
            person=read_participant(row.table, row, COLUMNS, codes, settings.target, settings.classes),
        )
        for row in graph_rows(tables, settings.class_names)
    )
    return Listing(name, settings.atlas, tables if len(tables) > 1 else tables[0], None, None, subjects)
