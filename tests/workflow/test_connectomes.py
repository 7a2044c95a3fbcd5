"""A method whose samples are graphs, from simulated scans to its scores."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.graphs.connectome.edges import matrices
from brainfed.runtime.artefacts import read_arrays
from brainfed.samples.graph_samples import read_graph_samples
from workflow.project import SIMULATE, Project, new_project

pytestmark = pytest.mark.workflow

DECLARATION = """
from dataclasses import dataclass

from brainfed.methods.method import Method


@dataclass(frozen=True)
class CentroidSettings:
    \"\"\"No settings.\"\"\"


METHOD = Method(
    name="centroids", title="Centroids", settings=CentroidSettings, entry="brainfed.methods.throwaway.train:train",
    family="baseline", topology="central", needs=("connectomes",), variants={"centroids": {}},
)
"""
TRAINING = """
import numpy as np

from brainfed.samples.class_scores import of_two_classes
from brainfed.samples.inputs import Outcome


def train(inputs, settings, run):
    scores = np.full(inputs.labels.shape, np.nan)
    for fold in range(inputs.folds):
        graphs = inputs.fold_graphs(fold)
        graph = np.repeat(np.arange(len(graphs)), np.diff(graphs.edge_start))
        strength = np.zeros((len(graphs), int(np.diff(graphs.node_start).max())))
        np.add.at(strength, (graph, graphs.target), graphs.weight)
        ones, noughts = (strength[inputs.labels[fold] == label].mean(axis=0) for label in (1, 0))
        tested = inputs.tested(fold)
        scores[fold, tested] = ((strength - (ones + noughts) / 2) @ (ones - noughts))[tested]
    return Outcome(of_two_classes(scores, "margin"), "margin")
"""
COHORT = {"source": "simulate", "atlas": "twenty", "shards": 1, "simulate": SIMULATE}


def with_method(folder: Path) -> Project:
    """A project of a simulated cohort, and one more method in its copy of the workflow."""
    project = new_project(folder, subjects=0)
    room = project.folder / "workflow/brainfed/methods/throwaway"
    room.mkdir()
    for name, text in (("__init__", ""), ("centroids", DECLARATION), ("train", TRAINING)):
        (room / f"{name}.py").write_text(text)
    registry = "brainfed/methods/registry.py"
    project.edit(
        registry,
        "from brainfed.methods.method",
        "from brainfed.methods.throwaway import centroids\nfrom brainfed.methods.method",
    )
    project.edit(registry, "            majority,\n", "            majority,\n            centroids,\n")
    return project


def configure(project: Project, **settings: object) -> None:
    project.configure(
        cohorts={"made": COHORT},
        variants={"fitted": {"method": "centroids", "features": {"connectivity": "tangent", "reference": "training"}}},
        experiments={"methods": {"variants": ["majority", "centroids", "fitted"], "reference": "majority"}},
        **settings,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    project = with_method(tmp_path_factory.mktemp("connectomes"))
    configure(project)
    project.snakemake("--cores", "1", "tables")
    return project


def test_every_subject_is_scored_on_its_connectome(finished):
    results = finished.folder / "results" / "made"
    (path,) = results.glob("connectomes/density-0.1-*/all.safetensors")
    subjects = read_arrays(path, []).subjects
    graphs = read_graph_samples(path, subjects)
    (features,) = results.glob("features/pearson-*/all.safetensors")
    np.testing.assert_array_equal(
        graphs.nodes.reshape(-1, 20, 20), matrices(read_arrays(features).arrays["features"], 20)
    )
    assert set(np.diff(graphs.edge_start)) == {2 * 19}
    for variant in ("centroids", "fitted"):
        (file,) = results.glob(f"methods/*/{variant}/repeat-0/predictions.parquet")
        assert pd.read_parquet(file)["subject"].tolist() == list(subjects)


def test_what_is_fitted_by_fold_has_connectomes_by_fold(finished):
    results = finished.folder / "results" / "made"
    parts = sorted(results.glob("connectomes/density-0.1-*/repeat-0/fold-*.safetensors"))
    assert [part.stem for part in parts] == ["fold-0", "fold-1"]
    first, second = (read_arrays(part, ["nodes"]).arrays["nodes"] for part in parts)
    assert first.shape == second.shape and not np.array_equal(first, second)
    assert all(part.with_name(f"{part.stem}-timing.json").is_file() for part in parts)
    (cost,) = results.glob("methods/*/fitted/repeat-0/cost.json")
    crossed = {row["name"] for row in json.loads(cost.read_text())["crossings"]}
    assert crossed == {"log-covariance-sum", "summed-subjects", "tangent-reference"}


def test_another_density_builds_connectomes_and_measures_nothing_again(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configure(project, connectomes={"density": 0.2})
    assert project.planned() == {
        "build_connectomes": 1, "build_fitted_connectomes": 2, "train_method": 2, "score_experiment": 1
    }  # fmt: skip


def test_a_threshold_that_no_connection_reaches_is_one_sentence(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configure(project, connectomes={"edges": "absolute", "threshold": 0.999})
    done = project.snakemake("--cores", "1", "tables", check=False)
    assert done.returncode
    (log,) = (project.folder / "logs" / "made" / "build_connectomes").glob("threshold-0.999-*.log")
    assert "connectomes.threshold: expected an edge in every connectome, found none in 24 of 24" in log.read_text()
    assert "Traceback" not in log.read_text()
