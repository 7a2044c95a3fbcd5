"""Public graphs from text files to the report, and the mistakes of their files."""

import json

import pandas as pd
import pytest

from brainfed.runtime import read_arrays
from support.files.tu_data_set import write_data_set, write_lines
from workflow.project import Project, new_project

pytestmark = [
    pytest.mark.full("Two whole runs of a family, whose parts are tested without Snakemake."),
    pytest.mark.workflow,
]

COHORT = {
    "source": "tudataset",
    "target": "class",
    "classes": ["sparse", "dense"],
    "tudataset": {"folder": "resources/tudataset", "names": ["TOY"]},
}
VARIANTS = {
    "alone": {"method": "selftrain", "epochs": 2},
    "average": {"method": "fedavg-gin", "rounds": 2},
    "clusters": {"method": "gcfl", "rounds": 3, "first_cut": 0, "eps1": 100, "eps2": 0},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A run from text files to the report."""
    project = new_project(tmp_path_factory.mktemp("graphs"), subjects=0)
    write_data_set(project.folder / "resources" / "tudataset", "TOY", 60)
    project.configure(
        cohorts={"toys": COHORT},
        split={"institutions": "random", "count": 3, "folds": 2, "repeats": 1},
        variants=VARIANTS,
        experiments={"methods": {"variants": ["majority", *VARIANTS], "reference": "alone"}},
    )
    project.snakemake("--cores", "1")
    return project


def test_graphs_are_the_samples(finished):
    results = finished.folder / "results" / "toys"
    file = read_arrays(results / "graphs-read" / "graphs.safetensors")
    assert len(file.subjects) == 60
    (path,) = results.glob("methods/*/clusters/repeat-0/predictions.parquet")
    assert sorted(pd.read_parquet(path)["subject"]) == list(file.subjects)
    assert not list(results.glob("features/*"))
    assert not list(results.glob("connectomes/*"))


def test_no_graph_crosses_but_in_pooled_training(finished):
    results = finished.folder / "results" / "toys"
    (path,) = results.glob("methods/*/clusters/repeat-0/cost.json")
    names = {row["name"] for row in json.loads(path.read_text())["crossings"]}
    assert all(name.startswith("convs.") or name == "training-subjects" for name in names)


def test_the_page_speaks_of_graphs_and_not_of_people(finished):
    page = (finished.folder / "results" / "reports" / "tiny.html").read_text().partition("The config, every default")[0]
    assert "60 graphs are analysed: 30 dense graphs, 30 sparse graphs" in page
    assert "one-hot label" in page
    for word in (
        "Mean age", "female", "QC-FC", "SHA-256 of the image", "phenotype table", "Patients", "scans", "imaging",
        "in the population graph", "test subjects",
    ):  # fmt: skip
        assert word not in page


def test_a_second_run_does_nothing(finished):
    assert not finished.planned("all")


def test_other_labels_train_again(finished):
    raw = finished.folder / "resources" / "tudataset" / "TOY" / "raw"
    labels = (raw / "TOY_graph_labels.txt").read_text().split()
    write_lines(raw / "TOY_graph_labels.txt", [*labels[:-2], *labels[:-3:-1]])
    planned = finished.planned("all")
    assert planned["ingest_phenotypes"] == 1
    assert planned["train_method"] == 4


def test_bad_files_stop_the_run_at_its_start(finished):
    raw = finished.folder / "resources" / "tudataset" / "TOY" / "raw"
    (raw / "TOY_graph_labels.txt").rename(raw / "kept.txt")
    try:
        done = finished.snakemake("--cores", "1", check=False)
    finally:
        (raw / "kept.txt").rename(raw / "TOY_graph_labels.txt")
    assert "TOY_graph_labels.txt of the data set TOY, found none" in done.stdout + done.stderr
    assert done.returncode


def test_data_sets_of_two_and_three_classes_are_scored_apart(tmp_path_factory):
    """One test set each: an institution is scored over the classes of its data set."""
    project = new_project(tmp_path_factory.mktemp("kinds"), subjects=0)
    write_data_set(project.folder / "resources" / "tudataset", "TWO", 30)
    write_data_set(project.folder / "resources" / "tudataset", "THREE", 30, labels=(1, 2, 3), seed=1)
    project.configure(
        cohorts={
            "kinds": COHORT
            | {
                "classes": ["class 1", "class 2", "class 3"],
                "tudataset": {"folder": "resources/tudataset", "names": ["TWO", "THREE"]},
            }
        },
        split={"institutions": "sites", "validation": "holdout", "tested": 0.2, "repeats": 1},
        variants={name: VARIANTS[name] for name in ("alone", "average")},
        experiments={"methods": {"variants": ["majority", "alone", "average"], "reference": "alone"}},
    )
    project.snakemake("--cores", "1")
    tables = project.folder / "results" / "kinds" / "tables"
    assert set(pd.read_csv(tables / "methods-tests.tsv", sep="\t")["scope"]) == {"institution"}
    auc = pd.read_csv(tables / "methods-runs.tsv", sep="\t").query("metric == 'auc'")
    assert auc.loc[auc["scope"].isin(["institution:TWO", "institution:THREE"]), "value"].notna().all()
    page = (project.folder / "results" / "reports" / "tiny.html").read_text().partition("The config, every default")[0]
    assert "Test graphs are not pooled" in page and "all test subjects pooled" not in page
    assert "(1 run, too few for an interval)" in page
