"""Draw an experiment: scores, differences, predictions, gains and learning curves as charts."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import ratio_of_splits, read_predictions, subgroup_scores, test_train_ratio
from brainfed.reporting import Groups, PageTests, Scored, ShownVariant, places, read_cohort
from brainfed.reporting.charts._curves import calibration_chart, confusion_chart, operating_chart, roc_chart
from brainfed.reporting.charts._exchanges import traffic_chart
from brainfed.reporting.charts._scores import differences_chart, forest_chart, headline_chart, subgroups_chart
from brainfed.reporting.charts._style import note_chart, save_chart
from brainfed.reporting.charts._training import gain_chart, learning_chart, read_history
from brainfed.reporting.text import find_answer, find_beside, in_front, strongest_by_place, verdict

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
