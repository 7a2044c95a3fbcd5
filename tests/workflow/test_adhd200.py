"""The shipped configs of ADHD-200: the sites' real phenotype tables and made-up series in Athena's format."""

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from brainfed.runtime import read_arrays
from support.files.adhd200_files import REGIONS, ROOT, TEST, TRAINING, series_path, write_series
from workflow.project import REPOSITORY, Project, copy_workflow, participants_of

pytestmark = [
    pytest.mark.full("Tables of 973 real subjects and their files take half a minute."),
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
SITES = {
    "extends": "config/adhd200-sites.yaml",
    "project": "adhd-sites",
    "threads": 1,
    "split": {"folds": 2, "repeats": 1},
    "cohorts": {"adhd200-labelled": {"shards": 2}, "adhd200-types": {"shards": 2}},
    "public": {"ratio": 0.5},
    "variants": {
        name: {"method": name, "length": 40, "crops": 2, "hidden": 4, "rounds": 2, "local_epochs": 1}
        for name in ("gahfl", "fedet")
    },
    "experiments": {
        "site-groups": {"variants": ["majority", "ridge-central", "gahfl", "fedet"], "reference": "majority"},
        "unseen-site": None,
        "types": {"variants": ["majority", "ridge-central", "gahfl", "fedet"], "reference": "majority"},
    },
}
FIRST = {"0": 3, "1": 3, "2": 1, "3": 3, "pending": 2}
"""Code of diagnosis -> how many subjects of a site have a series, of each table."""
IN_GROUPS = {"client-1": 10, "client-2": 18, "client-3": 21, "client-4": 19}
"""Institution -> its subjects with a series and a diagnosis, hyperactive ones among them."""
STRANGER = "sfnwmrda0099999_session_1_rest_1_cc200_TCs.1D"


def real_table(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["BRAINFED_DATA"]) / f"adhd200-phenotypic/{name}_phenotypic.csv", dtype=str)


def set_up(folder: Path, content: dict, taken: dict[str, pd.DataFrame]) -> Project:
    """The tables of all sites, the series of some subjects, one file that nobody knows, a short config.

    Args:
        folder: of the project.
        content: of its config.
        taken: name of a table -> its rows with a series.
    """
    shutil.copytree(Path(os.environ["BRAINFED_DATA"]) / "adhd200-phenotypic", folder / ROOT / "phenotypic")
    for name, table in taken.items():
        archive = TEST if name.endswith("TestRelease") else TRAINING
        for subject, site in table.iloc[:, :2].itertuples(index=False):
            write_series(series_path(folder, site, subject, archive), int(subject))
    stranger = series_path(folder, "8", "99999")
    stranger.parent.mkdir(parents=True)
    stranger.touch()
    copy_workflow(folder)
    shutil.copytree(REPOSITORY / "config", folder / "config")
    (folder / "config.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return Project(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, str]:
    """The results of a whole run, and what it said."""
    taken = {name: real_table(name).iloc[:count] for name, count in TAKEN.values()}
    project = set_up(tmp_path_factory.mktemp("adhd"), CONFIG, taken)
    said = project.snakemake("tables", "--cores", "2").stderr
    return project.folder / "results", said


def scored(results: Path, variant: str) -> pd.DataFrame:
    (path,) = (results / "adhd200").glob(f"methods/*/{variant}/repeat-0/predictions.parquet")
    return pd.read_parquet(path)


def test_the_real_tables_are_one_cohort_with_named_sites(run):
    people = participants_of(run[0] / "adhd200" / "cohort")
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


@pytest.fixture(scope="module")
def sites(tmp_path_factory) -> Path:
    """The results of a run in real institutions, with two classes and with three."""
    names = [
        path.name.removesuffix("_phenotypic.csv")
        for path in sorted((Path(os.environ["BRAINFED_DATA"]) / "adhd200-phenotypic").iterdir())
    ]
    taken = {}
    for name in names:
        table = real_table(name)
        taken[name] = table[table.groupby("DX").cumcount() < table["DX"].map(FIRST)]
    project = set_up(tmp_path_factory.mktemp("sites"), SITES, taken)
    project.snakemake("tables", "--cores", "2")
    return project.folder / "results"


def people(results: Path, cohort: str) -> pd.DataFrame:
    """Included subjects and reasons beside sites and diagnoses."""
    folder = results / cohort / "cohort"
    included = pd.read_parquet(folder / "included.parquet")
    return included.merge(participants_of(folder).reset_index(), on="subject", validate="one_to_one")


def test_every_row_that_leaves_has_a_reason(sites):
    for cohort, hyperactive in (("adhd200-labelled", 0), ("adhd200-types", 13)):
        left = people(sites, cohort).query("not included")
        issues = pd.read_csv(sites / cohort / "cohort" / "issues.tsv", sep="\t", dtype=str)
        listed = issues.loc[issues["action"] == "left out", ["subject", "kind"]].set_index("subject")["kind"]
        assert listed.to_dict() == left.set_index("subject")["reason"].to_dict()
        counted = left["reason"].value_counts().to_dict()
        assert counted.pop("excluded by diagnosis", 0) == hyperactive
        assert counted.pop("diagnosis missing") == FIRST["pending"]
        assert set(counted) == {"series file absent"}


def test_groups_of_real_sites_are_the_institutions(sites):
    (path,) = (sites / "adhd200-labelled" / "splits").glob("*/repeat-0.parquet")
    assert pd.read_parquet(path)["institution"].value_counts().to_dict() == IN_GROUPS
    series = read_arrays(next((sites / "adhd200-labelled").glob("timeseries/cc200/*.safetensors"))).arrays
    assert {held.shape[1] for held in series.values()} == {REGIONS}


def test_three_types_are_scored_in_real_institutions(sites):
    included = people(sites, "adhd200-types").query("included")
    (path,) = (sites / "adhd200-types").glob("methods/*/ridge-central/repeat-0/predictions.parquet")
    predictions = pd.read_parquet(path)
    assert set(predictions["subject"]) == set(included["subject"])
    assert predictions["label"].value_counts().to_dict() == included["diagnosis"].value_counts().to_dict()
    assert {"score-control", "score-combined", "score-inattentive"} <= set(predictions.columns)
    table = pd.read_csv(sites / "adhd200-types" / "tables" / "types.tsv", sep="\t")
    assert set(table["variant"]) == set(SITES["experiments"]["types"]["variants"])


@pytest.mark.parametrize("cohort", ["adhd200-labelled", "adhd200-types"])
def test_gahfl_trains_on_public_subjects_of_real_sites(sites, cohort):
    included = people(sites, cohort).query("included").set_index("subject")
    (path,) = (sites / cohort / "splits").glob("*/repeat-0.parquet")
    split = pd.read_parquet(path).set_index("subject")
    (path,) = (sites / cohort / "public").glob("*/repeat-0/all.parquet")
    for fold, public in pd.read_parquet(path).groupby("fold")["subject"]:
        assert not (split.loc[public, "fold"] == fold).any()
        assert set(split.loc[public, "institution"]) == set(IN_GROUPS)
        assert set(included.loc[public, "diagnosis"]) == set(included["diagnosis"])
    for method in ("gahfl", "fedet"):
        (path,) = (sites / cohort).glob(f"methods/*/{method}/repeat-0/predictions.parquet")
        predictions = pd.read_parquet(path)
        assert set(predictions["subject"]) == set(included.index)
        assert predictions.filter(like="score").notna().all(axis=None)
