"""The shipped configs of NCANDA and HCP on made-up files in their layout: planned as a whole, and one run."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from brainfed.runtime import read_arrays
from support.files.fglbc_cohorts import COHORTS, REGIONS
from workflow.project import REPOSITORY, Project, copy_workflow

pytestmark = pytest.mark.workflow

SUBJECTS = 25


def set_up(folder: Path, name: str) -> Project:
    """A config that extends the shipped one, with short files and two linear variants."""
    copy_workflow(folder)
    shutil.copytree(REPOSITORY / "config", folder / "config")
    COHORTS[name](folder, SUBJECTS)
    content = {
        "extends": f"config/fglbc-{name}.yaml",
        "project": "own",
        "cohorts": {name: {"shards": 2}},
        "split": {"count": 2, "folds": 2, "repeats": 1},
        "experiments": {"short": {"variants": ["majority", "ridge-local"], "reference": "majority", "title": "Short"}},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return Project(folder)


@pytest.mark.parametrize("name", ["hcp-rest", "hcp-task"])
def test_a_run_is_planned_for_files_of_hcp(tmp_path, name):
    jobs = set_up(tmp_path, name).planned(f"results/{name}/tables/short.tsv")
    expected = {"ingest_columns": 2, "read_series": 2, "include_subjects": 1, "split_subjects": 1, "train_method": 2}
    assert {rule: jobs[rule] for rule in expected} == expected


def test_files_of_ncanda_are_read_and_sex_is_predicted(tmp_path):
    project = set_up(tmp_path, "ncanda")
    project.snakemake("--cores", "1", "results/ncanda/tables/short.tsv")
    results = project.folder / "results/ncanda"
    (part, other) = sorted(results.glob("timeseries/ncanda34/shard-*.safetensors"))
    held = {**read_arrays(part).arrays, **read_arrays(other).arrays}
    assert len(held) == SUBJECTS - 1
    assert {series.shape[1] for series in held.values()} == {REGIONS["ncanda"]}
    (path,) = results.glob("methods/*/ridge-local/repeat-0/predictions.parquet")
    assert set(pd.read_parquet(path)["subject"]) == set(held)
