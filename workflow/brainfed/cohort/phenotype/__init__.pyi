from ._table import (
    EXCEL_SEPARATOR, read_table_text, separator_of, decoded, foreign_content, excel_line, ALWAYS_MISSING, Row,
    cohort_rows,
)
from ._participant import (
    PLAIN, plain_number, mean_displacement, ONE_SITE, Participant, read_participant, FIELDS, ALL, in_order, values_of,
    as_written, graph_rows,
)
from ._ingest import ingest, people_of_table, participants_table

__all__ = [
    "EXCEL_SEPARATOR", "read_table_text", "separator_of", "decoded", "foreign_content", "excel_line", "ALWAYS_MISSING",
    "Row", "cohort_rows",
    "PLAIN", "plain_number", "mean_displacement", "ONE_SITE", "Participant", "read_participant", "FIELDS", "ALL",
    "in_order", "values_of", "as_written", "graph_rows",
    "ingest", "people_of_table", "participants_table",
]
