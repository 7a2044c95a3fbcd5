"""Why the plain graph network falls behind, and what repairs it: a reading aid in words."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.reporting.intervals import signed
from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.rivals import listed
from brainfed.reporting.scored import Scored, significant
from brainfed.reporting.variants import ShownVariant

EXPERIMENT = "why"
PLAIN = ("fedgcn", "fedni")
METRIC = "auc"


def why_sentences(cohort: CohortOutline, outline: ExperimentOutline, scored: Scored) -> list[str]:
    """Homophily beside chance, then every plain graph method beside its variants and the network without a graph."""
    if outline.name.removesuffix("-quick") != EXPERIMENT:
        return []
    held = {variant.name: variant for variant in outline.variants}
    said = []
    if "homophily" in cohort.figures:
        said += homophily_sentences(pd.read_csv(Path(cohort.figures["homophily"]).with_suffix(".tsv"), sep="\t"))
    return said + [_repairs(held[name], outline.variants, scored) for name in PLAIN if name in held]


def homophily_sentences(table: pd.DataFrame) -> list[str]:
    """How often neighbours share a diagnosis, and how often partners drawn at random would.

    Args:
        table: title, label, found, chance, a row a graph and label (`homophily_table`).
    """
    means = table[table["label"] == "diagnosis"].groupby("title", sort=False)[["found", "chance"]].mean()
    parts = [
        f"{100 * found:.0f} % ({title}; by chance {100 * chance:.0f} %)"
        for title, found, chance in zip(means.index, means["found"].tolist(), means["chance"].tolist(), strict=True)
        if np.isfinite(found)
    ]
    if not parts:
        return []
    return [
        f"Edges that join equal diagnoses: {', '.join(parts)}. A graph network averages a subject with its "
        "neighbours: where they are hardly more alike than chance, it averages the signal away."
    ]


def _repairs(plain: ShownVariant, variants: Sequence[ShownVariant], scored: Scored) -> str:
    """Which variants of a method are significantly better, or worse, than the method as the paper has it."""
    own = [variant for variant in variants if variant.method == plain.method and variant.name != plain.name]
    others = [*own, *(variant for variant in variants if variant.name == "fedmlp")]
    if not others:
        return f"{plain.title} has no variant here."
    tests = scored.differences(plain.name, [variant.name for variant in others], METRIC)
    if not any(np.isfinite(p) for _, p in tests.values()):
        return f"Too few runs to say what changes {plain.title}."

    def told(sign: int) -> list[str]:
        return [
            f"{variant.title} ({signed(tests[variant.name][0].mean)})"
            for variant in others
            if significant(tests[variant.name][1]) and sign * tests[variant.name][0].mean > 0
        ]

    better, worse = (listed(told(sign), "and") or "none" for sign in (1, -1))
    mean = scored.interval(plain.name, METRIC).mean
    return (
        f"Beside {plain.title} as it is (AUC {mean:.3f}), significantly better: {better}; significantly worse: {worse} "
        f"({len(others)} compared, Holm-corrected)."
    )
