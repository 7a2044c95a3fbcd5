"""A clustered federation of connectomes, from simulated scans to the page of its report."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workflow.project import SIMULATE, Project, new_project

pytestmark = [
    pytest.mark.full("A whole run of a family, whose parts are tested without Snakemake."),
    pytest.mark.workflow,
]

COHORT = {"source": "simulate", "atlas": "twenty", "shards": 1, "simulate": SIMULATE | {"subjects": 60}}
VARIANTS = {
    "selftrain": {"epochs": 3},
    "fedavg-gin": {"rounds": 3},
    "gcfl-plus": {"rounds": 3, "first_cut": 1, "sequence": 1, "eps1": 1e3, "eps2": 0.0},
}
"""Every cluster is cut that can be, after the first round."""


def configured(folder: Path) -> Project:
    variants = {
        f"{name}-short": {"method": "gcfl" if name == "gcfl-plus" else name, **settings}
        for name, settings in VARIANTS.items()
    }
    variants["gcfl-plus-short"] = variants.pop("gcfl-plus-short") | {"similarity": "gradient_norms"}
    return new_project(
        folder,
        subjects=0,
        cohorts={"made": COHORT},
        split={"institutions": "random", "count": 4, "folds": 2, "repeats": 1},
        variants=variants,
        experiments={"graphs": {"variants": list(variants), "reference": "selftrain-short"}},
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    project = configured(tmp_path_factory.mktemp("clusters"))
    project.snakemake("--cores", "1")
    return project


def test_a_history_has_the_cluster_of_every_round(finished):
    histories = {
        path.parts[-3]: pd.read_parquet(path)
        for path in (finished.folder / "results/made/methods").glob("*/*/repeat-0/history.parquet")
    }
    assert histories["selftrain-short"]["cluster"].isna().all()
    clusters = histories["gcfl-plus-short"].groupby("round")["cluster"].nunique()
    assert clusters.tolist() == [1, 2, 3]


def test_the_table_scores_the_last_model_as_the_predictions_do(finished):
    tables = finished.folder / "results/made/tables"
    found = pd.read_csv(tables / "graphs-clients.tsv", sep="\t").set_index(["variant", "scoring"])
    scored = pd.read_csv(tables / "graphs.tsv", sep="\t")
    means = scored[(scored["scope"] == "institution") & (scored["metric"] == "accuracy")].set_index("variant")["mean"]
    last, paper = (found.xs(name, level="scoring") for name in ("last model", "paper scoring"))
    np.testing.assert_allclose(last["accuracy"], means[last.index])
    assert (paper["accuracy"] >= last["accuracy"]).all()
    alone = ["selftrain-short", "fedavg-gin-short"]
    assert (paper["accuracy"] == last["accuracy"])[alone].all()
    assert last["twin"].fillna("").to_dict() == {
        "selftrain-short": "", "fedavg-gin-short": "selftrain-short", "gcfl-plus-short": "selftrain-short"
    }  # fmt: skip


def test_the_page_shows_the_clusters_and_both_scorings(finished):
    page = (finished.folder / "results/reports/tiny.html").read_text()
    assert re.search(r"Scoring by the best of several models on the test data adds \S+ to GCFL\+ \(short\)", page)
    for said in ("What institutions gain, by two scorings", "paper scoring", 'id="figure-clusters-cohort-made'):
        assert said in page
    assert re.search(
        r'aria-label="Clusters of institutions after every round[^"]*GCFL\+ \(short\): 3 clusters of', page
    )


def test_a_finished_project_has_nothing_to_do(finished):
    assert not finished.planned("all")
