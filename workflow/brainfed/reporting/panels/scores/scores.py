"""Panel: all scores, as tables and as intervals."""

from dataclasses import dataclass

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.scores import ScoreTable, score_rows, undefined_count


@dataclass(frozen=True)
class Scores:
    """The tables of scores.

    Attributes:
        tables: by scope.
        undefined: number of undefined AUCs.
        idle: sentences on settings that changed nothing.
    """

    tables: list[ScoreTable]
    undefined: int
    idle: list[str]


def _content(known: Known) -> Scores:
    tables = [
        ScoreTable(title, score_rows(known.summary, known.outline.variants, scope, known.scored))
        for scope, title in known.scopes.items()
    ]
    return Scores(tables, undefined_count(known.summary), known.idle)


PANEL = Panel("scores", Place.SCORES, _content, "panels/scores.html.j2")
