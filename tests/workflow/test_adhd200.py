"""The shipped config of ADHD-200: the sites' real phenotype tables and made-up series in Athena's format."""

import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from brainfed.runtime.artefacts import read_arrays
from workflow.project import REPOSITORY, Project, copy_workflow

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.data,
    pytest.mark.skipif("BRAINFED_DATA" not in os.environ, reason="BRAINFED_DATA names no folder of real data"),
]

CONFIG = {
    "extends": "config/adhd200.yaml",
    "project": "adhd",
    "threads": 1,
    "split": {"count": 2, "folds": 2, "repeats": 1},
    "cohorts": {"adhd200": {"shards": 2}},
    "variants": {
        "quick": {"method": "fedgcn", "rounds": 2, "local_epochs": 1},
    },
    "experiments": {
        "methods": {"variants": ["ridge-central", "quick"], "reference": "ridge-central"},
    },
}
TAKEN = {
    "site 2": ("Brown_TestRelease", 6),
    "site 3": ("KKI", 24),
    "site 5": ("NYU", 24),
    "site 1": ("Peking_1_TestRelease", 16),
}
"""Table of a site and how many of its subjects have a series."""
STRANGER = "sfnwmrda0099999_session_1_rest_1_cc200_TCs.1D"


def write_series(path: Path, seed: int) -> None:
    """190 regions and 60 volumes as AFNI's 3dROIstats writes them."""
    values = np.random.default_rng(seed).standard_normal((60, 190))
    rows = [
        [f"{path.stem}.nii.gz", f"{number}[?]", *(f"{value:.6f}" for value in row)] for number, row in enumerate(values)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(
            [["File", "Sub-brick", *(f"Mean_{i}" for i in range(1, 191))], *rows]
        )


def set_up(folder: Path) -> Project:
    """The tables of all sites, the series of some subjects, one file that nobody knows, a short config."""
    source = Path(os.environ["BRAINFED_DATA"]) / "adhd200-phenotypic"
    resources = folder / "resources" / "adhd200"
    shutil.copytree(source, resources / "phenotypic")
    (resources / "series").mkdir()
    for site, (name, count) in enumerate(TAKEN.values()):
        table = pd.read_csv(source / f"{name}_phenotypic.csv", dtype=str)
        for number, subject in enumerate(table.iloc[:count, 0]):
            path = resources / "series" / f"sfnwmrda{int(subject):07d}_session_1_rest_1_cc200_TCs.1D"
            write_series(path, 1000 * site + number)
    (resources / "series" / STRANGER).touch()
    copy_workflow(folder)
    shutil.copytree(REPOSITORY / "config", folder / "config")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False))
    return Project(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, str]:
    """The results of a whole run, and what it said."""
    project = set_up(tmp_path_factory.mktemp("adhd"))
    said = project.snakemake("tables", "--cores", "2").stderr
    return project.folder / "results", said


def scored(results: Path, variant: str) -> pd.DataFrame:
    (path,) = (results / "adhd200").glob(f"methods/*/{variant}/repeat-0/predictions.parquet")
    return pd.read_parquet(path)


def test_the_real_tables_are_one_cohort_with_named_sites(run):
    people = pd.read_parquet(run[0] / "adhd200" / "cohort" / "participants.parquet").set_index("subject")
    assert len(people) == 717
    assert people["site"].value_counts().to_dict() == {
        "NYU": 222, "Peking": 136, "OHSU": 113, "Pittsburgh": 89, "KKI": 83, "NeuroIMAGE": 48, "Brown": 26,
    }  # fmt: skip
    assert people["diagnosis"].value_counts(dropna=False).to_dict() == {0: 430, 1: 261, pd.NA: 26}
    assert people["sex"].isna().sum() == 1
    assert people.loc["26001", "diagnosis"] is pd.NA


def test_a_subject_without_a_diagnosis_is_a_node_of_the_graph_and_is_not_scored(run):
    folder = run[0] / "adhd200"
    included = pd.read_parquet(folder / "cohort" / "included.parquet").set_index("subject")
    assert included["included"].sum() == sum(count for _, count in TAKEN.values())
    issues = pd.read_csv(folder / "cohort" / "issues.tsv", sep="\t", dtype=str)
    waiting = set(issues.loc[issues["kind"] == "unlabelled", "subject"])
    assert len(waiting) == 6 and all(subject.startswith("260") for subject in waiting)
    (path,) = folder.glob("graphs/*/repeat-0/all.safetensors")
    assert waiting < set(read_arrays(path, []).metadata["subjects"])
    for variant in CONFIG["experiments"]["methods"]["variants"]:
        predictions = scored(run[0], variant)
        assert len(predictions) == 64
        assert not waiting & set(predictions["subject"])
        assert set(predictions["label"]) == {0, 1}


def test_files_in_no_table_are_reported_once(run):
    assert run[1].count(f"1 series have no row in the phenotype table, the first is {STRANGER}") == 1
