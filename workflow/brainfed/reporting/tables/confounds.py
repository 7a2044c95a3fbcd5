"""What could pass for a diagnosis: one paragraph on motion and site, made from all that was measured of them.

Every sentence gives its number. None says that sites are alike: a single summary (mean connectivity) can be the same at
every site while the pattern of connections names the site, so the two stand in one sentence, the identification first.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.quality.differences import (
    ClassesBySite,
    GroupDifference,
    SiteDifferences,
    classes_by_site,
    group_difference,
    site_differences,
)
from brainfed.evaluation.site_trace import FEWEST
from brainfed.reporting.rounding import p_value, rounded, signed
from brainfed.reporting.tables.sites import SiteRow


@dataclass(frozen=True)
class Identification:
    """How well a subject's site is identified from what the graph compares, a summary of the features.

    Attributes:
        accuracy: share of the subjects, each by a model that did not see it; mean over graphs.
        chance: share of the largest site; mean over graphs.
        subjects: of the smallest graph, at sites with 5 or more.
    """

    accuracy: float
    chance: float
    subjects: int

    @property
    def above_chance(self) -> bool:
        """By more than two standard errors of guessing."""
        error = np.sqrt(self.chance * (1 - self.chance) / self.subjects)
        return bool(self.accuracy > self.chance + 2 * error)


@dataclass(frozen=True)
class Confounds:
    """All that was measured; None where it was not.

    Attributes:
        features: what methods learn from: `connectivity` or `measures`.
        classes: patients and controls by site.
        identified: the site from what the graph compares.
        summary: mean connectivity by site.
        motion: mean FD of patients and controls.
        motion_sites: mean FD by site.
    """

    features: str
    classes: ClassesBySite | None = None
    identified: Identification | None = None
    summary: SiteDifferences | None = None
    motion: GroupDifference | None = None
    motion_sites: SiteDifferences | None = None


def find_confounds(kept: pd.DataFrame, traces: list[SiteRow], *, morphometry: bool) -> Confounds:
    """Measure them.

    Args:
        kept: the analysed subjects with site, diagnosis (-1 unknown) and measures.
        traces: how well the site is identified from the embedding of each kind of graph.
        morphometry: whether the features are FreeSurfer measures.
    """
    known = [trace for trace in traces if trace.embeddings]
    widest = max(known, key=lambda trace: trace.fewest_subjects, default=None)
    diagnosis = kept["diagnosis"].where(kept["diagnosis"] >= 0)
    return Confounds(
        "measures" if morphometry else "connectivity",
        classes_by_site(diagnosis, kept["site"]),
        Identification(widest.accuracy, widest.chance, widest.fewest_subjects) if widest else None,
        None if morphometry else site_differences(kept["mean_fc"], kept["site"]),
        group_difference(kept["mean_fd"], diagnosis),
        site_differences(kept["mean_fd"], kept["site"]),
    )


def confound_sentences(found: Confounds, words: ClassWords = DIAGNOSIS_WORDS) -> list[str]:
    """The sentences of the paragraph, in order: site and diagnosis, site and features, motion."""
    sentences = [
        _classes(found.classes, words),
        *_site(found, words),
        _motion(found.motion, words),
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
        f"Site and {target}: the more frequent {target} of each site is right for {_percent(found.guessed)} of the "
        f"subjects, that of the whole cohort for {_percent(found.chance)} (Cram\u00e9r\u2019s V = "
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
            f"The site is identified from what the graph compares (a summary of {found.features}): {accuracy} of the "
            f"subjects at sites with {FEWEST} or more are assigned to their own site, where naming the largest site is "
            f"right for {chance}. A method can therefore learn the site in place of the {words.target}, as far as the "
            "two go together."
        ]
        end = ": that is one number a subject, which can hide what many connections show together."
    else:
        said = [
            f"The site is not identified from what the graph compares (a summary of {found.features}) "
            f"better than by naming the largest site ({accuracy} of the subjects at sites with {FEWEST} or more, "
            f"against {chance})."
        ]
        end = "."
    return [*said, f"The site {summary}{end}"] if summary else said


def _motion(found: GroupDifference | None, words: ClassWords) -> str:
    if found is None:
        return ""
    return (
        f"Motion and {words.target}: mean FD {rounded(found.patients)} mm in {words.many[1]} and "
        f"{rounded(found.controls)} mm in {words.many[0]}, a difference of "
        f"{signed(found.patients - found.controls)} mm (95 % interval {signed(found.low)} to {signed(found.high)}, "
        f"d = {signed(found.effect, 2)}; Welch\u2019s t-test, {p_value(found.p)}). The method \u201cmotion\u201d shows "
        f"how well motion alone predicts the {words.target}, where it is among those of a table."
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
