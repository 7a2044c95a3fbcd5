"""Draw the figures that describe a cohort's subjects and scans."""

from collections.abc import Mapping, Sequence

import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.settings.flags import FlagSettings
from brainfed.reporting.figures.cohort.flow import flow_figure
from brainfed.reporting.figures.cohort.motion import motion_figure
from brainfed.reporting.figures.cohort.people import ages_figure, sites_figure
from brainfed.reporting.figures.cohort.quality import quality_figure, series_figure
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.reporting.people import read_cohort
from brainfed.runtime.artefacts import read_table


def draw_cohort(
    participants: str,
    included: str,
    measures: str,
    connections: str,
    coverage: Sequence[str],
    flag: FlagSettings,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the SVGs called flow, sites, ages, series, motion and quality.

    Args:
        participants: the phenotype artefact.
        included: the subjects of the analysis.
        measures: the measures of quality.
        connections: correlation of every connection with motion.
        coverage: the coverage tables of all parts.
        flag: limits beyond which a subject is listed.
        outputs: figure -> path.
        words: names of the classes.
    """
    people = read_cohort(participants, included, measures)
    covered = pd.concat([read_table(path, ["subject", "region", "coverage"]) for path in coverage], ignore_index=True)
    with drawing():
        save_svg(flow_figure(people, words), outputs["flow"])
        save_svg(sites_figure(people, words), outputs["sites"])
        save_svg(ages_figure(people, words), outputs["ages"])
        save_svg(series_figure(people), outputs["series"])
        save_svg(motion_figure(people, read_table(connections, ["r", "p"]), flag.mean_fd, words), outputs["motion"])
        save_svg(quality_figure(people, covered, flag.unlike), outputs["quality"])
