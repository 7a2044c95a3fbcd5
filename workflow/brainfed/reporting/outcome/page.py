"""The page on a study between sites: one HTML file without external resources, from the sites' counts alone."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from brainfed.evaluation.site_counts import standard_errors
from brainfed.reporting.charts.scores import SHAPES, by_site_chart
from brainfed.reporting.charts.style import IntervalRow, save_chart
from brainfed.reporting.document import chart_styles, environment, vega
from brainfed.reporting.intervals import FEWEST
from brainfed.reporting.outcome.outline import OutcomeExperiment, OutcomeOutline
from brainfed.reporting.outcome.results import ExperimentResult, read_results
from brainfed.reporting.outcome.tables import Table, score_table, site_table, undefined
from brainfed.reporting.outcome.words import outcome_screen
from brainfed.reporting.pictures import Picture, read_pictures
from brainfed.reporting.rounding import rounded
from brainfed.reporting.text.first_screen import FirstScreen
from brainfed.reporting.variants import places
from brainfed.runtime.artefacts import write_text
from brainfed.runtime.provenance import versions

CHART = "by-site"


@dataclass(frozen=True)
class OutcomeSection:
    """One experiment of the page.

    Attributes:
        result: its numbers.
        first: question, answer and facts.
        scores: all sites together.
        by_site: each site.
        undefined: sites whose balanced accuracy is undefined.
        picture: balanced accuracies at all sites; None without any.
    """

    result: ExperimentResult
    first: FirstScreen
    scores: Table
    by_site: Table
    undefined: list[str]
    picture: Picture | None

    @property
    def experiment(self) -> OutcomeExperiment:
        """What it compares."""
        return self.result.experiment

    @property
    def scored_sites(self) -> int:
        """Sites with a balanced accuracy."""
        return max((one.across.runs for one in self.result.variants), default=0)

    @property
    def reach(self) -> str:
        """Half the width of the interval over these sites, in standard errors."""
        return rounded(standard_errors(self.scored_sites), 1)

    @property
    def few(self) -> bool:
        """Whether runs are too few for intervals, or no runs of the same sites."""
        return self.experiment.unseen or self.experiment.tests_of_site < FEWEST


def write_outcome(outline: OutcomeOutline, path: Path) -> None:
    """Render the page into a file."""
    write_text(path, render_outcome(outline))


def render_outcome(outline: OutcomeOutline) -> str:
    """The page as text."""
    return environment().get_template("outcome.html.j2").render(
        outline=outline,
        sections=[_section(outline, experiment) for experiment in outline.experiments],
        places=places(outline.words),
        versions=versions(),
        vega=vega(),
        chart_styles=chart_styles(),
    )  # fmt: skip


def _section(outline: OutcomeOutline, experiment: OutcomeExperiment) -> OutcomeSection:
    result = read_results(outline, experiment)
    return OutcomeSection(
        result,
        outcome_screen(outline, result),
        score_table(result, outline.words),
        site_table(result, outline.words),
        undefined(result),
        _picture(outline, result),
    )


def _picture(outline: OutcomeOutline, result: ExperimentResult) -> Picture | None:
    shown = [one for one in result.variants if one.score.mean == one.score.mean]
    if not shown:
        return None
    rows = [IntervalRow(one.variant, one.score, one.variant.place, one.score.text) for one in shown]
    at_sites = [{site: value for site, value in one.at_sites.items() if value == value} for one in shown]
    chart = by_site_chart(rows, at_sites, places(outline.words), outline.words.count)
    finding = "; ".join(f"{one.variant.title} {one.score.text}" for one in shown)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{CHART}.svg"
        save_chart(chart, file, finding)
        subject = result.experiment.title
        return read_pictures(
            {CHART: str(file)},
            {CHART: _caption(outline, bars=any(row.found.known and not row.found.few for row in rows))},
            subject,
        )[CHART]


def _caption(outline: OutcomeOutline, *, bars: bool) -> str:
    each = "a small circle, which a tooltip names," if len(outline.sites) > len(SHAPES) else "a small mark"
    dot = (
        "Filled dot and bar: all sites together, with the 95 % interval of the table"
        if bars
        else "Filled dot: all sites"
    )
    return (
        f"Balanced accuracy of every method, of all sites together and at each site. {dot}. Below it {each} for each "
        "site that has a balanced accuracy. Dotted line: guessing."
    )
