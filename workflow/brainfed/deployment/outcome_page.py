"""The coordinator's page at the end of a study: `federation/outcome.html`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from brainfed.cohort.classes import class_words
from brainfed.configuration.outline import shown_variant
from brainfed.configuration.planning.experiments import Experiment
from brainfed.deployment.attendance.released import Stated
from brainfed.deployment.introduction import study_digest
from brainfed.deployment.places import FOLDER, StudyPlace
from brainfed.deployment.site_scores import FEWEST_TESTED
from brainfed.evaluation.site_counts import read_counts
from brainfed.reporting.outcome.outline import OutcomeExperiment, OutcomeOutline, StudyFacts
from brainfed.reporting.outcome.page import write_outcome
from brainfed.reporting.variants import read_variant

LEDGER = FOLDER / "left-this-site.tsv"
"""What left a site, at the site."""


def write_outcome_page(
    place: StudyPlace, scores: Mapping[str, Sequence[Mapping[str, Any]]], steps: int, path: Path
) -> None:
    """Write the page.

    Args:
        place: the study's config.
        scores: site -> its rows.
        steps: number of rounds and sums.
        path: of the page.
    """
    write_outcome(outcome_outline(place, scores, steps, said_time(datetime.now().astimezone())), path)


def said_time(moment: datetime) -> str:
    """`24 November 2026, 19:40 (UTC+01:00)`, of a moment that knows its time zone."""
    return f"{moment:%d %B %Y, %H:%M} (UTC{moment.isoformat(timespec='minutes')[-6:]})"


def outcome_outline(
    place: StudyPlace, scores: Mapping[str, Sequence[Mapping[str, Any]]], steps: int, ended: str
) -> OutcomeOutline:
    """What the page shows; arguments as of `write_outcome_page` and of its `StudyFacts`."""
    project = place.plan.project
    cohort, study = project.cohorts[place.cohort], project.study
    stated = Stated.of(place.plan)
    words = replace(class_words(cohort.target, cohort.classes), condition=cohort.condition, modality=cohort.modality)
    facts = StudyFacts(
        digest=study_digest(place.plan)[:16],
        steps=steps,
        masked=study.secure_sums,
        sets=stated.sets,
        epsilon=stated.epsilon,
        secret_noise=study.noise == "secret",
        ended=ended,
        ledger=str(LEDGER),
        config=place.config.name,
    )
    return OutcomeOutline(
        project=project.project,
        words=words,
        kind=cohort.kind,
        simulated=cohort.source == "simulate",
        sites=study.ordered,
        fewest=FEWEST_TESTED,
        experiments=tuple(
            _experiment(each, len(study.sites)) for each in place.plan.experiments.values() if each.default
        ),
        counts=read_counts(scores, words.count),
        study=facts,
    )


def _experiment(experiment: Experiment, sites: int) -> OutcomeExperiment:
    return OutcomeExperiment(
        name=experiment.name,
        title=experiment.settings.title or experiment.name,
        reference=experiment.settings.reference,
        repeats=experiment.repeats,
        folds=experiment.split.test_folds or sites,
        variants=tuple(read_variant(shown_variant(variant, experiment)) for variant in experiment.variants),
        unseen=experiment.regime.unseen,
    )
