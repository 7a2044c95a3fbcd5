"""Panel: every method minus the reference, with tests."""

from dataclasses import dataclass

from brainfed.reporting.metric_titles import METRIC_TITLES, SHOWN_METRICS
from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.scores import DifferenceTable, difference_table
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class Tests:
    """The tables of tests.

    Attributes:
        tables: by scope, inside it by metric.
        family: number of tests that Holm's correction counts.
        reference: the variant that all others are compared with.
        idle: sentences on settings that changed nothing.
    """

    tables: list[DifferenceTable]
    family: int
    reference: ShownVariant
    idle: list[str]


def _content(known: Known) -> Tests:
    variants, table = known.outline.variants, known.differences
    tables = [
        difference_table(f"{METRIC_TITLES[metric]}, {title}", table, variants, metric, scope, known.runs)
        for scope, title in known.scopes.items()
        for metric in SHOWN_METRICS
    ]
    reference = known.outline.variant(known.outline.reference)
    return Tests(tables, int(table["p_corrected"].notna().sum()), reference, known.idle)


PANEL = Panel("tests", Place.SCORES, _content, "panels/tests.html.j2")
