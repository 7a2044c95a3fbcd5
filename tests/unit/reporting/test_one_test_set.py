"""The page of an experiment with one test set a repeat, also where that is a single run."""

import pandas as pd
import pytest

from brainfed.reporting import read_outline, read_scored
from support.reports import report_project

HOLDOUT = {
    "validation": "holdout",
    "institutions": "consecutive",
    "folds": 5,
    "stratify": "label",
    "tested": 0.1,
    "held_back": 0.1,
}


@pytest.fixture(autouse=True)
def _one_test_set(monkeypatch):
    monkeypatch.setattr(report_project, "FOLDS", 1)
    monkeypatch.setattr(report_project, "SPLIT", HOLDOUT)
    report_project.use_few_methods(monkeypatch)


@pytest.mark.parametrize("pictures", [False, pytest.param(True, marks=pytest.mark.full("Figures take seconds."))])
def test_data_sets_with_classes_of_their_own_are_not_pooled(tmp_path, monkeypatch, pictures):
    monkeypatch.setattr(report_project, "POOLED", False)
    monkeypatch.setattr(report_project, "REPEATS", 1)
    outline = report_project.draw_project(tmp_path, pictures=pictures)
    page = report_project.page_of(outline)
    assert "all test subjects pooled" not in page
    assert "Test subjects are not pooled: a class of one data set is not that of another." in page
    assert "mean over institutions" in page and "ROC curve of every method" not in page
    tests = pd.read_csv(outline["cohorts"][0]["experiments"][0]["tables"]["tests"], sep="\t")
    assert set(tests["scope"]) == {"institution"}


@pytest.mark.parametrize("repeats", [1, 2])
def test_the_page_says_what_was_tested_and_claims_no_p_of_one_run(tmp_path, repeats, monkeypatch):
    monkeypatch.setattr(report_project, "REPEATS", repeats)
    values = report_project.draw_project(tmp_path, pictures=False)
    outline, page = read_outline(values), report_project.page_of(values)
    text = report_project.words_of(page)
    many = "s" if repeats > 1 else ""
    tested = (pd.read_parquet(outline.cohorts[0].experiments[0].splits[0])["fold"] == 0).sum()
    assert f"Scores are means over {repeats} test{many} of {tested} people, " in text
    assert (
        "2 institutions of consecutive subjects, the rest at random; 10 % of each tested, 10 % held back, once a "
        f"repeat; {repeats} repeat{many}." in text
    )
    assert f"Mean over {repeats} run{many} (a run is the test of one repeat)" in text
    assert "cross-validation" not in text and "luck of the folds" not in text
    experiment = outline.cohorts[0].experiments[0]
    tests = pd.read_csv(experiment.tables["tests"], sep="\t")
    assert tests[["p_corrected", "p_paper", "p_holm", "ci_low"]].notna().all().all() == (repeats > 1)
    assert tests["difference"].notna().any()
    drawn = [pd.read_parquet(path)["fold"] for path in experiment.splits]
    found = [(fold == 0).sum() / (fold == -1).sum() for fold in drawn]
    assert read_scored(experiment).ratio == pytest.approx(sum(found) / repeats)
    assert found[0] == pytest.approx(1 / 2, abs=0.1)
