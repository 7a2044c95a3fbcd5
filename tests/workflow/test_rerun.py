"""Exactly what a change touches runs again."""

import json
import re
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from support.samples.parameter_ids import in_order
from workflow.project import CONFIG, new_project

pytestmark = pytest.mark.workflow

COHORT_DECIDED = {"include_subjects": 1, "list_issues": 1, "split_subjects": 1}
MEASURED = {"measure_scans": 1, "measure_quality": 1}
INGESTED = {"ingest_phenotypes": 1, "ingest_columns": 4}
EVERYTHING_FROM_FEATURES = {"compute_connectivity": 1, "build_graph": 1, "train_method": 3, "score_experiment": 1}


def variants(**settings):
    return {"variants": {"quick": CONFIG["variants"]["quick"] | settings}}


def test_a_finished_project_has_nothing_to_do(project):
    assert project.planned() == Counter()


def test_moving_or_touching_the_code_reruns_nothing(project):
    project.own_workflow()
    for path in (project.folder / "workflow").rglob("*.py"):
        path.touch()
    assert project.planned() == Counter()


def test_a_change_of_k_reruns_its_graph_and_method_not_the_features(project):
    project.configure(**variants(graph={"k": 3}))
    assert project.planned() == Counter(build_graph=1, train_method=1, score_experiment=1)


def test_a_setting_that_does_not_count_reruns_nothing(project):
    project.configure(features={"selected": 9}, split=CONFIG["split"] | {"groups": {"one": ["alpha"]}})
    assert project.planned() == Counter()


def test_switching_k_back_finds_the_old_graph(project):
    project.configure(**variants(graph={"k": 3}))
    project.snakemake("--cores", "2", "tables")
    project.configure()
    assert project.planned() == Counter(train_method=1, score_experiment=1)


def test_a_change_of_one_learning_rate_reruns_one_method(project):
    project.configure(**variants(learning_rate=0.01))
    assert project.planned() == Counter(train_method=1, score_experiment=1)


def test_an_edit_of_the_graph_module_reruns_graphs_and_their_readers(project):
    project.edit_function("brainfed/graphs/_neighbours.py", "similarity")
    assert project.planned() == Counter(build_graph=1, train_method=1, score_experiment=1)


def test_an_edit_of_one_methods_module_reruns_that_method(project):
    project.edit_function("brainfed/methods/linear/train.py", "train_ridge")
    assert project.planned() == Counter(train_method=1, score_experiment=1)


def test_an_edit_of_the_federated_rounds_reruns_the_federated_methods(project):
    project.edit_function("brainfed/federation/_loop.py", "federate")
    assert project.planned() == Counter(train_method=2, score_experiment=1)


def test_code_that_no_job_reaches_reruns_nothing(project):
    for file in ("graphs/_neighbours", "federation/_loop", "runtime/_artefacts", "samples/_assemble"):
        project.edit(
            f"brainfed/{file}.py", "\n\ndef ", "\n\nUNUSED = 1\n\n\ndef unused():\n    return UNUSED\n\n\ndef "
        )
    assert project.planned() == Counter()


def test_a_comment_or_docstring_reruns_nothing(project):
    project.edit("brainfed/graphs/_neighbours.py", '"""', '"""Reworded. ')
    project.edit("brainfed/federation/_loop.py", "\n\ndef ", "\n\n# A new comment.\ndef ")
    assert project.planned() == Counter()


def test_an_edit_of_logging_or_device_code_reruns_nothing(project):
    project.edit_function("brainfed/runtime/_logs.py", "configure")
    project.edit_function("brainfed/runtime/devices/_lease.py", "lease")
    assert project.planned() == Counter()


def test_one_subjects_file_reruns_its_shard_and_the_steps_after_it(project):
    project.write_subject("sub-000", seed=999)
    assert project.planned() == Counter(EVERYTHING_FROM_FEATURES | {"read_series": 1, **MEASURED} | COHORT_DECIDED)


def test_a_rewritten_equal_file_reruns_nothing(project):
    project.write_subject("sub-000", seed=0)
    assert project.planned() == Counter()


def test_one_new_subject_reruns_one_shard_and_the_steps_after_it(project):
    project.add_subject("sub-900", "alpha", "23", "male", "patient")
    assert project.planned() == Counter(
        EVERYTHING_FROM_FEATURES | INGESTED | {"read_series": 1} | MEASURED | COHORT_DECIDED
    )


