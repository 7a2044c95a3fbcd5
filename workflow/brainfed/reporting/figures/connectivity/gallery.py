"""Draw the differences in connectivity between patients and controls, or between each class and all others."""

from collections.abc import Mapping, Sequence
from typing import Any

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.imaging.series.files import load_runs, load_series
from brainfed.reporting.figures.connectivity.group_connectivity import GroupConnectivity, compare_groups, joined
from brainfed.reporting.figures.connectivity.matrices import effects_figure, means_figure
from brainfed.reporting.figures.connectivity.strongest import brain_figure, chord_figure, region_coordinates
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.runtime.artefacts import canonical_json, read_table, write_text


def draw_connectivity(
    series: Sequence[str],
    participants: str,
    included: str,
    atlas: tuple[str, str | None] | None,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
    *,
    by_run: bool = False,
) -> None:
    """Write the SVGs called means, effects and strongest, and the numbers called summary.

    Args:
        series: the time series of all parts.
        participants: the phenotype artefact.
        included: the subjects of the analysis.
        atlas: parcellation image and region table (None: named by number), where the regions have a place; else a
            chord diagram is drawn.
        outputs: figure -> path.
        words: names of the classes; subjects without one are left out.
        by_run: whether a subject's connectivity is the mean over its runs.
    """
    decided = read_table(included, ["subject", "included"])
    known = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"].dropna()
    subjects = sorted(set(decided.loc[decided["included"], "subject"]) & set(known.index))
    found, regions = load_series(series, subjects)
    runs = load_runs(series) if by_run else {}
    contrasts = [
        compare_groups(found, {subject: int(known[subject] == code) for subject in subjects}, regions, named, runs)
        for code, named in words.contrasts
    ]
    with drawing():
        save_svg(means_figure(contrasts), outputs["means"])
        save_svg(effects_figure(contrasts), outputs["effects"])
        drawn = chord_figure(contrasts) if atlas is None else brain_figure(contrasts, region_coordinates(*atlas))
        save_svg(drawn, outputs["strongest"])
    compared = joined([_summary(groups) for groups in contrasts])
    summary = {"regions": len(regions), "connections": len(contrasts[0].effect), **compared}
    write_text(outputs["summary"], canonical_json(summary) + "\n")


def _summary(groups: GroupConnectivity) -> dict[str, Any]:
    row, column = groups.ends()
    strongest = [
        {
            "from": groups.regions[row[index]],
            "to": groups.regions[column[index]],
            "d": round(float(groups.effect[index]), 3),
        }
        for index in groups.strongest(10)
    ]
    return {**groups.counted, "strongest": strongest}
