"""The whole workflow on 100 real subjects of ABIDE I, from text files to tables."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from workflow.project import REPOSITORY, Project, copy_workflow, participants_of

pytestmark = [
    pytest.mark.full("A hundred real scans take minutes."),
    pytest.mark.workflow,
    pytest.mark.data,
    pytest.mark.skipif("BRAINFED_DATA" not in os.environ, reason="BRAINFED_DATA names no folder of real data"),
]

SUBJECTS = 100
DUPLICATES = ("UM_1_0050279", "UM_1_0050286")
"""Two rows of the cohort with the same data."""
VARIANTS = [
    "majority",
    "phenotype",
    "motion",
    "ridge-local",
    "ridge-central",
    "logistic-federated",
    "fedmlp",
    "fedgcn",
    "localgcn",
    "fedni",
    "fedsage-plus",
]
SHORT = {"rounds": 2, "local_epochs": 2}
CONFIG = {
    "extends": "config/abide.yaml",
    "project": "hundred",
    "threads": 1,
    "split": {"count": 3, "folds": 3, "repeats": 1},
    "cohorts": {"abide": {"shards": 2, "on_invalid": "drop"}},
    "variants": {
        "localgcn": {"method": "localgcn", "epochs": 4, "curve_every": 2},
        **{name: {"method": name, **SHORT} for name in ("fedmlp", "fedgcn")},
        **{name: {"method": name, **SHORT, "inpainting": SHORT} for name in ("fedni", "fedsage-plus")},
    },
    "experiments": {"methods": {"variants": VARIANTS}},
}


def series_folder(folder: Path) -> Path:
    return folder / "resources" / "abide" / "ABIDE_pcp" / "cpac" / "filt_global"


def exchange_for_duplicates(folder: Path, archive: Path) -> None:
    """Let the duplicates take the place of two others of their site."""
    for path in sorted(folder.glob("UM_1_*"))[:2]:
        path.unlink()
    with np.load(archive) as series:
        for subject in DUPLICATES:
            header = "\t".join(f"#{number}" for number in range(1, 201))
            path = folder / f"{subject}_rois_cc200.1D"
            np.savetxt(path, series[subject], fmt="%.6f", delimiter="\t", header=header, comments="")


@pytest.fixture(scope="module")
def abide(tmp_path_factory) -> Project:
    """The shipped config of ABIDE on 100 subjects, one repeat of three folds in three institutions."""
    folder = tmp_path_factory.mktemp("abide")
    data = Path(os.environ["BRAINFED_DATA"])
    subprocess.run(
        [sys.executable, data / "lay-out-abide", folder / "resources" / "abide", "--subjects", str(SUBJECTS)],
        check=True,
        capture_output=True,
    )
    exchange_for_duplicates(series_folder(folder), data / "abide" / "timeseries.npz")
    copy_workflow(folder)
    shutil.copytree(REPOSITORY / "config", folder / "config")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False))
    project = Project(folder)
    project.snakemake("tables", "--cores", "2")
    return project


@pytest.fixture(scope="module")
def results(abide) -> Path:
    return abide.folder / "results" / "abide"


def test_every_subject_with_a_series_is_included(results):
    included = pd.read_parquet(results / "cohort" / "included.parquet")
    assert included["included"].sum() == SUBJECTS
    left_out = included.loc[~included["included"], "reason"]
    assert left_out.value_counts().to_dict() == {"series file absent": 1035 - SUBJECTS, "no series": 77}
    participants = participants_of(results / "cohort")
    assert participants["has_series"].sum() == SUBJECTS
    assert len(participants) == 1112


def test_duplicates_are_one_group_in_one_institution_and_fold(results):
    included = pd.read_parquet(results / "cohort" / "included.parquet").set_index("subject")
    together = included.loc[included["included"] & (included["twin_group"] != included.index), "twin_group"]
    assert together.to_dict() == {DUPLICATES[1]: DUPLICATES[0]}
    (path,) = results.glob("splits/*/repeat-0.parquet")
    split = pd.read_parquet(path).set_index("subject")
    assert split.loc[DUPLICATES[0]].equals(split.loc[DUPLICATES[1]])
    issues = pd.read_csv(results / "cohort" / "issues.tsv", sep="\t", keep_default_na=False)
    assert issues.loc[issues["kind"] == "identical series", "subject"].tolist() == list(DUPLICATES)


def test_phenotypes_have_the_meanings_of_their_codes(abide, results):
    table = abide.folder / "resources" / "abide" / "ABIDE_pcp" / "Phenotypic_V1_0b_preprocessed1.csv"
    source = pd.read_csv(table, dtype=str)
    source = source[source["FILE_ID"] != "no_filename"].set_index("FILE_ID")
    found = participants_of(results / "cohort").loc[source.index]
    assert found["diagnosis"].eq(1).tolist() == source["DX_GROUP"].eq("1").tolist()
    assert found["sex"].eq("male").tolist() == source["SEX"].eq("1").tolist()
    np.testing.assert_allclose(found["age"], source["AGE_AT_SCAN"].astype(float))


def test_regions_without_signal_are_reported_with_their_subject(results):
    issues = pd.read_csv(results / "cohort" / "issues.tsv", sep="\t", keep_default_na=False)
    quality = pd.concat([pd.read_parquet(path) for path in sorted((results / "timeseries").rglob("*-quality.parquet"))])
    silent = quality.loc[quality["constant_regions"] > 0].set_index("subject")["constant_regions"]
    reported = issues[issues["kind"] == "constant regions"].set_index("subject")["detail"]
    assert reported.to_dict() == {subject: f"{count} regions" for subject, count in silent.sort_index().items()}


def test_every_method_scores_every_subject_once(results):
    for variant in VARIANTS:
        (path,) = results.glob(f"methods/*/{variant}/repeat-0/predictions.parquet")
        predictions = pd.read_parquet(path)
        assert predictions["subject"].is_unique
        assert len(predictions) == SUBJECTS
        assert np.isfinite(predictions["score"]).all()


def test_the_tables_hold_every_variant_and_ridge_beats_chance(results):
    tables = results / "tables"
    assert {path.stem for path in tables.glob("*.tsv")} == {
        "methods",
        *(f"methods-{kind}" for kind in ("runs", "tests", "gain", "confusion")),
    }
    summary = pd.read_csv(tables / "methods.tsv", sep="\t").set_index(["variant", "scope", "metric"])["mean"]
    assert set(summary.index.get_level_values("variant")) == set(VARIANTS)
    accuracies = summary.xs("accuracy", level="metric")
    assert np.isfinite(accuracies).all()
    assert summary["ridge-central", "pooled", "accuracy"] > 0.5
