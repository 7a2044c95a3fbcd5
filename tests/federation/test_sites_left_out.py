"""Three sites apart, each left out in its turn: the others train, and what they share scores its subjects."""

import json
import os

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from federation.three_sites import SITES, VARIANTS, Study, added, crossings, predictions_of, scores

pytestmark = [
    pytest.mark.full("Processes of several sites over Flower take minutes."),
    pytest.mark.skipif(
        os.environ.get("BRAINFED_METHODS") != "all", reason="takes three minutes: set BRAINFED_METHODS=all"
    ),
]

TOLERANCE = 1e-6
LEFT_OUT = ("mlp", "gcn", "logistic", "ridge-joint", "tangent", "windows")
"""Variants of methods that can leave sites out."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    changes = {
        "split": {"validation": "leave_one_site_out", "repeats": 1},
        "variants": {name: VARIANTS[name] for name in LEFT_OUT},
        "study": {"secure_sums": False},
        "experiments": {"methods": {"variants": list(LEFT_OUT), "reference": "mlp"}},
    }
    made = Study(tmp_path_factory.mktemp("left-out"), **changes)
    together = made.simulation()
    together.snakemake(*predictions_of(together.folder), "--cores", "2")
    with made.running("coordinator", *SITES) as processes:
        made.wait(processes, 900)
    return made


@pytest.mark.parametrize("variant", LEFT_OUT)
def test_a_site_is_scored_by_what_the_others_trained(study, variant):
    expected = scores(study, "together", variant)
    for fold, site in enumerate(SITES):
        found = scores(study, site, variant)
        own = expected.loc[found.index]
        assert set(found["fold"]) == set(own["fold"]) == {fold}
        np.testing.assert_allclose(found["score"], own["score"], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("variant", LEFT_OUT)
def test_ledgers_are_those_of_the_simulation(study, variant):
    found = [row for site in SITES for row in crossings(study, site, variant)]
    assert added(found) == added(crossings(study, "together", variant))


def test_the_coordinator_has_a_fold_of_each_site(study):
    outcome = json.loads((study.root / "coordinator" / "federation" / "outcome.json").read_text())
    for code, site in enumerate(SITES):
        assert {row["fold"] for row in outcome["scores"][site]} == {code}
    page = (study.root / "coordinator" / "federation" / "outcome.html").read_text(encoding="utf-8")
    assert f"Nothing: all {len(SITES)} folds of sites have a row" in page
