"""Confounds of the diagnosis: one paragraph on motion and site, with all their measurements.

Every sentence gives its number. None claims that sites are alike: a single summary (mean connectivity) can be equal at
all sites while the pattern of connections identifies the site. One sentence reports both, the identification first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.quality.differences import (
    ClassesBySite,
    GroupDifference,
    SiteDifferences,
    against_rest,
    classes_by_site,
    group_difference,
    site_differences,
)
from brainfed.evaluation.site_trace import FEWEST
from brainfed.reporting.rounding import p_value, rounded, signed
from brainfed.reporting.tables.homophily import SiteRow


@dataclass(frozen=True)
class Identification:
    """Accuracy of the site predicted from the input of the graph, a summary of the features.

    Attributes:
        accuracy: share of correct subjects, each by a model not trained on it; mean over graphs.
        chance: share of the largest site; mean over graphs.
        subjects: number in the smallest graph, at sites with 5 or more.
    """

    accuracy: float
    chance: float
    subjects: int

    @property
    def above_chance(self) -> bool:
        """Whether the accuracy exceeds chance by more than two standard errors."""
        error = np.sqrt(self.chance * (1 - self.chance) / self.subjects)
        return bool(self.accuracy > self.chance + 2 * error)


@dataclass(frozen=True)
class Confounds:
    """All measured confounds; None if not measured.

    Attributes:
        features: kind of features: `connectivity` or `measures`.
        classes: the classes by site.
        identified: prediction of the site from the input of the graph.
        summary: mean connectivity by site.
        motion: mean FD of two groups, patients and controls or a class and all others, with their words.
        motion_sites: mean FD by site.
    """

    features: str
    classes: ClassesBySite | None = None
    identified: Identification | None = None
    summary: SiteDifferences | None = None
    motion: tuple[tuple[GroupDifference, ClassWords], ...] = ()
    motion_sites: SiteDifferences | None = None


def find_confounds(
    kept: pd.DataFrame, traces: list[SiteRow], words: ClassWords = DIAGNOSIS_WORDS, *, morphometry: bool
) -> Confounds:
    """Measure the confounds.

    Args:
        kept: the analysed subjects with site, diagnosis (-1 unknown) and measures.
        traces: accuracy of the site predicted from the embedding of each kind of graph.
        words: names of the classes.
        morphometry: whether the features are FreeSurfer measures.
    """
    known = [trace for trace in traces if trace.embeddings]
    widest = max(known, key=lambda trace: trace.fewest_subjects, default=None)
    diagnosis = kept["diagnosis"].where(kept["diagnosis"] >= 0)
    motion = [
        (group_difference(kept["mean_fd"], against_rest(diagnosis, code)), named) for code, named in words.contrasts
    ]
    return Confounds(
        "measures" if morphometry else "connectivity",
        classes_by_site(diagnosis, kept["site"]),
        Identification(widest.accuracy, widest.chance, widest.fewest_subjects) if widest else None,
        None if morphometry else site_differences(kept["mean_fc"], kept["site"]),
        tuple((found, named) for found, named in motion if found is not None),
        site_differences(kept["mean_fd"], kept["site"]),
    )


def confound_sentences(found: Confounds, words: ClassWords = DIAGNOSIS_WORDS) -> list[str]:
    """The sentences of the paragraph, in order: site and diagnosis, site and features, motion."""
    sentences = [
        _classes(found.classes, words),
        *_site(found, words),
        _motion(found.motion),
        _motion_sites(found.motion_sites),
    ]
    return [sentence for sentence in sentences if sentence]


def _classes(found: ClassesBySite | None, words: ClassWords) -> str:
    if found is None:
        return ""
    target, alone = words.target, ""
    if found.one_class:
        alone = f" At {found.one_class} of {found.sites} sites all subjects have one {target}."
    return (
        f"Site and {target}: guessing each site\u2019s more frequent {target} is right for {_percent(found.guessed)} "
        f"of the subjects, guessing that of the whole cohort for {_percent(found.chance)} (Cram\u00e9r\u2019s V = "
        f"{rounded(found.v, 2)}; chi-square test, {p_value(found.p)}).{alone}"
    )


def _site(found: Confounds, words: ClassWords) -> list[str]:
    summary = ""
    if found.summary is not None:
        summary = (
            f"explains {_percent(found.summary.explained)} of the variance of a subject\u2019s mean connectivity "
            f"(one-way analysis of variance, {p_value(found.summary.p)})"
        )
    if found.identified is None:
        unknown = "how well it is identified from what a graph compares was not measured"
        return [f"The site {summary}; {unknown}."] if summary else []
    accuracy, chance = _percent(found.identified.accuracy), _percent(found.identified.chance)
    if found.identified.above_chance:
        said = [
            f"Site and {found.features}: a model names the site from a summary of {found.features} for {accuracy} of "
            f"the subjects at sites with {FEWEST} or more, where naming the largest site is right for {chance}. A "
            f"method can therefore learn the site in place of the {words.target}, as far as the two go together."
        ]
        end = ": that is one number a subject, which can hide what many connections show together."
    else:
        said = [
            f"Site and {found.features}: a model names the site from a summary of {found.features} no better than by "
            f"naming the largest site ({accuracy} of the subjects at sites with {FEWEST} or more, against {chance})."
        ]
        end = "."
    return [*said, f"The site {summary}{end}"] if summary else said


def _motion(motion: Sequence[tuple[GroupDifference, ClassWords]]) -> str:
    if not motion:
        return ""
    target = motion[0][1].target
    compared = "; ".join(
        f"mean FD {rounded(found.patients)} mm in {words.many[1]} and "
        f"{rounded(found.controls)} mm in {words.many[0]}, a difference of "
        f"{signed(found.patients - found.controls)} mm (95 % interval {signed(found.low)} to {signed(found.high)}, "
        f"d = {signed(found.effect, 2)}; Welch\u2019s t-test, {p_value(found.p)})"
        for found, words in motion
    )
    return (
        f"Motion and {target}: {compared}. The score of the baseline \u201cMotion\u201d, where it was run, is that of "
        "motion alone."
    )


def _motion_sites(found: SiteDifferences | None) -> str:
    if found is None:
        return ""
    return (
        f"The site explains {_percent(found.explained)} of the variance of motion (one-way analysis of variance, "
        f"{p_value(found.p)})."
    )


def _percent(share: float) -> str:
    return f"{rounded(100 * share, 0)}\u00a0%"
