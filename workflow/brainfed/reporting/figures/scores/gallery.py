"""Draw the figures of an experiment: learning curves, scores and differences of its methods."""

from collections.abc import Mapping, Sequence

import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.experiment import ratio_of_splits, test_train_ratio
from brainfed.evaluation.predictions import read_predictions
from brainfed.reporting.figures.scores.curves import calibration_figure, roc_figure
from brainfed.reporting.figures.scores.gain import gain_figure
from brainfed.reporting.figures.scores.learning import learning_figure, read_history
from brainfed.reporting.figures.scores.scores import differences_figure, forest_figure, headline_figure
from brainfed.reporting.figures.style import drawing, note_figure, save_svg
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.scored import Scored
from brainfed.reporting.text.answer import find_answer
from brainfed.reporting.text.baselines import find_fedni
from brainfed.reporting.variants import ShownVariant

NOT_POOLED = "a class of one data set is not that of another, so their graphs are not pooled"


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
    """Write the SVGs called headline, forest, differences, roc, calibration, gain and learning.

    Args:
        variants: in the order of the table.
        repeats: number of repeats.
        inputs: `predictions` and `histories` (variants, inside them repeats), one `runs`, `tests`, `gain` table, and
            where subjects train that no fold tests `splits` and one table `participants`.
        reference: reference variant of the tests.
        outputs: figure -> path.
        words: names of the classes.
        pooled: whether a class means the same in all institutions; else the curves of pooled subjects are a note.
    """
    order = [(variant.name, repeat) for variant in variants for repeat in range(repeats)]
    predictions = read_predictions(order, inputs["predictions"])
    history = read_history([(*run, path) for run, path in zip(order, inputs["histories"], strict=True)])
    runs, tests, gain = (pd.read_csv(inputs[name][0], sep="\t") for name in ("runs", "tests", "gain"))
    people = inputs.get("participants", [])
    ratio = ratio_of_splits(inputs["splits"], people[0]) if people else test_train_ratio(predictions)
    with drawing():
        scored = Scored(runs, ratio, pooled)
        compared = PageTests(scored, variants, reference)
        save_svg(headline_figure(find_answer(compared), find_fedni(compared), words), outputs["headline"])
        save_svg(forest_figure(scored, variants, reference, words), outputs["forest"])
        save_svg(differences_figure(tests, variants, words), outputs["differences"])
        roc = roc_figure(predictions, variants, reference, words) if pooled else note_figure(NOT_POOLED)
        save_svg(roc, outputs["roc"])
        calibration = calibration_figure(predictions, variants, words) if pooled else note_figure(NOT_POOLED)
        save_svg(calibration, outputs["calibration"])
        save_svg(gain_figure(gain, variants, scored), outputs["gain"])
        save_svg(learning_figure(history, variants), outputs["learning"])
