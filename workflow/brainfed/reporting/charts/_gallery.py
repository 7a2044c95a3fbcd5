"""Draw an experiment: scores, gains and learning curves, what crosses institutions, and what models reveal."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import LIRA, LOSS, ratio_of_splits, read_predictions, subgroup_scores, test_train_ratio
from brainfed.reporting import Groups, Interval, PageTests, Scored, ShownVariant, places, read_cohort, rounded
from brainfed.reporting.charts._curves import calibration_chart, confusion_chart, operating_chart, roc_chart
from brainfed.reporting.charts._lines import gain_chart, learning_chart, read_history
from brainfed.reporting.charts._scores import CHANCE, differences_chart, forest_chart, headline_chart, subgroups_chart
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
from brainfed.reporting.text import find_answer, find_beside, in_front, strongest_by_place, verdict

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


# Draw an experiment: scores, differences, predictions, gains and learning curves as charts.

NOT_POOLED = "a class of one data set is not that of another, so their graphs are not pooled"
TWO_CLASSES = "defined for two classes"
ABSENT = {
    "headline": "no federated method has an AUC",
    "differences": "one method alone: there is nothing to compare it with",
    "roc": "no run has all classes among its test subjects",
    "calibration": "no method of this experiment gives probabilities",
    "operating": "no run has both classes among its test subjects",
    "subgroups": "no group of ten subjects of each class was tested",
    "traffic": "no method has an AUC",
    "gain": "no federated method has its local or pooled twin in this experiment",
    "learning": "no method of this experiment trains in rounds",
}
"""Chart -> reason why there is nothing to draw."""


def draw_experiment(
    variants: Sequence[ShownVariant],
    repeats: int,
    inputs: Mapping[str, Sequence[str]],
    *,
    reference: str,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
    pooled: bool = True,
) -> None:
    """Write the SVGs called headline, forest, differences, roc, calibration, confusion, operating, subgroups, traffic,
    gain and learning.

    Args:
        variants: in the order of the table, with the `cost.json` of their first repeat.
        repeats: number of repeats.
        inputs: `predictions` and `histories` (variants, inside them repeats), one `runs`, `tests`, `gain` table, one
            table `people`, `included` and `quality` of the cohort, and `splits` where subjects train that no fold
            tests.
        reference: reference variant of the tests.
        outputs: figure -> path.
        words: names of the classes.
        pooled: whether a class means the same in all institutions; else the curves of pooled subjects are a note.
    """
    order = [(variant.name, repeat) for variant in variants for repeat in range(repeats)]
    predictions = read_predictions(order, inputs["predictions"])
    history = read_history([(*run, path) for run, path in zip(order, inputs["histories"], strict=True)])
    runs, tests, gain = (pd.read_csv(inputs[name][0], sep="\t") for name in ("runs", "tests", "gain"))
    participants, included, quality = (inputs[name][0] for name in ("people", "included", "quality"))
    splits = inputs.get("splits", [])
    ratio = ratio_of_splits(splits, participants) if splits else test_train_ratio(predictions)
    scored = Scored(runs, ratio, pooled)
    compared = PageTests(scored, variants, reference)
    answer = find_answer(compared)
    means = {variant.name: scored.interval(variant.name, "auc") for variant in variants}
    groups, front = places(words, unseen=answer.unseen), in_front(answer) or strongest_by_place(runs, variants)
    charts: dict[str, alt.TopLevelMixin | None] = {
        "headline": headline_chart(answer, find_beside(compared), words),
        "forest": forest_chart(scored, variants, reference, groups, words.count),
        "differences": differences_chart(
            tests, variants, len(predictions[["repeat", "fold"]].drop_duplicates()), groups
        ),
        "traffic": traffic_chart(variants, means, words, groups),
        "gain": gain_chart(gain, variants, scored),
        "learning": learning_chart(
            history, variants, strongest_by_place(runs, _trained(history, variants)), groups, words.count
        ),
    }
    if pooled:
        people = read_cohort(participants, included, quality)
        charts |= _of_pooled_subjects(predictions, people, variants, scored, front, words, groups)
    absent = ABSENT if pooled else ABSENT | dict.fromkeys(("roc", "calibration", "confusion"), NOT_POOLED)
    if words.count > 2 or not pooled:
        absent = absent | dict.fromkeys(("operating", "subgroups"), NOT_POOLED if not pooled else TWO_CLASSES)
    for name in (*charts, *(name for name in absent if name not in charts)):
        finding = verdict(answer) if name == "headline" and charts[name] is not None else ""
        save_chart(charts.get(name) or note_chart(absent[name]), outputs[name], finding)


def _trained(history: pd.DataFrame, variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The variants with learning curves."""
    held = set(history["variant"])
    return [variant for variant in variants if variant.name in held]


def _of_pooled_subjects(
    predictions: pd.DataFrame,
    people: pd.DataFrame,
    variants: Sequence[ShownVariant],
    scored: Scored,
    front: Sequence[ShownVariant],
    words: ClassWords,
    groups: Groups,
) -> dict[str, alt.TopLevelMixin | None]:
    """Charts of the predictions of all institutions, in which a class is the same."""
    probable = set(predictions.loc[predictions["kind"] == "probability", "variant"])
    calibrated = [variant for variant in variants if variant.name in probable]
    found: dict[str, alt.TopLevelMixin | None] = {
        "roc": roc_chart(predictions, variants, front, scored, words, groups),
        "calibration": calibration_chart(
            predictions, variants, strongest_by_place(scored.runs, calibrated), words, groups
        ),
        "confusion": confusion_chart(predictions, variants, words),
    }
    if words.count == 2:
        ahead = predictions[predictions["variant"].isin([variant.name for variant in front])]
        found["operating"] = operating_chart(predictions, variants, scored.ratio, groups)
        found["subgroups"] = subgroups_chart(subgroup_scores(ahead, people), front, words, groups)
    return found
