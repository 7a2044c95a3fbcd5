"""What a report is given to read: every experiment, figure and file of a page; its clusters and patterns."""

import pytest
import yaml

from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import list_cohort
from brainfed.configuration import (
    clustered_variants,
    cuts,
    drawn_graphs,
    experiments_with,
    explained_variants,
    figure_outline,
    groups_drawn_as,
    load_plan,
    local_counterparts,
    outline_files,
    report_files,
    report_outline,
    scope_inputs,
    truth_file,
)
from brainfed.configuration._outline import experiment_outline
from brainfed.configuration.layout import CohortInputs, Layout, result_files
from brainfed.reporting import read_outline

CONFIG = """
project: study
cohorts:
  ours: {source: simulate, simulate: {subjects: 12}}
split: {count: 2, folds: 2, repeats: 2}
variants:
  own: {method: fedgcn, graph: {scope: local}}
experiments:
  methods: {variants: [ridge-central, fedgcn, centralgcn, own, fedni], figure: fidelity}
  plain: {variants: [ridge-central, fedmlp], default: false}
  sizes: {split: {count: [2, 3]}, variants: [ridge-central, fedmlp], figure: clients, default: false}
"""


def laid_out(content=None):
    plan = load_plan(content or yaml.safe_load(CONFIG))
    cohorts = {
        name: CohortInputs(name, settings, list_cohort(name, settings))
        for name, settings in plan.project.cohorts.items()
    }
    return Layout(plan, {name: inputs.listing for name, inputs in cohorts.items()}), cohorts


def test_a_page_holds_its_experiments_as_the_report_reads_them():
    outline = report_outline(*laid_out(), "study")
    (cohort,) = read_outline(outline).cohorts
    (experiment,) = cohort.experiments
    assert experiment.name == "methods"
    assert [variant.name for variant in experiment.variants] == [
        "ridge-central",
        "fedgcn",
        "centralgcn",
        "own",
        "fedni",
    ]
    fedni = experiment.variant("fedni")
    assert [len(paths) for paths in (fedni.fused, fedni.fidelity, fedni.feature_files)] == [2, 2, 1]
    assert {key: len(paths) for key, paths in fedni.inpainting.items()} == {"histories": 2, "costs": 2, "timings": 2}
    assert {key: len(paths) for key, paths in fedni.preparation.items()} == {
        "features": 0, "connectomes": 0, "graph": 2, "fusing": 2
    }  # fmt: skip
    assert experiment.variant("ridge-central").fused == ()


def test_all_files_of_a_page_are_its_inputs_each_once():
    files = report_files(report_outline(*laid_out(), "study"))
    assert len(files) == len(set(files)) and "results/ours/figures/methods/fidelity.svg" in files
    assert "results/ours/figures/methods/scopes.svg" in files
    assert "results/ours/simulated/atlas.nii.gz" in files
    assert outline_files({"a": ["results/x", "no path"], "b": ({"c": "results/y"},)}) == ["results/x", "results/y"]


def test_a_site_of_a_study_hands_its_sites_and_is_advised_a_local_counterpart_alone():
    study = {"sites": ["oslo", "berlin"], "site": "oslo", "address": "hub.example.org:9092"}
    content = {
        "project": "study",
        "cohorts": {"rest": {"source": "simulate", "simulate": {"subjects": 12}}},
        "split": {"institutions": "sites", "folds": 2, "repeats": 1},
        "experiments": {"methods": {"variants": ["ridge-local", "fedtangent"], "reference": "ridge-local"}},
        "study": study,
    }
    outline = report_outline(*laid_out(content), "study")
    assert outline["study"] == {"sites": ["berlin", "oslo"], "site": "oslo", "sets": 13}
    counterparts = read_outline(outline).cohorts[0].experiments[0].variant("fedtangent").counterparts
    assert {side: counterpart.missing for side, counterpart in counterparts.items()} == {
        "alone": "the coordinator adds tangent-local to the study before it begins"
    }
    assert "study" not in report_outline(*laid_out(), "study")


def test_a_page_without_graphs_draws_none():
    (cohort,) = report_outline(*laid_out(), "study-plain")["cohorts"]
    assert cohort["site_trace"] == ""
    assert not {"graph", "homophily", "degrees", "scopes"} & set(cohort["figures"])


def test_graphs_inside_institutions_are_drawn_first_one_a_repeat():
    layout, _ = laid_out()
    scopes = [layout.plan.stage("graph", name).settings.scope for name, _, _ in drawn_graphs(layout, "ours")]
    assert scopes == ["global_cut", "global_cut", "local", "local", "global", "global"]


def test_scopes_are_those_of_the_graph_that_is_cut_and_of_the_institutions_own():
    layout, _ = laid_out()
    assert experiments_with(layout.plan, cuts) == ["methods", "methods-quick"]
    files = scope_inputs(layout, layout.plan.experiments["methods"], "ours")
    assert "/graphs/global-cut-k10-" in files["cut"]
    assert ["/graphs/local-k10-" in path for path in files["own"]] == [True]


def test_a_sweep_of_splits_is_drawn_as_one_figure_of_its_members():
    layout, _ = laid_out()
    assert groups_drawn_as(layout.plan, "clients") == ["sizes", "sizes-quick"]
    outline = figure_outline(layout, "ours", "sizes")
    assert [member["title"] for member in outline["members"]] == ["sizes (count = 2)", "sizes (count = 3)"]


