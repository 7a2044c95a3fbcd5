"""Where artefacts lie, what each job reads, and what a run locks."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from brainfed.cohort.sources import list_cohort
from brainfed.configuration import load_plan
from brainfed.configuration._loading import overlay
from brainfed.configuration.layout import (
    CohortInputs,
    Layout,
    atlases_to_fetch,
    cohorts_from,
    cohorts_yielding,
    covariance_pattern,
    exported_folders,
    lock_files,
    stage_pattern,
    timing_of,
)
from brainfed.runtime import UserError, hold

CONFIG = """
project: study
cohorts:
  ours: {source: simulate, simulate: {subjects: 12}, shards: 2}
split: {count: 2, folds: 2, repeats: 2}
variants:
  first: {method: fedni}
experiments:
  methods: {variants: [majority, ridge-central, fedgcn, first]}
"""


def laid_out(**changes):
    plan = load_plan(overlay(yaml.safe_load(CONFIG), changes))
    listings = {"ours": SimpleNamespace(labelled_sites=("a", "b", "c", "d"), shards=("shard-00", "shard-01"))}
    variants = {one.name: one for one in plan.experiments["methods"].variants}
    return Layout(plan, listings), variants, plan.experiments["methods"].regime


def test_a_method_reads_subjects_and_the_stages_that_it_needs():
    layout, variants, regime = laid_out()
    subjects = {
        "split": f"results/ours/splits/{regime.split}/repeat-1.parquet",
        "participants": "results/ours/cohort/participants/site-diagnosis.parquet",
    }
    features = f"results/ours/features/{variants['fedgcn'].stages['features'].name}/all.safetensors"
    graph = f"results/ours/graphs/{variants['fedgcn'].stages['graph'].name}/repeat-1/all.safetensors"
    fused = f"results/ours/fused/{variants['first'].stages['fused'].name}/repeat-1/all.safetensors"
    read = {name: layout.method_inputs(one, regime.name, "ours", 1) for name, one in variants.items()}
    assert (read["majority"], read["ridge-central"]) == (subjects, subjects | {"features": [features]})
    assert read["fedgcn"] == subjects | {"features": [features], "graphs": [graph]}
    assert read["first"] == subjects | {"features": [features], "fused": [fused]}


def test_under_the_inductive_protocol_every_fold_has_a_part_made_of_the_same_features():
    layout, variants, _ = laid_out(protocol="inductive")
    fused = variants["first"].stages["fused"]
    read = layout.stage_inputs(fused, "ours", 0, "fold-1")
    assert list(read) == ["split", "participants", "features", "graph", "generator"]
    assert read["features"].endswith(f"{fused.parent('features').name}/all.safetensors")
    assert read["graph"].endswith(f"{fused.parent('graph').name}/repeat-0/fold-1.safetensors")
    assert read["generator"].endswith(f"{fused.parent('inpainting').name}/repeat-0/fold-1/generator.safetensors")
    assert [path.rpartition("/")[2] for path in layout.files_of(fused, "ours", 0)] == [
        "fold-0.safetensors",
        "fold-1.safetensors",
    ]


def test_left_out_sites_are_the_folds_and_one_test_set_is_one():
    layout, variants, _ = laid_out(split={"validation": "leave_one_site_out"}, protocol="inductive")
    assert len(layout.files_of(variants["fedgcn"].stages["graph"], "ours", 0)) == 4
    layout, variants, _ = laid_out(split={"validation": "holdout", "folds": 4}, protocol="inductive")
    assert len(layout.files_of(variants["fedgcn"].stages["graph"], "ours", 0)) == 1


def test_features_of_all_repeats_are_read_once_and_fitted_ones_once_a_fold_and_repeat():
    layout, variants, _ = laid_out()
    assert len(layout.files_of_repeats(variants["fedgcn"].stages["features"], "ours", 2)) == 1
    assert len(layout.files_of_repeats(variants["fedgcn"].stages["graph"], "ours", 2)) == 2
    assert layout.files_of_repeats(variants["majority"].stage("features"), "ours", 2) == []
    layout, variants, _ = laid_out(features={"connectivity": "tangent"})
    assert len(layout.files_of_repeats(variants["fedgcn"].stages["features"], "ours", 2)) == 4


def test_a_fold_is_fitted_on_covariances_or_on_the_features_of_everybody():
    layout, variants, _ = laid_out(features={"connectivity": "tangent", "shrinkage": 0.5})
    read = layout.fitting_inputs(variants["fedgcn"].stages["features"], "ours", 1, 0)
    files = [f"results/ours/covariances/shrinkage-0.5/shard-0{number}.safetensors" for number in range(2)]
    assert (read["covariances"], read["whole"], read["participants"]) == (files, [], [])
    layout, variants, _ = laid_out(features={"selection": "rfe"})
    features = variants["fedgcn"].stages["features"]
    read = layout.fitting_inputs(features, "ours", 1, 0)
    assert read["covariances"] == []
    assert read["whole"] == f"results/ours/features/{features.parents[0].name}/all.safetensors"
    assert read["participants"] == "results/ours/cohort/participants/diagnosis.parquet"


@pytest.mark.parametrize("further", [{"harmonise": "combat"}, {"selection": "rfe"}])
def test_a_fold_harmonises_or_selects_from_the_tangent_features_of_everybody(further):
    layout, variants, _ = laid_out(features={"connectivity": "tangent", "reference": "all", **further})
    features = variants["fedgcn"].stages["features"]
    read = layout.fitting_inputs(features, "ours", 1, 0)
    assert (read["covariances"], len(features.parents)) == ([], 1)
    assert read["whole"] == f"results/ours/features/{features.parents[0].name}/all.safetensors"


def test_tangent_features_of_all_references_read_the_same_covariances():
    files = set()
    for given in ({}, {"reference": "training"}, {"reference": "all"}, {"harmonise": "combat"}):
        layout, variants, _ = laid_out(features={"connectivity": "tangent", "shrinkage": 0.25, **given})
        files.add(tuple(layout.covariance_files(variants["fedgcn"].stages["features"], "ours")))
    assert len(files) == 1
    written = covariance_pattern().format(cohort="ours", shrinkage="0.25", shard="shard-01")
    assert written == files.pop()[1]


def test_the_fidelity_of_a_repeat_is_that_of_its_first_part_and_needs_no_generator():
    layout, variants, _ = laid_out(protocol="inductive")
    read = layout.fidelity_inputs(variants["first"].stages["fused"], "ours", 1)
    assert list(read) == ["split", "participants", "features", "graph", "fused"]
    assert read["fused"].endswith("/repeat-1/fold-0.safetensors")


def test_rules_write_where_readers_look():
    assert stage_pattern("graph") == "results/{cohort}/graphs/{graph}/repeat-{repeat}/{part}.safetensors"
    assert timing_of(stage_pattern("fused")) == "results/{cohort}/fused/{fused}/repeat-{repeat}/{part}-timing.json"
    folder = "results/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}"
    assert stage_pattern("inpainting") == f"{folder}/generator.safetensors"
    assert stage_pattern("inpainting", name="cost.json") == f"{folder}/cost.json"
    whole = stage_pattern("features", part="all", repeat="")
    assert whole == "results/{cohort}/features/{features}/all.safetensors"


def simulated():
    settings = load_plan(yaml.safe_load(CONFIG)).project.cohorts["ours"]
    return CohortInputs("ours", settings, list_cohort("ours", settings))


def test_every_shard_has_one_file_of_a_kind_and_is_simulated_up_to_its_own_last_subject():
    inputs = simulated()
    folder = f"results/ours/timeseries/{inputs.listing.atlas}"
    assert inputs.shard_files("-quality.parquet") == [f"{folder}/shard-0{n}-quality.parquet" for n in (0, 1)]
    assert inputs.series_files() == inputs.shard_files(".safetensors")
    subjects = [subject for subject, *_ in inputs.shard_subjects("shard-00")]
    assert len(inputs.images("shard-00")) == len(subjects)
    last = max(int(subject.removeprefix("sub-")) for subject in subjects)
    assert inputs.simulation("shard-00")["simulate"]["subjects"] == last
    assert inputs.simulation()["simulate"]["subjects"] == 12
    settings = {"source": "simulate", "target": "diagnosis"}
    assert inputs.ingested(["age"]) == {"settings": settings, "columns": ["age"]}
    assert not inputs.averages_runs()


def test_cohorts_are_named_by_source_and_by_kind_of_features():
    cohorts = load_plan(yaml.safe_load(CONFIG)).project.cohorts
    assert cohorts_from(cohorts, "simulate", "nifti") == ["ours"]
    assert cohorts_from(cohorts, "bids") == cohorts_yielding(cohorts, "morphometry") == exported_folders(cohorts) == []
    assert len(atlases_to_fetch(cohorts)) > 1


@pytest.fixture
def holding(tmp_path):
    """Hold the locks of a run in a clone of that name until the test ends."""
    with ExitStack() as held:
        yield lambda clone, cohorts, project="study": hold(
            held, lock_files(tmp_path / clone / "results", cohorts, project)
        )


def test_runs_of_other_cohorts_and_projects_share_one_folder(holding, tmp_path):
    holding("clone", ["abide"], "one")
    holding("clone", ["adhd"], "two")
    locks = {path.relative_to(tmp_path / "clone/results").as_posix() for path in tmp_path.rglob("*.lock")}
    assert locks == {"abide/.lock", "adhd/.lock", "reports/.one.lock", "reports/.two.lock"}


@pytest.mark.parametrize("shared", ["results", "results/abide", "results/abide/timeseries"])
def test_two_clones_that_share_results_in_any_way_do_not_run_at_once(holding, tmp_path: Path, shared):
    for clone in ("one", "other"):
        link = tmp_path / clone / shared
        link.parent.mkdir(parents=True)
        (tmp_path / "shared").mkdir(exist_ok=True)
        link.symlink_to(tmp_path / "shared")
    holding("one", ["abide"])
    with pytest.raises(UserError, match="expected no other run that writes these results, found one that runs"):
        holding("other", ["abide"])


def test_two_projects_of_one_name_do_not_write_one_report_at_once(holding):
    holding("clone", ["abide"])
    with pytest.raises(UserError, match=r"/clone/results/reports: expected no other run"):
        holding("clone", ["adhd"])


def test_runs_that_hold_nothing_of_each_other_run_at_once(holding, tmp_path):
    holding("one", ["abide"])
    holding("other", ["abide"])
    assert all((tmp_path / clone / "results/abide/.lock").exists() for clone in ("one", "other"))
