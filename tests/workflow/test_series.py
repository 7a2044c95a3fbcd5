"""A method whose samples are region series, from simulated scans to its scores."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime.artefacts import read_arrays
from workflow.project import SIMULATE, Project, new_project, participants_of

pytestmark = [pytest.mark.full("A whole run, whose parts are tested without Snakemake."), pytest.mark.workflow]

DECLARATION = """
from dataclasses import dataclass

from brainfed.methods.method import Method


@dataclass(frozen=True)
class LagSettings:
    \"\"\"No settings.\"\"\"


METHOD = Method(
    name="lags", title="Lags", settings=LagSettings, entry="brainfed.methods.throwaway.train:train",
    family="baseline", topology="central", needs=("series",), variants={"lags": {}},
)
"""
TRAINING = """
import numpy as np

from brainfed.graphs.connectome.normalised import normalised_adjacency
from brainfed.samples.class_scores import of_two_classes
from brainfed.samples.inputs import Outcome
from brainfed.samples.windows import test_offsets, training_offset, window, wrapped


def train(inputs, settings, run):
    scores = np.full(inputs.labels.shape, np.nan)
    rows = []
    for number, subject in enumerate(inputs.subjects):
        series = inputs.subject(number)
        offset = training_offset(inputs.streams, len(series), 64, subject)
        windows = [window(series, 64, start) for start in (offset, *test_offsets(len(series), 64))]
        rows.append(np.mean([normalised_adjacency(held).ravel() for held in windows], axis=0))
    features = np.stack(rows)
    for fold in range(inputs.folds):
        ones, noughts = (features[inputs.labels[fold] == label].mean(axis=0) for label in (1, 0))
        tested = inputs.tested(fold)
        scores[fold, tested] = ((features - (ones + noughts) / 2) @ (ones - noughts))[tested]
    return Outcome(of_two_classes(scores, "margin"), "margin", counts={"wrapped": wrapped(inputs.lengths, 64)})
"""
COHORT = {"source": "simulate", "atlas": "twenty", "shards": 2, "simulate": SIMULATE}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A project of a simulated cohort whose method reads series: sites have 60 and 70 volumes."""
    project = new_project(tmp_path_factory.mktemp("series"), subjects=0)
    room = project.folder / "workflow/brainfed/methods/throwaway"
    room.mkdir()
    for name, text in (("__init__", ""), ("lags", DECLARATION), ("train", TRAINING)):
        (room / f"{name}.py").write_text(text)
    registry = "brainfed/methods/registry.py"
    last = "from brainfed.methods.method"
    project.edit(registry, last, f"from brainfed.methods.throwaway import lags\n{last}")
    project.edit(registry, "            majority,\n", "            majority,\n            lags,\n")
    configure(project)
    project.snakemake("--cores", "1", "tables")
    return project


def configure(project: Project, **settings: object) -> None:
    compared = {"methods": {"variants": ["majority", "lags"], "reference": "majority"}}
    project.configure(cohorts={"made": COHORT}, variants={}, experiments=compared, **settings)


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def test_every_subject_is_scored_on_its_series(finished):
    results = finished.folder / "results" / "made"
    held = read_arrays(only(results, "series/zscore-*/all.safetensors"))
    start, series = held.arrays["start"], held.arrays["series"]
    people = participants_of(results / "cohort")
    volumes = people.loc[list(held.subjects), "site"].map({"a": 60, "b": 70})
    assert np.diff(start).tolist() == volumes.tolist()
    for first, last in itertools.pairwise(start):
        np.testing.assert_allclose(series[first:last].mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(series[first:last].std(axis=0), 1, atol=1e-4)
    method = only(results, "methods/*/lags/repeat-0")
    assert pd.read_parquet(method / "predictions.parquet")["subject"].tolist() == list(held.subjects)
    cost = json.loads((method / "cost.json").read_text())
    assert cost == {"counts": {"wrapped": int((volumes == 60).sum())}, "crossings": []}
    assert not list(results.glob("features/*"))


def test_another_scale_joins_the_series_and_trains_again_and_features_change_nothing(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configure(project, series={"scale": "zscore_runs"})
    assert project.planned() == {"join_series": 1, "train_method": 1, "score_experiment": 1}
    configure(project, features={"fisher_z": True})
    assert not project.planned()
