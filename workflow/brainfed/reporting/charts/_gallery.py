"""Draw an experiment: scores, gains and learning curves, what crosses institutions, and what models reveal."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import LIRA, LOSS, ratio_of_splits, read_predictions, subgroup_scores, test_train_ratio
from brainfed.reporting import Groups, Interval, PageTests, Scored, ShownVariant, places, read_cohort, rounded
from brainfed.reporting.charts._curves import calibration_chart, confusion_chart, roc_chart
from brainfed.reporting.charts._lines import learning_chart, over_people, read_history, sure
from brainfed.reporting.charts._scores import (
    CHANCE,
    differences_chart,
    forest_chart,
    gain_chart,
    headline_chart,
    operating_chart,
    subgroups_chart,
)
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
        named: places of training; None: those of the words.
    """
    shown = [variant for variant in variants if np.isfinite(scores[variant.name].mean)]
    if not shown:
        return None
    ordered = sorted(shown, key=lambda variant: (-scores[variant.name].mean, variant.name))
    groups = named or places(words)
    sent = [(variant, sum(crossing.bytes for crossing in crossings_of(variant))) for variant in ordered]
    rows = [IntervalRow(variant, scores[variant.name]) for variant in ordered]
    score = interval_panel(rows, "AUC, mean over institutions and runs", groups, width=330, zero=CHANCE)
    return alt.hconcat(score, _bytes(sent, groups, words, width=330), spacing=62)


def _bytes(sent: Sequence[tuple[ShownVariant, int]], groups: Groups, words: ClassWords, width: int) -> Panel:
    """The bytes that every method sends on a logarithmic axis; hollow: entries of single subjects are among them."""
    rows = []
    for variant, count in sent:
        crossed = crossings_of(variant)
        single = any(crossing.patient_level for crossing in crossed)
        leaves = SINGLE.format(subjects=words.subjects) if single else SUMS if crossed else NONE
        rows.append({
            "variant": variant.name, "method": variant.title, "group": variant.place, "low": NOTHING,
            "mean": max(count, NOTHING), "high": max(count, NOTHING), "hollow": single,
            "shown": readable_bytes(count) if count else NONE, "leaves": leaves,
        })  # fmt: skip
    title = ["bytes that cross institutions in one run", f"(hollow: {SINGLE.format(subjects=words.subjects)} do)"]
    tip = ("method", "shown", "leaves")
    return dot_rows(pd.DataFrame(rows), title, groups, tip, width=width, named=False, ticks=BYTES)


# What models reveal of their training subjects: AUC beside that of an attack and what crosses, the best method first.


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
    score = [IntervalRow(leak.variant, sure(leak.score), rounded(leak.score, 2)) for leak in ordered]
    revealed = [
        IntervalRow(leak.variant, over_people(leak.auc, leak.low, leak.high), rounded(leak.auc, 2)) for leak in ordered
    ]
    attack = f"an attack ({ATTACK_TITLES[leaks[0].attack]})"
    if len({leak.attack for leak in leaks}) > 1:
        attack = f"the stronger attack ({ATTACK_TITLES[LIRA]} or {ATTACK_TITLES[LOSS]})"
    title = f"AUC of {attack}"
    panels = (
        interval_panel(score, "AUC of the method", groups, width=190, zero=CHANCE),
        interval_panel(revealed, title, groups, width=230, zero=CHANCE, zero_title="reveals nothing", named=False),
        _bytes([(leak.variant, leak.sent) for leak in ordered], groups, words, width=150),
    )
    return headed(alt.hconcat(*panels, spacing=50), _finding(leaks))


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
    "gain": "no federated method has its local or pooled counterpart in this experiment",
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
        inputs: `predictions` and `histories` (variants, inside them repeats), one `runs`, `tests`, `gain` table, one
            table `people`, `included` and `quality` of the cohort, and `splits` where subjects train that no fold
            tests.
        outputs: figure -> path.
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
    groups, folds = places(words, unseen=answer.unseen), len(predictions[["repeat", "fold"]].drop_duplicates())

    def strongest(names: "pd.Series[str]") -> Sequence[ShownVariant]:
        """The strongest of these variants at each place of training."""
        known = set(names)
        return strongest_by_place(runs, [variant for variant in variants if variant.name in known])

    charts: dict[str, alt.TopLevelMixin | None] = {
        "headline": headline_chart(answer, find_beside(compared), words),
        "forest": forest_chart(scored, variants, reference, groups, words.count),
        "differences": differences_chart(tests, variants, folds, groups),
        "traffic": traffic_chart(variants, means, words, groups),
        "gain": gain_chart(gain, variants, scored),
        "learning": learning_chart(history, variants, strongest(history["variant"]), groups, words.count),
    }
    absent = dict(ABSENT)
    if not pooled:
        absent |= dict.fromkeys(("roc", "calibration", "confusion", "operating", "subgroups"), NOT_POOLED)
    else:
        front = in_front(answer) or strongest_by_place(runs, variants)
        probable = strongest(predictions.loc[predictions["kind"] == "probability", "variant"])
        charts["roc"] = roc_chart(predictions, variants, front, scored, words, groups)
        charts["calibration"] = calibration_chart(predictions, variants, probable, words, groups)
        charts["confusion"] = confusion_chart(predictions, variants, words)
        if words.count > 2:
            absent |= dict.fromkeys(("operating", "subgroups"), TWO_CLASSES)
        else:
            ahead = predictions[predictions["variant"].isin([variant.name for variant in front])]
            people = read_cohort(participants, included, quality)
            charts["operating"] = operating_chart(predictions, variants, ratio, groups)
            charts["subgroups"] = subgroups_chart(subgroup_scores(ahead, people), front, words, groups)
    for name in dict.fromkeys((*charts, *absent)):
        finding = verdict(answer) if name == "headline" and charts[name] is not None else ""
        save_chart(charts.get(name) or note_chart(absent[name]), outputs[name], finding)
