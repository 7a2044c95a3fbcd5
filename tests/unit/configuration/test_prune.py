"""Pruning removes the folders that no config names any more, and nothing else."""

import subprocess
import sys
from contextlib import ExitStack

import pytest
import yaml

from brainfed.configuration import load_plan
from brainfed.configuration._loading import overlay
from brainfed.configuration.layout import lock_files
from brainfed.configuration.prune import kept_folders, stale_folders
from brainfed.runtime import hold

CONFIG = """
project: study
cohorts:
  ours: {source: simulate}
split: {count: 2, folds: 3, repeats: 1}
variants:
  quick: {method: fedgcn, graph: {k: 3}}
experiments:
  methods: {variants: [ridge-central, quick]}
"""


def plan(**changes):
    return load_plan(overlay(yaml.safe_load(CONFIG), changes))


@pytest.fixture
def results(tmp_path):
    """Results of the config, with a file in every folder, a report, and files that pruning never touches."""
    folder = tmp_path / "results"
    for path in kept_folders(plan(), folder):
        fill(path)
    for other in (
        "reports/study.html",
        "ours/cohort/participants.parquet",
        "ours/timeseries/cc200/shard-00.safetensors",
    ):
        fill(folder / other)
    return folder


def fill(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "artefact").write_text("x")
    return folder


def test_nothing_that_a_config_names_is_stale(results):
    assert stale_folders([plan()], results) == []


def test_a_stage_that_no_config_names_is_stale(results):
    changed = plan(variants={"quick": {"graph": {"k": 5}}})
    stale = stale_folders([changed], results)
    assert [path.relative_to(results).parts[:2] for path in stale] == [("ours", "graphs")]
    assert stale[0].name.startswith("global-cut-k3-")


def test_generators_and_fused_graphs_that_no_config_names_are_stale(results):
    fedni = {"variants": {"quick": {"method": "fedni"}}}
    for path in kept_folders(plan(**fedni), results):
        fill(path)
    assert stale_folders([plan(**fedni)], results) == []
    changed = plan(variants={"quick": {"method": "fedni", "inpainting": {"alpha": 0.5}}})
    stale = stale_folders([changed], results)
    assert [path.relative_to(results).parts[1] for path in stale] == ["inpainting", "fused", "fidelity"]


def test_covariances_stay_while_any_tangent_features_have_their_shrinkage(results):
    def tangent(shrinkage, reference):
        return plan(features={"connectivity": "tangent", "shrinkage": shrinkage, "reference": reference})

    for path in kept_folders(tangent(0.5, "all"), results):
        fill(path)
    covariances = results / "ours" / "covariances" / "shrinkage-0.5"
    assert covariances not in stale_folders([plan(), tangent(0.5, "training")], results)
    assert covariances in stale_folders([plan(), tangent(0.25, "all")], results)


def test_a_variant_that_no_experiment_names_is_stale_alone_and_a_regime_with_all_in_it(results):
    regime = plan().experiments["methods"].regime.name
    assert stale_folders([plan(experiments={"methods": {"variants": ["ridge-central"]}})], results) == [
        next((results / "ours" / "graphs").iterdir()),
        results / "ours" / "methods" / regime / "quick",
    ]
    stale = stale_folders([plan(experiments={"methods": {"labels": "permuted"}})], results)
    assert stale == [results / "ours" / "methods" / regime]


def test_a_cohort_that_no_config_names_and_a_folder_that_any_config_names_stay(results):
    fill(results / "theirs" / "features" / "pearson-00000000")
    assert stale_folders([plan()], results) == []
    assert stale_folders([plan(protocol="inductive"), plan()], results) == []


def prune(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "brainfed.configuration.prune", *arguments],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
    )


def test_the_command_deletes_the_folders_that_it_lists_and_no_others(tmp_path, results):
    (tmp_path / "config.yaml").write_text(CONFIG.replace("k: 3", "k: 5"))
    before = {path for path in results.rglob("*") if path.is_file()}
    dry = prune(tmp_path, "config.yaml")
    assert dry.stdout.splitlines()[-1] == "1 folder(s) would be removed; `make prune YES=1` (or --yes) removes them"
    assert {path for path in results.rglob("*") if path.is_file()} == before
    wet = prune(tmp_path, "config.yaml", "--yes")
    assert wet.stdout.splitlines()[:-1] == dry.stdout.splitlines()[:-1]
    gone = before - {path for path in results.rglob("*") if path.is_file()}
    assert [path.parent.relative_to(tmp_path).as_posix() for path in gone] == wet.stdout.splitlines()[:-1]
    assert len(gone) == 1


def test_nothing_is_deleted_beside_a_run(tmp_path, results):
    (tmp_path / "config.yaml").write_text(CONFIG.replace("k: 3", "k: 5"))
    before = sorted(results.rglob("artefact"))
    with ExitStack() as held:
        hold(held, lock_files(results, ["ours"], "study"))
        done = prune(tmp_path, "config.yaml", "--yes")
    assert done.returncode == 1
    assert "found one that runs" in done.stderr
    assert sorted(results.rglob("artefact")) == before


def test_a_file_that_only_others_extend_is_no_project(tmp_path, results):
    (tmp_path / "part.yaml").write_text("variants: {quick: {method: fedgcn, graph: {k: 3}}}")
    (tmp_path / "config.yaml").write_text("extends: part.yaml\n" + CONFIG)
    assert prune(tmp_path, "part.yaml", "config.yaml").stdout.startswith("Nothing to remove: ")


def test_a_broken_config_deletes_nothing_and_says_why(tmp_path, results):
    (tmp_path / "config.yaml").write_text(CONFIG.replace("folds: 3", "folds: 1"))
    done = prune(tmp_path, "config.yaml")
    assert done.returncode == 1 and "split.folds" in done.stderr and "Traceback" not in done.stderr
    assert stale_folders([plan()], results) == []


def test_a_config_that_does_not_exist_deletes_nothing_and_says_why(tmp_path, results):
    done = prune(tmp_path, "nowhere.yaml")
    assert done.returncode == 1 and "nowhere.yaml" in done.stderr and "Traceback" not in done.stderr