@pytest.mark.full("Two whole runs.")
def test_a_corrected_age_trains_what_compares_ages_and_leaves_the_bytes_of_a_run_from_scratch(project, tmp_path):
    """A column that the config does not name is added, and a code that no cell holds."""
    scratch = project.copy(tmp_path / "scratch")
    for each in (project, scratch):
        table = each.folder / "resources" / "participants.csv"
        rows = [f"{line},{'notes' if line.startswith('participant_id') else 'x'}" for line in table.read_text().split()]
        table.write_text("\n".join(rows).replace("sub-003,beta,23,", "sub-003,beta,61,") + "\n")
        each.configure(cohorts={"tiny": CONFIG["cohorts"]["tiny"] | {"missing": ["-77"]}})
    age = Counter(ingest_columns=1, build_graph=1, train_method=1, score_experiment=1)
    assert project.planned() == age + Counter(ingest_phenotypes=1, list_issues=1)
    project.snakemake("--cores", "2", "tables")
    for path in (scratch.folder / "results", scratch.folder / ".snakemake" / "metadata"):
        shutil.rmtree(path)
    scratch.snakemake("--cores", "2", "tables")
    assert written(project.folder) == written(scratch.folder)


def written(folder):
    """Path -> content of what jobs wrote, without what they measured and their records."""
    files = [path for path in (folder / "results").rglob("*") if path.is_file() and not path.name.startswith(".")]
    kept = [path for path in files if "benchmarks" not in path.parts and not path.name.endswith("timing.json")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def test_the_limits_of_listed_subjects_rerun_no_decision(project):
    cohort = CONFIG["cohorts"]["tiny"]
    project.configure(cohorts={"tiny": cohort | {"flag": {"mean_fd": 0.3, "site_effect": 1.0}}})
    assert project.planned() == Counter(list_issues=1)


def test_a_rule_of_exclusion_decides_anew(project):
    project.configure(cohorts={"tiny": CONFIG["cohorts"]["tiny"] | {"exclude": {"min_volumes": 50}}})
    assert project.planned()["include_subjects"] == 1


def test_one_more_repeat_keeps_the_first(project):
    project.configure(split=CONFIG["split"] | {"repeats": 2})
    assert project.planned() == Counter(split_subjects=1, build_graph=1, train_method=3, score_experiment=1)


def test_folds_by_site_and_label_are_another_split(project):
    project.configure(split=CONFIG["split"] | {"stratify": "site_label"})
    assert project.planned() == Counter(split_subjects=1, build_graph=1, train_method=3, score_experiment=1)


def test_folds_by_label_are_those_without_the_setting(project):
    project.configure(split=CONFIG["split"] | {"stratify": "label"})
    assert project.planned() == Counter()


def test_the_null_control_learns_shuffled_labels_and_is_judged_by_them(project):
    alone = {"variants": ["ridge-central"], "reference": "ridge-central"}
    project.configure(experiments={"methods": alone, "null": alone | {"labels": "permuted"}})
    project.snakemake("--cores", "2", "tables")
    files = sorted(project.folder.glob("results/tiny/methods/*/ridge-central/repeat-0/predictions.parquet"))
    true, null = map(pd.read_parquet, files)
    assert true["label"].sum() == null["label"].sum()
    assert (true["label"] != null["label"]).any()
    assert not np.allclose(true["score"], null["score"])


def test_the_inductive_protocol_puts_graphs_on_the_fold_axis(project):
    project.configure(protocol="inductive")
    assert project.planned() == Counter(build_graph=2, train_method=3, score_experiment=1)


RFE = {"selection": "rfe", "selected": 9}


def test_features_chosen_by_labels_are_taken_from_those_that_are_there(project):
    project.configure(features=RFE)
    assert project.planned() == Counter(
        ingest_columns=1, fit_connectivity=2, build_graph=2, train_method=3, score_experiment=1
    )


def test_the_features_that_labels_choose_from_are_computed_once_where_they_are_not_there(project):
    project.configure(features=RFE | {"fisher_z": True})
    assert project.planned() == Counter(
        ingest_columns=1, compute_connectivity=1, fit_connectivity=2, build_graph=2, train_method=3, score_experiment=1
    )


@pytest.mark.parametrize(
    ("features", "read"),
    [
        ({"harmonise": "combat"}, {"features", "splits", "cohort"}),
        ({"harmonise": "combat", "connectivity": "tangent"}, {"covariances", "splits", "cohort"}),
        ({"harmonise": "combat", "connectivity": "tangent", "reference": "all"}, {"features", "splits", "cohort"}),
        (RFE, {"features", "splits", "cohort"}),
        ({"connectivity": "tangent"}, {"covariances", "splits"}),
        (RFE | {"connectivity": "tangent"}, {"covariances", "splits", "cohort"}),
    ],
    ids=in_order,
)
def test_fitted_features_read_people_only_to_choose_or_harmonise_and_covariances_only_to_fit(tmp_path, features, read):
    done = new_project(tmp_path, features=features).snakemake("-n", "--quiet=host", "tables")
    updated = re.findall(r"Fitting .*\nReason: .*; Input files updated by another job: (.*)", done.stdout + done.stderr)
    assert len(updated) == 2
    for files in updated:
        assert {file.split("/")[2] for file in files.split(", ")} == read


def test_tangent_features_put_everything_below_on_the_fold_axis(project):
    project.configure(features={"connectivity": "tangent"})
    assert project.planned() == Counter(
        compute_covariances=3, fit_connectivity=2, build_graph=2, train_method=3, score_experiment=1
    )


def test_tangent_features_of_everybody_are_computed_once(project):
    project.configure(features={"connectivity": "tangent", "reference": "all"})
    assert project.planned() == Counter(
        compute_covariances=3, compute_tangent=1, build_graph=1, train_method=3, score_experiment=1
    )


def tangent(**settings):
    """The features of all variants but the graph's, which takes seconds more."""
    experiments = {"methods": {"variants": ["ridge-central", "ridge-local"], "reference": "ridge-central"}}
    return {"features": {"connectivity": "tangent", "shrinkage": 0.5, **settings}, "experiments": experiments}


LAST_STEPS = {
    "all": {"compute_tangent": 1},
    "training": {"fit_connectivity": 2},
    "institution": {"fit_connectivity": 2},
}
TRAINS = {"train_method": 2, "score_experiment": 1}


@pytest.mark.full("A whole run of another feature.")
def test_tangent_features_rerun_the_shards_and_the_last_step_that_a_change_touches(project):
    """A new subject costs its shard, another shrinkage all shards, another reference none."""
    project.configure(**tangent(reference="all"))
    project.snakemake("--cores", "2", "tables")
    assert project.planned() == Counter()
    for reference, last in LAST_STEPS.items():
        expected = Counter() if reference == "all" else Counter(last | TRAINS)
        project.configure(**tangent(reference=reference))
        assert project.planned() == expected
        project.configure(**tangent(reference=reference, shrinkage=0.25))
        assert project.planned() == Counter({"compute_covariances": 3} | last | TRAINS)
    project.configure(**tangent(reference="all", harmonise="combat"))
    assert project.planned() == Counter({"ingest_columns": 1, "fit_connectivity": 2} | TRAINS)
    project.configure(**tangent(reference="all"), threads=2)
    assert project.planned() == Counter(TRAINS)
    project.configure(**tangent(reference="all"))
    project.add_subject("sub-900", "alpha", "23", "male", "patient")
    new = INGESTED | {"read_series": 1} | MEASURED | COHORT_DECIDED | {"ingest_columns": 3}
    assert project.planned() == Counter({"compute_covariances": 1} | LAST_STEPS["all"] | TRAINS | new)


@pytest.mark.full("A whole run of another feature.")
def test_a_reference_of_everybody_is_in_the_costs_of_every_method(project):
    """Also where a fold starts from these features."""
    settings = tangent(reference="all")
    settings["experiments"]["methods"]["variants"] += ["even", "few"]
    local = {"method": "ridge", "training": "local"}
    even, few = ({**local, "features": further} for further in ({"harmonise": "combat"}, RFE))
    project.configure(**settings, variants={"even": even, "few": few})
    project.snakemake("--cores", "2", "tables")
    costs = sorted(project.folder.glob("results/tiny/methods/*/*/repeat-0/cost.json"))
    found = {path.parts[-3]: crossings_of_features(path) for path in costs}
    matrices = ("0 1", 2 * 12 * 12 * 8)
    expected = {"log-covariance-sum": matrices, "summed-subjects": ("0 1", 8), "tangent-reference": matrices}
    ranks = {"feature-rank": ("0 1", 2 * 78 * 4), "selected-features": ("0 1", 2 * 9 * 4)}
    alike = dict.fromkeys(("even", "ridge-central", "ridge-local"), expected)
    assert {name: found[name] for name in (*alike, "few")} == {**alike, "few": expected | ranks}


def crossings_of_features(path):
    rows = json.loads(path.read_text())["crossings"]
    return {row["name"]: (row["institutions"], row["bytes"]) for row in rows if row["stage"] == "features"}


def test_harmonised_features_put_everything_below_on_the_fold_axis(project):
    project.configure(features={"harmonise": "combat"})
    assert project.planned() == Counter(
        ingest_columns=1, fit_connectivity=2, build_graph=2, train_method=3, score_experiment=1
    )


@pytest.mark.full("A whole run of another feature.")
def test_a_variant_may_be_harmonised_beside_others_that_are_not(project):
    even = {"ridge-central-combat": {"method": "ridge", "features": {"harmonise": "combat"}}}
    named = ["ridge-central", "fedmlp", "quick", "ridge-central-combat"]
    experiments = {"methods": CONFIG["experiments"]["methods"] | {"variants": named}}
    project.configure(variants=CONFIG["variants"] | even, experiments=experiments)
    assert project.planned() == Counter(ingest_columns=1, fit_connectivity=2, train_method=1, score_experiment=1)
    project.snakemake("--cores", "2", "tables")
    assert project.planned() == Counter()
