"""Sentences on the weakness of the plain graph network and on the variants that improve it."""

from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.rounding import rounded, signed
from brainfed.reporting.scored import significant
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant

EXPERIMENT = "why"
PLAIN = ("fedgcn", "fedni")
METRIC = "auc"


def why_sentences(cohort: CohortOutline, outline: ExperimentOutline, compared: PageTests) -> list[str]:
    """Homophily against chance, then every plain graph method against its variants and the network without a graph."""
    if outline.name.removesuffix("-quick") != EXPERIMENT:
        return []
    held = {variant.name: variant for variant in outline.variants}
    said: list[str] = []
    if "homophily" in cohort.figures:
        table = pd.read_csv(Path(cohort.figures["homophily"]).with_suffix(".tsv"), sep="\t")
        said += homophily_sentences(table, cohort.words)
    return said + [_repairs(held[name], compared) for name in PLAIN if name in held]


def homophily_sentences(table: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> list[str]:
    """Share of neighbours with the same diagnosis, and the share by chance.

    Args:
        table: title, label, found, chance, a row a graph and label (`homophily_table`).
        words: names of the classes.
    """
    means = table[table["label"] == words.target].groupby("title", sort=False)[["found", "chance"]].mean()
    parts = [
        f"{rounded(100 * found, 0)} % ({title}; by chance {rounded(100 * chance, 0)} %)"
        for title, found, chance in zip(means.index, means["found"].tolist(), means["chance"].tolist(), strict=True)
        if np.isfinite(found)
    ]
    if not parts:
        return []
    return [
        f"Edges that join equal {words.targets}, in the graphs shown under Graphs (those of the first experiment of a "
        f"plain run that has any, not of every variant here): {', '.join(parts)}. A graph network averages a subject "
        "with its neighbours: where they are hardly more alike than chance, that may dilute the signal."
    ]


def _repairs(plain: ShownVariant, compared: PageTests) -> str:
    """The variants of a method that are significantly better, or worse, than the method of the paper."""
    variants = compared.variants
    own = [variant for variant in variants if variant.method == plain.method and variant.name != plain.name]
    others = [*own, *(variant for variant in variants if variant.name == "fedmlp")]
    if not others:
        return f"{plain.title} has no variant here."
    names = [variant.name for variant in others]
    tests = compared.differences(plain.name, names, METRIC)
    if not any(np.isfinite(p) for _, p in tests.values()):
        return f"Too few runs to say what changes {plain.title}."

    def titles(sign: int) -> list[str]:
        return [
            f"{variant.title} ({signed(tests[variant.name][0].mean, tests[variant.name][0].digits)})"
            for variant in others
            if significant(tests[variant.name][1]) and sign * tests[variant.name][0].mean > 0
        ]

    better, worse = (listed(titles(sign), "and") or "none" for sign in (1, -1))
    counted = compared.counted(plain.name, names, METRIC)
    counted = f", Holm-corrected {counted}" if counted else ""
    mean = compared.scored.interval(plain.name, METRIC).text
    return (
        f"Beside {plain.title} as it is (AUC {mean}), significantly better: {better}; significantly worse: {worse} "
        f"({len(others)} compared{counted})."
    )
