"""The line on institutions, folds and repeats of an experiment, also where a repeat has one institution."""

import pytest

from brainfed.reporting.experiment_section import experiment_section
from brainfed.reporting.pictures import read_captions
from brainfed.runtime.artefacts import read_table, write_table
from support.reports.report_project import CAPTIONS, read

WHOLE = "4-fold cross-validation; 2 repeats (8 test folds)"


@pytest.mark.parametrize(
    ("drawn", "one", "two"),
    [
        ("random", "1 institution drawn at random", "2 institutions drawn at random"),
        ("sites", "1 institution, one a site", "2 institutions, one a site"),
        ("site_groups", "1 institution, a group of sites", "2 institutions, groups of sites"),
        (
            "consecutive",
            "1 institution of consecutive subjects, the rest at random",
            "2 institutions of consecutive subjects, the rest at random",
        ),
    ],
)
def test_one_institution_is_singular(drawn, one, two, outline, experiment, tmp_path):
    experiment["split"] = {**experiment["split"], "institutions": drawn}
    assert setting(outline) == f"{two}; {WHOLE}"
    for number, path in enumerate(experiment["splits"]):
        alone = read_table(path, ["subject", "institution", "fold"]).assign(institution="institution-1")
        experiment["splits"][number] = str(tmp_path / f"split-{number}.parquet")
        write_table(experiment["splits"][number], alone)
    assert setting(outline) == f"{one}; {WHOLE}"


def setting(outline):
    (cohort,) = read(outline).cohorts
    return experiment_section(cohort, cohort.experiments[0], read_captions(CAPTIONS, cohort.words), []).setting
