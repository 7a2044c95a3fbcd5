"""BIDS files of a cohort's series hold no number for undefined correlations and irregular sampling."""

import json

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging import ExportFiles, export_bids
from brainfed.imaging.series import RegionSeries, write_shard
from support.files.run_of_cohort import parts_of

REGIONS = ("A", "B", "C", "-L|+R")
IMAGE = "sub-{}_task-rest_space-T1w_desc-preproc_bold.nii.gz"


def series(columns, volumes=40, seed=0):
    return np.random.default_rng(seed).standard_normal((volumes, columns)).astype(np.float32)


@pytest.fixture
def exported(tmp_path):
    """01: region B unseen, C constant; 02: two volumes scrubbed; 03: two runs, C unseen in the second."""
    unseen = series(4)
    unseen[:, 1], unseen[:, 2] = np.nan, 3.0
    runs = series(4)
    runs[20:, 2] = np.nan
    found = {
        "01": RegionSeries(unseen, np.array([1.0, 0, 1, 1]), 2.5, volumes=40),
        "02": RegionSeries(series(4), np.ones(4), 2.5, volumes=42),
        "03": RegionSeries(runs, np.ones(4), 2.5, volumes=40, runs=(20, 20)),
    }
    out = parts_of(tmp_path)
    settings = CohortSettings(source="timeseries", regions=4, min_timepoints=3, atlas="four")
    write_shard(sorted(found), found.__getitem__, lambda: REGIONS, "four", settings, out)
    sources = {subject: [f"sub-{subject}/func/{IMAGE.format(subject)}"] for subject in found}
    files = ExportFiles([out.series], [out.quality], [out.coverage])
    export_bids(tmp_path / "bids", files, "four", sources, by_run=True)

    def read(subject, ending):
        path = tmp_path / "bids" / f"sub-{subject}" / "func" / f"sub-{subject}_task-rest_space-T1w_atlas-four_{ending}"
        return json.loads(path.read_text()) if ending.endswith("json") else pd.read_csv(path, sep="\t")

    return read, found


def test_a_region_without_signal_has_no_correlation_even_with_itself(exported):
    read, found = exported
    matrix = read("01", "stat-pearsoncorrelation_relmat.tsv").set_index("Node").to_numpy()
    seen = [0, 3]
    assert np.isnan(matrix).sum() == 16 - len(seen) ** 2
    expected = np.corrcoef(found["01"].series[:, seen].T)
    np.testing.assert_allclose(matrix[np.ix_(seen, seen)], expected, atol=1e-6)


def test_a_region_seen_in_one_run_has_the_correlations_of_that_run(exported):
    read, found = exported
    matrix = read("03", "stat-pearsoncorrelation_relmat.tsv").set_index("Node")
    assert matrix.notna().all(axis=None)
    assert matrix.loc["A", "C"] == pytest.approx(np.corrcoef(found["03"].series[:20, [0, 2]].T)[0, 1], abs=1e-6)


def test_only_a_series_of_every_volume_of_one_run_has_a_sampling_frequency(exported):
    read, _ = exported
    facts = {subject: read(subject, "stat-mean_timeseries.json") for subject in ("01", "02", "03")}
    assert facts["01"]["SamplingFrequency"] == 0.4
    assert [subject for subject in facts if "SamplingFrequency" not in facts[subject]] == ["02", "03"]


def test_regions_keep_their_names(exported):
    read, _ = exported
    assert tuple(read("02", "stat-mean_timeseries.tsv").columns) == REGIONS
    matrix = read("02", "stat-pearsoncorrelation_relmat.tsv")
    assert tuple(matrix.columns[1:]) == tuple(matrix["Node"]) == REGIONS
    assert tuple(read("02", "stat-coverage_bold.tsv")["node"]) == REGIONS