CLUSTERED = """
project: study
cohorts:
  ours: {source: simulate, simulate: {subjects: 12}}
split: {count: 2, folds: 2, repeats: 2}
variants:
  early: {method: gcfl, first_cut: 5}
experiments:
  clustered: {variants: [selftrain, fedavg-gin, early, ridge-central, gcfl-plus]}
  plain: {variants: [selftrain, fedavg-gin], reference: selftrain}
"""


@pytest.fixture(scope="module")
def clustered():
    """The layout of a plan with a clustered experiment."""
    return laid_out(yaml.safe_load(CLUSTERED))[0]


@pytest.fixture(scope="module")
def plan(clustered):
    return clustered.plan


def test_experiments_with_a_clustered_variant_are_scored_twice(plan):
    assert [name for name in experiments_with(plan, clustered_variants) if not name.endswith("-quick")] == ["clustered"]
    assert [variant.name for variant in clustered_variants(plan.experiments["clustered"])] == ["early", "gcfl-plus"]


def test_histories_are_in_order_of_variants_and_inside_them_of_repeats(plan):
    experiment = plan.experiments["clustered"]
    every = [
        path.split("/")[4:6]
        for path in result_files("ours", experiment, "history.parquet", clustered_variants(experiment))
    ]
    assert every == [["early", "repeat-0"], ["early", "repeat-1"], ["gcfl-plus", "repeat-0"], ["gcfl-plus", "repeat-1"]]
    first = result_files("ours", experiment, "history.parquet", clustered_variants(experiment), repeats=1)
    assert [path.split("/")[4:] for path in first] == [
        ["early", "repeat-0", "history.parquet"], ["gcfl-plus", "repeat-0", "history.parquet"]
    ]  # fmt: skip


def test_federated_variants_are_compared_with_self_training(plan):
    assert local_counterparts(plan.experiments["clustered"]) == dict.fromkeys(
        ["fedavg-gin", "early", "gcfl-plus"], "selftrain"
    )


def test_a_report_reads_the_table_and_the_figure_of_a_clustered_experiment_alone(clustered):
    experiments = clustered.plan.experiments
    outlines = {name: experiment_outline(clustered, "ours", experiments[name]) for name in ("clustered", "plain")}
    assert outlines["clustered"]["tables"]["clients"] == "results/ours/tables/clustered-clients.tsv"
    assert outlines["clustered"]["figures"]["clusters"] == "results/ours/figures/clustered/clusters.svg"
    shown = {variant["name"]: variant["clusters"] for variant in outlines["clustered"]["variants"]}
    assert [name for name, clusters in shown.items() if clusters] == ["early", "gcfl-plus"]
    assert "clients" not in outlines["plain"]["tables"]
    assert "clusters" not in outlines["plain"]["figures"]


VARIANTS = {f"federated-{number}": {"method": "ridge-federated", "rounds": number + 5} for number in range(4)}


def explained_plan(variants, **settings):
    return load_plan(
        {
            "project": "study",
            "cohorts": {"ours": {"source": "simulate", "simulate": {"subjects": 12}}},
            "split": {"count": 2, "folds": 2, "repeats": 2},
            "variants": VARIANTS,
            "experiments": {"methods": {"variants": variants, **settings}},
        }
    )


def explained(variants, **settings):
    return [variant.name for variant in explained_variants(explained_plan(variants, **settings).experiments["methods"])]


@pytest.mark.parametrize(
    ("variants", "reference", "expected"),
    [
        (["majority", "svm-central", "ridge-central"], "ridge-central", ["ridge-central"]),
        (["federated-0", "fedgcn", "ridge-central"], "ridge-central", ["ridge-central", "federated-0"]),
        (["federated-0", "ridge-central"], "federated-0", ["federated-0"]),
        (["ridge-central", *VARIANTS], "ridge-central", ["ridge-central", "federated-0", "federated-1"]),
        (["fedgcn", "ridge-local", "svm-central", "ridge-central"], "fedgcn", ["svm-central"]),
        (["majority", "ridge-local", "svm-local"], "majority", ["ridge-local"]),
        (["majority", "fedgcn"], "majority", []),
    ],
)
def test_the_reference_and_the_federated_linear_models_are_explained(variants, reference, expected):
    assert explained(variants, reference=reference) == expected


def test_shuffled_diagnoses_have_no_pattern_to_show():
    assert explained(["ridge-central"], reference="ridge-central", labels="permuted") == []
    plan = explained_plan(["ridge-central"], reference="ridge-central", labels="permuted")
    assert experiments_with(plan, explained_variants) == []


def test_files_are_in_the_order_of_variants_and_repeats():
    experiment = explained_plan(["federated-0", "ridge-central"]).experiments["methods"]
    parts = [
        path.split("/")[4:6]
        for path in result_files("ours", experiment, "patterns.safetensors", explained_variants(experiment))
    ]
    names = [(variant, f"repeat-{repeat}") for variant in ("ridge-central", "federated-0") for repeat in (0, 1)]
    assert [tuple(part) for part in parts] == names


def test_only_a_simulation_of_patients_and_controls_has_a_truth():
    assert truth_file("ours", CohortSettings(source="simulate")) == "results/ours/simulated/truth.json"
    assert truth_file("ours", CohortSettings(source="timeseries", series="a", phenotype="b")) == []
