"""Methods at three sites apart, over a real SuperLink with TLS and known keys, against a simulation of the same."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from federation.three_sites import (
    COHORT,
    METHODS,
    SITES,
    VARIANTS,
    Study,
    added,
    crossings,
    predictions_of,
    result,
    scores,
)

pytestmark = pytest.mark.full("Processes of several sites over Flower take minutes.")

TOLERANCE = 1e-6
WORDS = {"samples", "plain", "bounds", "fingerprint"}
"""Of a reply: numbers of training subjects, or that there are some; names of tensors without noise; shapes and bounds
of masked ones."""
COMPARED_KINDS = {"reply", "total"}
"""Kinds of lines of a site's table that have rows in the ledger of a simulation."""
BESIDES = {"introduce", "open", "leave", "secure-keys", "secure-shares", "secure-masked", "secure-unmask"}
"""Kinds that have none: what sites that are apart need besides. Some methods need the `largest` too."""
SUMMED, COMPARED = {"mlp", "tangent"} & {*METHODS}, ("windows",)
"""Variants whose server needs sums alone, and one whose server compares the sites' models."""
LEFT_OUT = ("mlp", "gcn", "logistic", "ridge-joint", "tangent", "windows")
"""Variants of methods that can leave sites out."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return both_ways(Study(tmp_path_factory.mktemp("study")))


def both_ways(study):
    """The study after a simulation, and after its sites and the coordinator have ended well."""
    together = study.simulation()
    together.snakemake(*predictions_of(together.folder), "--cores", "2")
    with study.running("coordinator", *SITES) as processes:
        study.wait(processes, 3000)
    return study


@pytest.mark.parametrize("variant", METHODS)
def test_scores_are_those_of_the_simulation(study, variant):
    expected = scores(study, "together", variant)
    found = pd.concat([scores(study, site, variant) for site in SITES])
    pd.testing.assert_index_equal(found.index.sort_values(), expected.index)
    np.testing.assert_allclose(found.loc[expected.index, "score"], expected["score"], rtol=0, atol=TOLERANCE)
    assert found.loc[expected.index, "fold"].tolist() == expected["fold"].tolist()


@pytest.mark.parametrize("variant", METHODS)
def test_ledgers_are_those_of_the_simulation(study, variant):
    found = [row for site in SITES for row in crossings(study, site, variant)]
    assert added(found) == added(crossings(study, "together", variant))


@pytest.mark.parametrize("site", SITES)
def test_every_tensor_that_leaves_is_listed_and_declared(study, site):
    listed = pd.read_csv(study.root / site / "federation" / "left-this-site.tsv", sep="\t")
    left = listed[listed["kind"].isin(COMPARED_KINDS)]
    for variant in METHODS:
        own = left[left["job"].str.contains(f"/{variant}/", regex=False)]
        assert len(own) or variant == "ridge-alone"
        declared = {row["name"] for row in crossings(study, site, variant) if row["direction"] == "upload"}
        assert set(own["name"]) <= declared | WORDS, variant
    assert (left["bytes"] > 0).all()


@pytest.mark.parametrize("site", SITES)
def test_words_besides_the_numbers_of_a_simulation_are_listed_too(study, site):
    listed = pd.read_csv(study.root / site / "federation" / "left-this-site.tsv", sep="\t")
    assert COMPARED_KINDS | BESIDES <= set(listed["kind"]) <= COMPARED_KINDS | BESIDES | {"largest"}
    assert (listed["bytes"] > 0).all()


@pytest.mark.parametrize("site", SITES)
def test_what_is_only_added_up_leaves_masked(study, site):
    listed = pd.read_csv(study.root / site / "federation" / "left-this-site.tsv", sep="\t")
    arrays = listed[listed["kind"].isin(COMPARED_KINDS) & (listed["type"] != "words")]
    for variant in SUMMED:
        assert set(arrays.loc[arrays["job"].str.contains(f"/{variant}/", regex=False), "type"]) == {"masked"}
    for variant in COMPARED:
        own = arrays[arrays["job"].str.contains(f"/{variant}/", regex=False) & (arrays["kind"] == "reply")]
        assert len(own)
        assert set(own["type"]) == {"float32"}


def test_private_steps_are_accounted_for_at_the_site(study):
    expected = json.loads(result(study.root / "together", "windows", "privacy.json").read_text())
    found = [
        row for site in SITES for row in json.loads(result(study.root / site, "windows", "privacy.json").read_text())
    ]
    assert found == expected


def test_the_coordinator_learns_counts_and_measures_of_folds_and_no_score_of_a_person(study):
    outcome = json.loads((study.root / "coordinator" / "federation" / "outcome.json").read_text())
    assert sorted(outcome["scores"]) == sorted(SITES)
    page = (study.root / "coordinator" / "federation" / "outcome.html").read_text(encoding="utf-8")
    assert "Can three institutions predict" in page and "rounds and sums of all sites" in page
    for site, rows in outcome["scores"].items():
        assert {row["variant"] for row in rows} == set(METHODS)
        for row in rows:
            own = scores(study, site, row["variant"])
            own = own[own["fold"] == row["fold"]]
            assert row["subjects"] == len(own) == sum(map(sum, row["counts"]))
            right = sum(row["counts"][code][code] for code in (0, 1))
            assert row["measures"]["accuracy"] == pytest.approx(right / len(own))
    assert not list((study.root / "coordinator").glob(f"results/{COHORT}/**/*.parquet"))


def test_the_coordinator_says_who_comes_and_who_leaves(study):
    said = study.log("coordinator").read_text()
    for site in SITES:
        assert f"site {site} is there" in said
        assert f"site {site} has left; " in said
    assert re.search(r"INFO 1 step, the last of \S+; waiting for east, north, south", said)
    assert "has left; all sites have left" in said


def test_a_site_that_is_started_again_after_the_end_knows_that_it_has_left(study):
    assert study.start("north").wait(60) == 0
    assert re.search(
        r"north has left this study already, on .*; its report: results/reports/across\.html, which",
        study.log("north").read_text(),
    )


@pytest.mark.skipif(os.environ.get("BRAINFED_METHODS") != "all", reason="takes three minutes: set BRAINFED_METHODS=all")
class TestLeftOut:
    """Each site is left out in its turn: the others train, and what they share scores its subjects."""

    @pytest.fixture(scope="class")
    @classmethod
    def study(cls, tmp_path_factory):
        changes = {
            "split": {"validation": "leave_one_site_out", "repeats": 1},
            "variants": {name: VARIANTS[name] for name in LEFT_OUT},
            "study": {"secure_sums": False},
            "experiments": {"methods": {"variants": list(LEFT_OUT), "reference": "mlp"}},
        }
        return both_ways(Study(tmp_path_factory.mktemp("left-out"), **changes))

    @pytest.mark.parametrize("variant", LEFT_OUT)
    def test_a_site_is_scored_by_what_the_others_trained(self, study, variant):
        expected = scores(study, "together", variant)
        for fold, site in enumerate(SITES):
            found = scores(study, site, variant)
            own = expected.loc[found.index]
            assert set(found["fold"]) == set(own["fold"]) == {fold}
            np.testing.assert_allclose(found["score"], own["score"], rtol=0, atol=TOLERANCE)

    @pytest.mark.parametrize("variant", LEFT_OUT)
    def test_ledgers_are_those_of_the_simulation(self, study, variant):
        test_ledgers_are_those_of_the_simulation(study, variant)

    def test_the_coordinator_has_a_fold_of_each_site(self, study):
        outcome = json.loads((study.root / "coordinator" / "federation" / "outcome.json").read_text())
        for code, site in enumerate(SITES):
            assert {row["fold"] for row in outcome["scores"][site]} == {code}
        page = (study.root / "coordinator" / "federation" / "outcome.html").read_text(encoding="utf-8")
        assert f"Nothing: all {len(SITES)} folds of sites have a row" in page
