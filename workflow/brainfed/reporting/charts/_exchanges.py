"""Charts of what crosses institutions and what models reveal: AUC beside bytes, and beside an attack on membership."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import LIRA, LOSS
from brainfed.reporting import Groups, Interval, ShownVariant, places, rounded
from brainfed.reporting.charts._scores import CHANCE
from brainfed.reporting.charts._style import (
    Chart,
    IntervalRow,
    Panel,
    dot_rows,
    headed,
    interval_panel,
    note_chart,
    save_chart,
)
from brainfed.reporting.tables import ATTACK_TITLES, Leak, crossings_of, read_leaks, readable_bytes

# AUC beside the bytes that cross institutions, the best method first.

NOTHING = 100
"""Place on the axis, in bytes, of methods that send nothing."""
BYTES = {NOTHING: "nothing", **{10**power: readable_bytes(10**power).replace(".0", "") for power in range(3, 16)}}
"""Tick -> its words."""
NONE, SUMS, SINGLE = "nothing", "models or sums", "entries of single {subjects}"
"""What leaves an institution."""


def traffic_chart(
    variants: Sequence[ShownVariant],
    scores: Mapping[str, Interval],
    words: ClassWords = DIAGNOSIS_WORDS,
    named: Groups | None = None,
) -> Chart | None:
    """Every method's mean AUC, and the bytes of one run, both ways; None if no method has an AUC.

    Args:
        variants: with the `cost.json` of their first repeat, and those of their generators.
        scores: variant -> mean AUC over institutions and runs.
        words: nouns of the cohort.
        named: places of training; None: those of the words.
    """
    shown = [variant for variant in variants if np.isfinite(scores[variant.name].mean)]
    if not shown:
        return None
    ordered = sorted(shown, key=lambda variant: (-scores[variant.name].mean, variant.name))
    rows = [IntervalRow(one, scores[one.name], one.place, scores[one.name].text) for one in ordered]
    groups = named or places(words)
    sent = [(variant, sum(one.bytes for one in crossings_of(variant)), _leaves(variant)) for variant in ordered]
    score = interval_panel(rows, "AUC, mean over institutions and runs", groups, width=330, zero=CHANCE)
    return alt.hconcat(score, _bytes(sent, groups, words, width=330), spacing=62)


def _leaves(variant: ShownVariant) -> str:
    crossed = crossings_of(variant)
    return SINGLE if any(one.patient_level for one in crossed) else (SUMS if crossed else NONE)


def _bytes(sent: Sequence[tuple[ShownVariant, int, str]], groups: Groups, words: ClassWords, width: int) -> Panel:
    """The bytes that every method sends on a logarithmic axis; hollow: entries of single subjects are among them."""
    rows = [
        {
            "variant": variant.name, "method": variant.title, "group": variant.place, "low": NOTHING,
            "mean": max(count, NOTHING), "high": max(count, NOTHING), "hollow": leaves == SINGLE,
            "shown": readable_bytes(count) if count else NONE, "leaves": leaves.format(subjects=words.subjects),
        }
        for variant, count, leaves in sent
    ]  # fmt: skip
    title = ["bytes that cross institutions in one run", f"(hollow: {SINGLE.format(subjects=words.subjects)} do)"]
    return dot_rows(
        pd.DataFrame(rows), title, groups, ("method", "shown", "leaves"), width=width, named=False, ticks=BYTES
    )


# What models reveal of their training subjects: AUC beside that of an attack and what crosses, the best method first.

SURE = 100
"""Runs of an interval over people: enough to draw it."""


def draw_leakage(
    variants: Sequence[ShownVariant], summary: str, audit: str, output: str, words: ClassWords = DIAGNOSIS_WORDS
) -> None:
    """Write the chart as SVG; the first arguments are those of `read_leaks`, the words are nouns of the cohort."""
    save_chart(leakage_chart(read_leaks(variants, summary, audit), words), output)


def leakage_chart(leaks: Sequence[Leak], words: ClassWords = DIAGNOSIS_WORDS) -> Chart:
    """Every method's AUC, the AUC of the attack on it, and the bytes that it sends."""
    if not leaks:
        return note_chart("no method gives the scores of its training subjects")
    ordered, groups = sorted(leaks, key=lambda leak: (-leak.score, leak.variant.name)), places(words)
    own = [Interval(leak.score, np.nan, np.nan, 0) for leak in ordered]
    attacks = [Interval(leak.auc, leak.low, leak.high, SURE) for leak in ordered]
    score, revealed = (
        [IntervalRow(leak.variant, one, leak.variant.place, rounded(one.mean, 2))
         for leak, one in zip(ordered, found, strict=True)]
        for found in (own, attacks)
    )  # fmt: skip
    sent = [(leak.variant, leak.sent, _leaves(leak.variant)) for leak in ordered]
    title = f"AUC of {_attacks(leaks)}"
    panels = (
        interval_panel(score, "AUC of the method", groups, width=190, zero=CHANCE),
        interval_panel(revealed, title, groups, width=230, zero=CHANCE, zero_title="reveals nothing", named=False),
        _bytes(sent, groups, words, width=150),
    )
    return headed(alt.hconcat(*panels, spacing=50), _finding(leaks))


def _attacks(leaks: Sequence[Leak]) -> str:
    """The attack, or that it is the stronger one of each method."""
    made = {leak.attack for leak in leaks}
    if len(made) > 1:
        return f"the stronger attack ({ATTACK_TITLES[LIRA]} or {ATTACK_TITLES[LOSS]})"
    return f"an attack ({ATTACK_TITLES[made.pop()]})"


def _finding(leaks: Sequence[Leak]) -> str:
    """The best-scoring method of the federated ones, or of all, and what it reveals."""
    federated = [leak for leak in leaks if leak.variant.topology == "federated"]
    best = max(federated or leaks, key=lambda leak: (leak.score, leak.variant.name))
    which = "federated method" if federated else "method"
    above = "its interval contains 0.5" if best.low <= 0.5 else "its interval lies above 0.5"
    return f"{best.variant.title}, the best-scoring {which}: AUC of the attack {rounded(best.auc, 2)}, {above}"
