"""From simulated NIfTI files to tables, on a cohort of 24 small brains."""

from collections import Counter

import nibabel as nib
import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation.patterns import read_patterns
from workflow.project import SIMULATE, new_project

pytestmark = pytest.mark.workflow


def settings(**changes):
    """Two shards, in a cohort whose name is more than letters."""
    cohort = {"source": "simulate", "atlas": "twenty", "shards": 2, "simulate": SIMULATE | changes}
    experiment = {"variants": ["ridge-central", "quick"], "reference": "ridge-central"}
    return {"cohorts": {"made-up.1": cohort}, "experiments": {"methods": experiment}}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The simulated project after a whole run of its tables."""
    project = new_project(tmp_path_factory.mktemp("simulated"), subjects=0, **settings())
    project.snakemake("tables", "--cores", "2")
    return project


def test_the_cohort_is_files_as_a_lab_has_them(simulated):
    folder = simulated.folder / "results" / "made-up.1" / "simulated"
    scans = sorted(folder.glob("sub-*_bold.nii.gz"))
    assert len(scans) == 24
    people = pd.read_csv(folder / "participants.tsv", sep="\t")
    lengths = {"a": 60, "b": 70}
    for scan, site in zip(scans, people["site"], strict=True):
        assert nib.load(scan).shape == (8, 9, 8, lengths[site])
    assert set(np.unique(nib.load(folder / "atlas.nii.gz").get_fdata())) == set(range(21))


def test_every_subject_is_scored_and_the_tables_are_written(simulated):
    results = simulated.folder / "results" / "made-up.1"
    included = pd.read_parquet(results / "cohort" / "included.parquet")
    assert included["included"].sum() == 24
    for variant in ("ridge-central", "quick"):
        (path,) = results.glob(f"methods/*/{variant}/repeat-0/predictions.parquet")
        predictions = pd.read_parquet(path)
        assert predictions["subject"].tolist() == included["subject"].tolist()
        assert np.isfinite(predictions["score"]).all()
    regions = [*pd.read_csv(results / "simulated" / "atlas.tsv", sep="\t")["name"]]
    (path,) = results.glob("methods/*/ridge-central/repeat-0/patterns.safetensors")
    patterns = read_patterns([path])
    assert patterns.values.shape == (2, 1, 190) and patterns.values.any(axis=-1).all()
    assert patterns.features[:2].tolist() == [["", regions[0], regions[1]], ["", regions[0], regions[2]]]
    (path,) = results.glob("methods/*/quick/repeat-0/patterns.safetensors")
    assert read_patterns([path]) is None
    summary = pd.read_csv(results / "tables" / "methods.tsv", sep="\t")
    assert set(summary["variant"]) == {"ridge-central", "quick"}
    assert {path.name for path in (results / "tables").glob("*.tsv")} == {
        "methods.tsv",
        "methods-runs.tsv",
        "methods-tests.tsv",
        "methods-gain.tsv",
        "methods-confusion.tsv",
    }


def test_a_finished_simulation_has_nothing_to_do(simulated):
    assert simulated.planned() == Counter()


def test_one_more_subject_is_simulated_in_one_shard(simulated, tmp_path):
    grown = simulated.copy(tmp_path / "grown")
    grown.configure(**settings(subjects=25))
    planned = grown.planned()
    (shard,) = (rule for rule in planned if rule.startswith("simulate_scans_"))
    assert planned == Counter(
        {
            "simulate_participants": 1,
            shard: 1,
            "ingest_phenotypes": 1,
            "ingest_columns": 4,
            "extract_series": 1,
            "measure_scans": 1,
            "measure_quality": 1,
            "include_subjects": 1,
            "list_issues": 1,
            "compute_connectivity": 1,
            "split_subjects": 1,
            "build_graph": 1,
            "train_method": 2,
            "score_experiment": 1,
        }
    )
