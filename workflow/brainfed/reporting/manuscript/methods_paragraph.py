"""A paragraph for the methods section of an article: cohort, splits, models, statistics, software."""

from collections.abc import Mapping, Sequence

from brainfed.reporting.at_site.sentences import study_sentences
from brainfed.reporting.cohort_section import CohortSection
from brainfed.reporting.experiment_section import ExperimentSection
from brainfed.reporting.outline import SharedStudy
from brainfed.reporting.text.baselines import listed

FEATURES = {
    "connectivity": "region series ({atlas}{regions} regions)",
    "morphometry": "FreeSurfer measures ({regions})",
    "graphs": "graphs",
}
"""Kind of a cohort -> what its methods read."""


def methods_paragraph(
    cohort: CohortSection,
    experiment: ExperimentSection,
    seed: int,
    versions: Mapping[str, str],
    study: SharedStudy | None = None,
) -> str:
    """Plain text to copy, of one experiment.

    Args:
        cohort: as counted.
        experiment: as scored.
        seed: of every random stream.
        versions: package -> version of the software.
        study: the study between sites that the report belongs to; None where all institutions are in one place.
    """
    between: list[str] = []
    if study is not None:
        outline = experiment.outline
        unseen = outline.split["validation"] == "leave_one_site_out"
        between = study_sentences(study, outline.variants, cohort.subjects, unseen=unseen)
    means = "" if study is not None else "institutions and "
    return " ".join(
        [
            _cohort(cohort),
            *between,
            f"Design: {experiment.setting}.",
            experiment.protocol,
            f"Compared were {listed(_titles(experiment), 'and')}.",
            f"Scores are means over {means}{experiment.runs} runs, a run being {experiment.run}; intervals "
            "and tests are corrected for overlapping training sets (Nadeau and Bengio 2003), p values also for "
            "multiple comparisons (Holm 1979).",
            f"All random streams derive from the seed {seed}. Software: {_software(versions)}.",
        ]
    )


def _cohort(cohort: CohortSection) -> str:
    left = cohort.attrition.left_out
    reasons = left[0][0] if len(left) == 1 else listed([f"{count} {reason}" for reason, count in left], "and")
    total = sum(count for _, count in left)
    verb = "was" if total == 1 else "were"
    listing = f"{cohort.attrition.listed} {cohort.subjects} in the table"
    excluded = f" Of {listing}, {total} {verb} left out ({reasons})." if left else ""
    read = FEATURES[cohort.kind].format(
        atlas="" if cohort.atlas == "atlas" else f"{cohort.atlas}, ", regions=cohort.connectivity.get("regions", "")
    )
    made = "simulated cohort" if cohort.simulated else "cohort"
    return (
        f"We analysed {read} of {cohort.analysed} {cohort.subjects} ({cohort.classes}) from {cohort.sites} "
        f"{cohort.site}{'' if cohort.sites == 1 else 's'} of the {made} {cohort.name}.{excluded}"
    )


def _titles(experiment: ExperimentSection) -> Sequence[str]:
    """Every method once, in the order of the config."""
    return list(dict.fromkeys(variant.title for variant in experiment.outline.variants if not variant.is_control))


def _software(versions: Mapping[str, str]) -> str:
    first = ["brainfed", *(name for name in versions if name != "brainfed")]
    return ", ".join(f"{name} {versions[name]}" for name in first if name in versions)
