"""A split with one test set, from simulated scans to the report."""

import re

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime import read_arrays
from workflow.project import SIMULATE, new_project

pytestmark = [
    pytest.mark.full("A whole run of all engines, whose parts are tested without Snakemake."),
    pytest.mark.workflow,
]

TANGENT = {"connectivity": "tangent", "reference": "all"}
VARIANTS = {
    "fitted": {"method": "ridge", "training": "local", "features": TANGENT},
    "graph": {"method": "localgcn", "epochs": 4, "curve_every": 2},
    "quick": {"method": "fedmlp", "rounds": 2, "local_epochs": 2},
    "alone": {"method": "selftrain", "epochs": 2},
    "whole": {"method": "fedavg-gin", "rounds": 2},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run with its report: one repeat."""
    project = new_project(
        tmp_path_factory.mktemp("holdout"),
        subjects=0,
        cohorts={"made": {"source": "simulate", "atlas": "twenty", "shards": 1, "simulate": SIMULATE}},
        split={
            "institutions": "consecutive",
            "count": 2,
            "block": 8,
            "validation": "holdout",
            "tested": 0.25,
            "held_back": 0.2,
            "repeats": 1,
        },
        variants=VARIANTS,
        experiments={"methods": {"variants": ["ridge-central", *VARIANTS], "reference": "ridge-central"}},
    )
    project.snakemake("--cores", "1")
    return project


def test_all_methods_score_the_tested_alone_and_none_reads_who_is_held_back(finished):
    results = finished.folder / "results" / "made"
    (path,) = results.glob("splits/2-consecutive-holdout-*/repeat-0.parquet")
    split = pd.read_parquet(path)
    people = pd.read_parquet(results / "cohort" / "included.parquet")["subject"]
    place = split.set_index("subject")["institution"]
    for number in (1, 2):
        run = people[8 * number - 8 : 8 * number]
        assert set(place.reindex(run).dropna()) == {f"institution-{number}"}
    assert set(split["fold"]) == {0, -1} and len(split) < len(people) == 24
    tested = split.loc[split["fold"] == 0, "subject"].tolist()
    for variant in ("ridge-central", *VARIANTS):
        (file,) = results.glob(f"methods/*/{variant}/repeat-0/predictions.parquet")
        found = pd.read_parquet(file)
        assert found["subject"].tolist() == tested and np.isfinite(found["score"]).all()
    (fitted,) = results.glob("features/tangent-*/repeat-0/fold-*.safetensors")
    (graph,) = results.glob("graphs/*/repeat-0/*.safetensors")
    for file in (fitted, graph):
        assert list(read_arrays(file, []).subjects) == split["subject"].tolist()


def test_the_report_says_so_and_claims_no_p_of_one_run(finished):
    tests = pd.read_csv(finished.folder / "results" / "made" / "tables" / "methods-tests.tsv", sep="\t")
    assert tests["difference"].notna().any() and tests[["p_corrected", "p_holm"]].isna().all().all()
    page = (finished.folder / "results" / "reports" / "tiny.html").read_text()
    text = " ".join(re.sub(r"<(style|script|svg)\b.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL).split())
    assert "25 % of each tested, 20 % held back, once a repeat; 1 repeat." in text
    assert "cross-validation" not in text
