"""The coordinator's page at the end of a study: `federation/outcome.html`."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.cohort import class_words
from brainfed.configuration import shown_variant
from brainfed.reporting import (
    FEWEST,
    Picture,
    chart_styles,
    environment,
    places,
    read_pictures,
    read_variant,
    rounded,
    vega,
)
from brainfed.reporting.charts import SHAPES, IntervalRow, by_site_chart, save_chart
from brainfed.reporting.text import NUMERALS, Fact, FirstScreen, question
from brainfed.runtime import versions, write_text
from brainfed.sites._outcome import (
    ExperimentResult,
    OutcomeExperiment,
    OutcomeOutline,
    Table,
    VariantResult,
    by_class,
    read_results,
    score_table,
    site_table,
    undefined,
)
from brainfed.sites._scores import FEWEST_TESTED, read_counts, standard_errors
from brainfed.sites.released import Stated
from brainfed.sites.study import LEDGER, StudyPlace, study_digest

# The first screen of the page on a study between sites: question, answer, and how sure it is, from counts alone.

MOST_NAMED = 8
"""Sites that are named with the number of their people."""


@dataclass(frozen=True)
class Chosen:
    """The variants that an answer names.

    Attributes:
        best: the federated variant with the highest balanced accuracy; without one, the best of all.
        federated: number of federated variants with a balanced accuracy.
        alone: the same model trained at each site alone, or the best variant that trains so; None without one.
        same: whether it is the same model.
    """

    best: VariantResult
    federated: int
    alone: VariantResult | None
    same: bool


def choose(results: Sequence[VariantResult]) -> Chosen | None:
    """The variants of the answer; None if none has a balanced accuracy."""
    scored = [result for result in results if np.isfinite(result.score.mean)]
    if not scored:
        return None
    federated = [result for result in scored if result.variant.family == "federated" and not result.variant.is_control]
    best = _best(federated or scored)
    counterpart = best.variant.counterpart("alone")
    same = next((result for result in scored if result.variant.name == counterpart.name), None)
    trained = [result for result in scored if result.variant.family != "baseline" and result is not best]
    alone = [result for result in trained if result.variant.trains_alone]
    other = same or (_best(alone) if alone else None)
    return Chosen(best, len(federated), other, same is not None and not counterpart.other_model)


def outcome_screen(outline: OutcomeOutline, result: ExperimentResult) -> FirstScreen:
    """The first screen of an experiment."""
    asked = question(outline.words, outline.kind, len(outline.sites), unseen=result.experiment.unseen)
    chosen = choose(result.variants)
    facts = [_whom(outline, result), _compared(outline, result)]
    if chosen is None:
        return FirstScreen(asked, _no_answer(outline, result), tuple(facts))
    facts += [_sure(result, chosen, outline.noun), _elsewhere(chosen), *_use(outline, chosen.best)]
    return FirstScreen(asked, _answer(result, chosen, outline.words.count), tuple(facts))


def _best(results: list[VariantResult]) -> VariantResult:
    return max(results, key=lambda outcome: outcome.score.mean)


def _answer(result: ExperimentResult, chosen: Chosen, classes: int) -> str:
    title = chosen.best.variant.title
    if result.experiment.unseen:
        said = f"Trained by the other sites (federated) and tested at one that took no part, {title} has a balanced "
        said += "accuracy of"
    elif chosen.federated:
        said = f"Trained by all sites without sharing them (federated), {title} has a balanced accuracy of"
    else:
        said = f"No federated method has a score; {title} has the highest balanced accuracy,"
    beside = ""
    if chosen.alone is not None:
        model = "" if chosen.same else f"{chosen.alone.variant.title}, trained by "
        beside = f"; {model}each site alone{'' if chosen.same else ','} {chosen.alone.score}"
    return f"{said} {chosen.best.score}{beside}. Guessing has {rounded(1 / classes, 2)}, and 1 is perfect."


def _no_answer(outline: OutcomeOutline, result: ExperimentResult) -> str:
    if result.tested is None:
        return (
            f"There is no answer: no site sent a row, as none has a fold with {outline.fewest} tested {outline.noun} "
            "or more."
        )
    return (
        f"There is no answer: the tested {outline.noun} of all sites lack a class, and without it a balanced accuracy "
        "has no value."
    )


def _whom(outline: OutcomeOutline, result: ExperimentResult) -> Fact:
    words = outline.words
    total = {code: sum(site.people[code] for site in result.sites) for code in words.shown}
    people = {site.name: sum(site.people.values()) for site in result.sites}
    each = ", ".join(f"{name} {count:,}" for name, count in people.items())
    if len(people) > MOST_NAMED:
        each = f"{min(people.values()):,} to {max(people.values()):,} at each"
    noun = f"simulated {outline.noun}" if outline.simulated else outline.noun
    many = f"{sum(total.values()):,} tested {noun} at {len(result.sites)} {words.site}s"
    said = f"{many} ({by_class(total, words)}): {each}."
    return Fact("On whom", f"{said} {result.tested.sentence}" if result.tested else said)


def _compared(outline: OutcomeOutline, result: ExperimentResult) -> Fact:
    titles = [outcome.variant.title for outcome in result.variants]
    noun = "method" if len(titles) == 1 else "methods"
    numeral = NUMERALS[len(titles)] if len(titles) < len(NUMERALS) else str(len(titles))
    where = f"at the same {len(outline.sites)} {outline.words.site}s and on the same {outline.noun}"
    return Fact("What was compared", f"{numeral.capitalize()} {noun} {where}: {'; '.join(titles)}.")


def _sure(result: ExperimentResult, chosen: Chosen, noun: str) -> Fact:
    score, said = chosen.best.score, []
    if result.experiment.unseen:
        said.append(
            f"A test is a whole site, so there is no interval for other {noun} of these sites; that over sites is "
            "below."
        )
    elif score.known and not score.few:
        said.append(f"Brackets hold 95 % intervals, which are for other {noun} of these sites.")
    else:
        tests = f"{score.runs} test{'s are' if score.runs != 1 else ' is'}"
        said.append(f"There is no interval over tests, for other {noun} of these sites: {tests} too few.")
    if chosen.alone is not None:
        difference = result.difference(chosen.best, chosen.alone).as_difference()
        kind = "Federated" if chosen.federated else chosen.best.variant.title
        said.append(f"{kind} minus alone: {difference}.")
    if chosen.federated > 1:
        said.append(
            f"{chosen.best.variant.title} scored highest of {chosen.federated} federated methods on the same tests, so "
            "its score is a little too high."
        )
    return Fact("How sure", " ".join(said))


def _elsewhere(chosen: Chosen) -> Fact:
    """How far the sites differ, and what that says of others."""
    best, across = chosen.best, chosen.best.across
    scores = {site: value for site, value in best.at_sites.items() if np.isfinite(value)}
    if len(scores) < 2:
        return Fact(
            "At other sites", "Fewer than two sites have a balanced accuracy, so nothing shows how sites differ."
        )
    low, high = min(scores, key=lambda site: scores[site]), max(scores, key=lambda site: scores[site])
    ends = rounded(scores[low], 2), rounded(scores[high], 2)
    first = (
        f"{best.variant.title} has {ends[0]} at every site."
        if ends[0] == ends[1]
        else f"{best.variant.title} has {ends[0]} at {low} and {ends[1]} at {high}, its lowest and highest."
    )
    said = [
        f"{first} The mean of the sites is {rounded(across.mean, 2)}, with a 95 % interval over sites of "
        f"{rounded(across.low, 2)} to {rounded(across.high, 2)}."
    ]
    if len(scores) < FEWEST:
        said.append(
            f"{NUMERALS[len(scores)].capitalize()} sites are too few to say what another site would reach: how much "
            "sites differ is hardly known."
        )
    return Fact("At other sites", " ".join(said))


def _use(outline: OutcomeOutline, best: VariantResult) -> list[Fact]:
    if outline.words.count > 2:
        return []
    finds, clears = (f"{rounded(100 * best.values[name].mean, 0)}\u00a0%" for name in ("recall", "specificity"))
    many = outline.words.many
    return [
        Fact(
            "How useful",
            f"At its usual cut-off {best.variant.title} recognises {finds} of the {many[1]} and {clears} of the "
            f"{many[0]}.",
        )
    ]


# The page on a study between sites: one HTML file without external resources, from the sites' counts alone.

CHART = "by-site"


@dataclass(frozen=True)
class OutcomeSection:
    """One experiment of the page: its numbers, its first screen, the tables of all sites together and of each site.

    `undefined` has the sites whose balanced accuracy is undefined; without any defined one there is no picture.
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
        return max((outcome.across.runs for outcome in self.result.variants), default=0)

    @property
    def reach(self) -> str:
        """Half the width of the interval over these sites, in standard errors."""
        return rounded(standard_errors(self.scored_sites), 1)

    @property
    def few(self) -> bool:
        """Whether runs are too few for intervals, or no runs of the same sites."""
        return self.experiment.unseen or self.experiment.tests_of_site < FEWEST


