"""Draw the figures that describe a cohort's subjects and scans."""

from collections.abc import Mapping, Sequence

import pandas as pd

from brainfed.reporting.cohort_figures import ages_figure, flow_figure, sites_figure
from brainfed.reporting.people import read_cohort
from brainfed.reporting.quality_figures import quality_figure, series_figure
from brainfed.reporting.style import drawing, save_svg
from brainfed.runtime.artefacts import read_table


def draw_cohort(
    participants: str, included: str, quality: Sequence[str], coverage: Sequence[str], outputs: Mapping[str, str]
) -> None:
    """Write the SVGs called flow, sites, ages, series and quality.

    Args:
        participants: the phenotype artefact.
        included: who is used.
        quality: the quality tables of all parts.
        coverage: the coverage tables of all parts.
        outputs: figure -> path.
    """
    people = read_cohort(participants, included, quality)
    covered = pd.concat([read_table(path, ["subject", "region", "coverage"]) for path in coverage], ignore_index=True)
    with drawing():
        save_svg(flow_figure(people), outputs["flow"])
        save_svg(sites_figure(people), outputs["sites"])
        save_svg(ages_figure(people), outputs["ages"])
        save_svg(series_figure(people), outputs["series"])
        save_svg(quality_figure(people, covered), outputs["quality"])
