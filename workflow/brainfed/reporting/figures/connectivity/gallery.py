"""Draw how the connectivity of patients and controls differs."""

from collections.abc import Mapping, Sequence

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.imaging.series.files import load_runs, load_series
from brainfed.reporting.figures.connectivity.group_connectivity import compare_groups
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
        included: who is used.
        atlas: parcellation image and region table (None: named by number), where the regions have a place; else a
            chord diagram is drawn.
        outputs: figure -> path.
        words: what the classes are called; who is in neither takes no part.
        by_run: whether a subject's connectivity is the mean over its runs.
    """
    decided = read_table(included, ["subject", "included"])
    known = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"].dropna()
    subjects = sorted(set(decided.loc[decided["included"], "subject"]) & set(known.index))
    found, regions = load_series(series, subjects)
    runs = load_runs(series) if by_run else {}
    groups = compare_groups(found, {subject: int(known[subject]) for subject in subjects}, regions, words, runs)
    with drawing():
        save_svg(means_figure(groups), outputs["means"])
        save_svg(effects_figure(groups), outputs["effects"])
        drawn = chord_figure(groups) if atlas is None else brain_figure(groups, region_coordinates(*atlas))
        save_svg(drawn, outputs["strongest"])
    row, column = groups.ends()
    strongest = [
        {"from": regions[row[index]], "to": regions[column[index]], "d": round(float(groups.effect[index]), 3)}
        for index in groups.strongest(10)
    ]
    summary = {
        "regions": len(regions),
        "connections": len(groups.effect),
        "discoveries": groups.discoveries,
        "patients": groups.counts[0],
        "controls": groups.counts[1],
        "strongest": strongest,
    }
    write_text(outputs["summary"], canonical_json(summary) + "\n")
