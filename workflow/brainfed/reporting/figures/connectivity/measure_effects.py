"""Effect size of every FreeSurfer measure between patients and controls, or a class and all others.

Descriptive: it uses every analysed subject and no method reads it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.imaging.morphometry.measure_names import measure_of
from brainfed.reporting.figures.connectivity.group_connectivity import GroupEffects, group_effects, joined
from brainfed.reporting.figures.style import FAINT, RULE, SERIES, WIDE, drawing, new_figure, save_svg
from brainfed.runtime.artefacts import canonical_json, read_arrays, read_table, write_text

KINDS = ("volume", "thickness", "area")
SHOWN = 20


def draw_measures(
    measures: str,
    participants: str,
    included: str,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the SVG called measures, and the numbers called summary.

    Args:
        measures: the cohort's FreeSurfer measures.
        participants: the phenotype artefact.
        included: the subjects of the analysis.
        outputs: figure -> path.
        words: names of the classes.
    """
    decided = read_table(included, ["subject", "included"])
    subjects = sorted(decided.loc[decided["included"], "subject"])
    known = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"].dropna()
    file = read_arrays(measures, ["measures"])
    place = {subject: row for row, subject in enumerate(file.subjects)}
    labelled = [subject for subject in subjects if subject in known.index]
    values = file.arrays["measures"][[place[subject] for subject in labelled]].astype(np.float64)
    codes = known[labelled].to_numpy(dtype=np.int64)
    contrasts = [group_effects(values, codes == code, named) for code, named in words.contrasts]
    names = tuple(file.metadata["regions"])
    with drawing():
        save_svg(measures_figure(contrasts, names), outputs["measures"])
    summary = {
        "regions": len(names),
        "constant": int((np.ptp(values, axis=0) == 0).sum()),
        **joined([_summary(effects, names) for effects in contrasts]),
    }
    write_text(outputs["summary"], canonical_json(summary) + "\n")


def _summary(effects: GroupEffects, names: tuple[str, ...]) -> dict[str, Any]:
    strongest = [{"name": names[index], "d": round(float(effects.effect[index]), 3)} for index in effects.strongest(10)]
    return {**effects.counted, "strongest": strongest}


def measures_figure(contrasts: Sequence[GroupEffects], names: tuple[str, ...]) -> Figure:
    """The strongest Cohen's d, and all of them by kind of measure with the interval of chance; one row a contrast."""
    figure = new_figure(WIDE, 3.9 * len(contrasts))
    rows = figure.subplots(len(contrasts), 2, width_ratios=[1.5, 1], squeeze=False)
    for (largest, kinds), effects in zip(rows, contrasts, strict=True):
        _draw(largest, kinds, effects, names)
    return figure


def _draw(largest: Axes, kinds: Axes, effects: GroupEffects, names: tuple[str, ...]) -> None:
    chosen = effects.strongest(SHOWN)[::-1]
    colours = dict(zip(KINDS, (colour for colour, _ in SERIES), strict=False))
    reach, words = 1.96 * effects.chance_sd, effects.words
    for row, index in enumerate(chosen):
        colour = colours.get(measure_of(names[index]), FAINT)
        largest.plot([0, effects.effect[index]], [row, row], color=colour, alpha=0.5, linewidth=2)
        largest.plot(effects.effect[index], row, "o", color=colour, markersize=5)
    largest.set_yticks(range(len(chosen)), [names[index] for index in chosen], fontsize=7)
    largest.set_title(f"The {len(chosen)} strongest of {len(names)}")
    present = [kind for kind in KINDS if kind in {str(measure_of(name)) for name in names}]
    for row, kind in enumerate(present):
        values = effects.effect[_of_kind(names, kind)]
        spread = np.random.default_rng(0).uniform(-0.28, 0.28, len(values))
        kinds.scatter(values, row + spread, s=9, color=colours[kind], alpha=0.6, linewidths=0)
    kinds.set_yticks(range(len(present)), [f"{kind}\nn = {len(_of_kind(names, kind))}" for kind in present])
    kinds.set_title("All, by kind")
    for axes in (largest, kinds):
        axes.axvspan(-reach, reach, color=RULE, alpha=0.35, zorder=0, linewidth=0)
        axes.axvline(0, color=FAINT, linewidth=0.8)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"effect size, {words.many[1]} minus {words.many[0]} (Cohen's d)")


def _of_kind(names: tuple[str, ...], kind: str) -> NDArray[np.int64]:
    return np.flatnonzero([measure_of(name) == kind for name in names])
