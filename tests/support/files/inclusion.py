"""Who is included and what is listed, in one call."""

from brainfed.cohort.quality.inclusion import include, join_quality
from brainfed.cohort.quality.issues import list_issues
from brainfed.cohort.quality.measures import measure


def decide(participants, quality, coverage, settings, measures=None, strangers=()):
    """The included table and the issues; without `measures`, nothing of connectivity is known."""
    if measures is None:
        measures = measure(participants, quality, coverage, settings.min_coverage)
    measured = join_quality(participants, quality, measures)
    included = include(measured, settings)
    return included, list_issues(measured, included, coverage, settings, strangers)
