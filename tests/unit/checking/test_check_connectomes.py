"""`brainfed check` on variants that read connectomes: their regions, their size."""

import nibabel as nib
import numpy as np
import pytest
import yaml

from brainfed.checking.project import check_connectomes, check_project
from brainfed.configuration.loading import load_plan
from support.broken.broken_inputs import AFFINE, image_cohort, labels, series_cohort
from support.samples.connectome_method import register

EXPERIMENTS = {"methods": {"variants": ["majority", "reader"], "reference": "majority"}}


@pytest.fixture(autouse=True)
def reader(monkeypatch):
    """A method that reads connectomes."""
    register(monkeypatch)


def configured(cohort, experiments):
    config = cohort.configure()
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | {"experiments": experiments}))
    return config


@pytest.mark.parametrize(
    ("regions", "default", "severities"), [(1, True, ["stops"]), (1, False, ["notes"]), (0, True, []), (2, True, [])]
)
def test_connectomes_of_one_region_are_refused(regions, default, severities):
    methods = EXPERIMENTS["methods"] | {"default": default}
    content = {"project": "p", "cohorts": {"ours": {"source": "simulate"}}, "experiments": {"methods": methods}}
    experiments = [load_plan(content).experiments["methods"]]
    found = list(check_connectomes(regions, experiments, "here"))
    assert [finding.severity for finding in found] == severities
    assert all("methods: expected two regions or more" in finding.sentence for finding in found)
    others = {"methods": {"variants": ["majority"], "reference": "majority"}}
    assert not list(check_connectomes(1, [load_plan(content | {"experiments": others}).experiments["methods"]], ""))


def test_a_whole_cohort_passes(tmp_path):
    assert check_project(configured(series_cohort(tmp_path), EXPERIMENTS), tmp_path / "results") == []


def test_a_parcellation_of_one_region_stops_the_run(tmp_path):
    cohort = image_cohort(tmp_path)
    nib.save(nib.Nifti1Image((labels() > 0).astype(np.int16), AFFINE), tmp_path / "atlas.nii.gz")
    (tmp_path / "atlas.tsv").write_text("index\tname\n1\tA\n")
    (found,) = check_project(configured(cohort, EXPERIMENTS), tmp_path / "results")
    assert (found.severity, found.place) == ("stops", "cohort c: connectomes")
    assert "expected two regions or more, between which there are connections, found 1" in found.sentence
