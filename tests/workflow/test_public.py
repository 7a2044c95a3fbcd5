"""A method whose server reads public subjects, from simulated scans to its scores."""

import json
from pathlib import Path

import pandas as pd
import pytest

from workflow.project import SIMULATE, Project, new_project, participants_of

pytestmark = pytest.mark.workflow

DECLARATION = """
from dataclasses import dataclass

from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class ShareSettings:
    \"\"\"Settings of the share of patients among the public subjects.\"\"\"

    weight: float = setting(1.0, "Factor of all margins.")


METHOD = Method(
    name="share", title="Share", settings=ShareSettings, entry="brainfed.methods.throwaway.train:train",
    family="baseline", topology="central", needs=("series", "public"), variants={"share": {}},
)
"""
TRAINING = """
import numpy as np

from brainfed.samples.class_scores import of_two_classes
from brainfed.samples.inputs import Outcome


def train(inputs, settings, run):
    scores = np.full(inputs.labels.shape, np.nan)
    counts = {}
    for fold in range(inputs.folds):
        public = inputs.public_training(fold)
        scores[fold, inputs.tested(fold)] = settings.weight * inputs.labels[fold, public].mean()
        counts[f"public-{fold}"] = len(public)
        for code in range(len(inputs.institutions)):
            counts[f"private-{fold}-{code}"] = len(inputs.private_training(fold, code))
    return Outcome(of_two_classes(scores, "margin"), "margin", counts=counts)
"""
COHORT = {"source": "simulate", "atlas": "twenty", "shards": 2, "simulate": SIMULATE}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A project of a simulated cohort with two variants on the same public subjects."""
    project = new_project(tmp_path_factory.mktemp("public"), subjects=0)
    room = project.folder / "workflow/brainfed/methods/throwaway"
    room.mkdir()
    for name, text in (("__init__", ""), ("share", DECLARATION), ("train", TRAINING)):
        (room / f"{name}.py").write_text(text)
    registry = "brainfed/methods/registry.py"
    last = "from brainfed.methods.method"
    project.edit(registry, last, f"from brainfed.methods.throwaway import share\n{last}")
    project.edit(registry, "            majority,\n", "            majority,\n            share,\n")
    configure(project)
    assert project.planned()["choose_public"] == 1
    project.snakemake("--cores", "1", "tables")
    return project


def configure(project: Project, first: float = 0.3, **settings: object) -> None:
    """Two variants with public subjects: the ratio of `half` is the default."""
    variants = {"share": {"method": "share", "public": {"ratio": first}}, "half": {"method": "share", "weight": 0.5}}
    compared = {"methods": {"variants": ["majority", *variants], "reference": "majority"}}
    project.configure(cohorts={"made": COHORT}, variants=variants, experiments=compared, **settings)


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def test_the_method_has_the_public_subjects_of_the_artefact(finished):
    results = finished.folder / "results" / "made"
    public = pd.read_parquet(only(results, "public/30-percent-*/repeat-0/all.parquet"))
    split = pd.read_parquet(only(results, "splits/*/repeat-0.parquet"))
    label = participants_of(results / "cohort")["diagnosis"]
    expected, scores = {}, {}
    for fold in (0, 1):
        chosen = public.loc[public["fold"] == fold, "subject"]
        training = split[split["fold"] != fold]
        assert set(chosen) < set(training["subject"])
        expected[f"public-{fold}"] = len(chosen)
        for code, (_, own) in enumerate(training.groupby("institution")):
            expected[f"private-{fold}-{code}"] = int((~own["subject"].isin(chosen)).sum())
        scores[fold] = label[chosen].mean()
    for name, weight in (("share", 1), ("half", 0.5)):
        method = only(results, f"methods/*/{name}/repeat-0")
        assert json.loads((method / "cost.json").read_text()) == {"counts": expected, "crossings": []}
        found = pd.read_parquet(method / "predictions.parquet")
        for fold, score in scores.items():
            assert found.loc[found["fold"] == fold, "score"].to_numpy() == pytest.approx(weight * score)


def test_another_ratio_draws_again_for_its_own_variants_alone(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configure(project, first=0.4)
    assert project.planned() == {"choose_public": 1, "train_method": 1, "score_experiment": 1}
    configure(project, public={"ratio": 0.4})
    assert project.planned() == {"choose_public": 1, "train_method": 1, "score_experiment": 1}
    configure(project, protocol="inductive")
    assert "choose_public" not in project.planned()
    configure(project)
    assert not project.planned()
