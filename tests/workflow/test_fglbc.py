"""FGLBC from simulated scans to what its institutions spent, also after a kill."""

import json
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workflow.interrupted import end_in_round
from workflow.project import SIMULATE, Project, new_project

pytestmark = [
    pytest.mark.full("A whole run of a family and a kill, whose parts are tested without Snakemake."),
    pytest.mark.workflow,
]

ROUNDS = 80
COHORT = {"source": "simulate", "atlas": "twenty", "shards": 1, "simulate": SIMULATE}
NETWORK = {"window": 32, "channels": 4, "kernel": 3, "strides": [4]}
COMPARED = {"methods": {"variants": ["majority", "ours", "alone"], "reference": "majority"}}


def configure(project: Project, **settings: object) -> None:
    """FGLBC with privacy, and its network alone; `settings` are those of FGLBC."""
    ours = {"method": "fglbc", "rounds": ROUNDS, "batch": 4, "delta": 1e-3, **NETWORK} | settings
    alone = {"method": "stgcn-local", "epochs": 2, **NETWORK}
    project.configure(cohorts={"made": COHORT}, variants={"ours": ours, "alone": alone}, experiments=COMPARED)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A whole run of the tables."""
    project = new_project(tmp_path_factory.mktemp("fglbc"), subjects=0)
    configure(project)
    project.snakemake("--cores", "1", "tables")
    return project


def only(project: Project, variant: str, name: str) -> Path:
    """The one file of a variant."""
    (path,) = project.folder.glob(f"results/made/methods/*/{variant}/repeat-0/{name}")
    return path


def test_every_institution_reports_what_it_spent_and_weighed(finished):
    rows = json.loads(only(finished, "ours", "privacy.json").read_text())
    assert {(row["institution"], row["fold"]) for row in rows} == {
        (f"institution-{number}", fold) for number in (1, 2) for fold in (0, 1)
    }
    for row in rows:
        assert row["steps"] == ROUNDS * -(-row["subjects"] // 4)
        assert 9 < row["epsilon_spent"] <= row["epsilon_planned"] == 10
    assert json.loads(only(finished, "alone", "privacy.json").read_text()) == []
    history = pd.read_parquet(only(finished, "ours", "history.parquet"))
    np.testing.assert_allclose(history.groupby(["fold", "round"])["weight"].sum(), 1)
    assert pd.read_parquet(only(finished, "alone", "history.parquet"))["weight"].isna().all()
    members = pd.read_parquet(only(finished, "ours", "members.parquet"))
    assert len(members) == SIMULATE["subjects"] and members["score"].between(0, 1).all()


def test_another_epsilon_trains_its_variant_again_and_nothing_else(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configure(project)
    assert not project.planned()
    configure(project, epsilon=2)
    planned = project.planned()
    assert planned.pop("audit_experiment", 1) == 1
    assert planned == {"train_method": 1, "score_experiment": 1}
    done = project.snakemake("-n", "tables")
    assert "ours" in done.stdout + done.stderr and "alone/repeat-0/predictions" not in done.stdout + done.stderr


def test_killed_in_the_middle_it_resumes_and_spends_no_step_twice_or_for_nothing(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    files = ("privacy.json", "predictions.parquet", "history.parquet", "members.parquet", "cost.json")
    expected = {name: only(project, "ours", name).read_bytes() for name in files}
    for path in only(project, "ours", "privacy.json").parent.iterdir():
        path.unlink()
    end_in_round(project, ROUNDS // 2, signal.SIGKILL, "tables")
    project.snakemake("--unlock")
    project.snakemake("--cores", "1", "tables")
    (log,) = project.folder.glob("logs/made/methods/*/ours/repeat-0.log")
    assert f"goes on after round {ROUNDS // 2 - 1} of {ROUNDS}, which" in log.read_text()
    assert {name: only(project, "ours", name).read_bytes() for name in files} == expected
