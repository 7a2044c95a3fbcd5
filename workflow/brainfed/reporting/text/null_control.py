"""Null control: with shuffled diagnoses a method without leakage has an AUC of 0.5."""

from collections.abc import Sequence

import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import corrected_t_test
from brainfed.reporting.rounding import rounded
from brainfed.reporting.text.answer import METRIC
from brainfed.reporting.variants import ShownVariant

CHANCE = 0.5
ENOUGH = 20
"""Smallest number of permutations for a test of their mean; every repeat is one."""


def permutation_means(runs: pd.DataFrame, variants: Sequence[ShownVariant]) -> pd.DataFrame:
    """Mean AUC of every permutation (row: repeat) and variant (column); variants with constant scores are left out."""
    chosen = runs[(runs["metric"] == METRIC) & (runs["scope"] == INSTITUTION)]
    means = chosen.pivot_table(index="repeat", columns="variant", values="value", aggfunc="mean")
    varying = chosen.groupby("variant")["value"].nunique() > 1
    return means[[variant.name for variant in variants if varying.get(variant.name, False)]]


def null_verdict(means: pd.DataFrame) -> str:
    """The control in one line."""
    found = means.mean()
    if found.empty:
        return "Null control, labels shuffled: no method gives different scores"
    return (
        f"Null control, labels shuffled: mean AUC from {rounded(found.min())} to {rounded(found.max())} "
        f"({len(found)} method{'s' if len(found) > 1 else ''}), where chance is {CHANCE}"
    )


def null_sentences(means: pd.DataFrame) -> list[str]:
    """Number of methods with 0.5 in their interval over permutations, and whether that is a test."""
    count = len(means)
    if count < 2:
        return [f"This is one permutation; at least {ENOUGH} repeats are needed to test that the mean is {CHANCE}."]
    tests = [corrected_t_test(means[name].dropna().to_numpy(), 0.0) for name in means]
    held = sum(test.ci_low <= CHANCE <= test.ci_high for test in tests)
    said = f"The 95 % interval over {count} permutations holds {CHANCE} for {held} of {len(tests)} methods"
    if count < ENOUGH:
        return [f"{said}. This is an illustration: at least {ENOUGH} permutations make a test."]
    return [f"{said}; by luck alone about one in twenty misses it."]