def render_outcome(outline: OutcomeOutline) -> str:
    """The page as text."""
    return environment().get_template("outcome.html.j2").render(
        outline=outline,
        sections=[_section(outline, experiment) for experiment in outline.experiments],
        places=places(outline.words),
        ledger=LEDGER,
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
    shown = [outcome for outcome in result.variants if outcome.score.mean == outcome.score.mean]
    if not shown:
        return None
    rows = [IntervalRow(outcome.variant, outcome.score) for outcome in shown]
    at_sites = [{site: value for site, value in outcome.at_sites.items() if value == value} for outcome in shown]
    chart = by_site_chart(rows, at_sites, places(outline.words), outline.words.count)
    finding = "; ".join(f"{outcome.variant.title} {outcome.score.text}" for outcome in shown)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{CHART}.svg"
        save_chart(chart, file, finding)
        subject = result.experiment.title
        return read_pictures(
            {CHART: str(file)},
            {CHART: _caption(outline, bars=any(row.interval.bounded for row in rows))},
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


# The page from the study's config and what its sites sent.


def write_outcome_page(
    place: StudyPlace, scores: Mapping[str, Sequence[Mapping[str, Any]]], steps: int, path: Path
) -> None:
    """Write the page; `scores` has each site's rows, and `steps` is the number of rounds and sums."""
    ended = said_time(datetime.now().astimezone())
    write_text(path, render_outcome(outcome_outline(place, scores, steps, ended)))


def said_time(moment: datetime) -> str:
    """`24 November 2026, 19:40 (UTC+01:00)`, of a moment that knows its time zone."""
    return f"{moment:%d %B %Y, %H:%M} (UTC{moment.isoformat(timespec='minutes')[-6:]})"


def outcome_outline(
    place: StudyPlace, scores: Mapping[str, Sequence[Mapping[str, Any]]], steps: int, ended: str
) -> OutcomeOutline:
    """What the page shows; arguments as of `write_outcome_page`, and day and time of the end."""
    project = place.plan.project
    cohort, study = project.cohorts[place.cohort], project.study
    words = replace(class_words(cohort.target, cohort.classes), condition=cohort.condition, modality=cohort.modality)
    return OutcomeOutline(
        project=project.project,
        words=words,
        kind=cohort.kind,
        simulated=cohort.source == "simulate",
        sites=study.ordered,
        fewest=FEWEST_TESTED,
        experiments=tuple(
            OutcomeExperiment(
                name=each.name,
                title=each.settings.title or each.name,
                reference=each.settings.reference,
                repeats=each.repeats,
                folds=each.split.test_folds or len(study.sites),
                variants=tuple(read_variant(shown_variant(variant, each)) for variant in each.variants),
                unseen=each.regime.unseen,
            )
            for each in place.plan.experiments.values()
            if each.default
        ),
        counts=read_counts(scores, words.count),
        study=study,
        stated=Stated.of(place.plan),
        digest=study_digest(place.plan)[:16],
        config=place.config.name,
        steps=steps,
        ended=ended,
    )
