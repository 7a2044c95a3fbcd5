"""What a report is given to read: every experiment, figure and file of a page."""

import yaml

from brainfed.cohort.sources.listing import list_cohort
from brainfed.configuration.layout.cohort_inputs import CohortInputs
from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.loading import load_plan
from brainfed.configuration.outline.experiment import figure_outline, groups_drawn_as
from brainfed.configuration.outline.graphs import drawn_graphs, experiments_that_cut, scope_inputs
from brainfed.configuration.outline.report import outline_files, report_files, report_outline
from brainfed.reporting.outline import read_outline

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


def laid_out():
    plan = load_plan(yaml.safe_load(CONFIG))
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
    assert len(files) == len(set(files))
    assert "results/ours/figures/methods/fidelity.svg" in files
    assert "results/ours/figures/methods/scopes.svg" in files
    assert "results/ours/simulated/atlas.nii.gz" in files
    assert outline_files({"a": ["results/x", "no path"], "b": ({"c": "results/y"},)}) == ["results/x", "results/y"]


def test_a_site_of_a_study_hands_its_sites_and_is_advised_a_local_twin_alone():
    study = {"sites": ["oslo", "berlin"], "site": "oslo", "address": "hub.example.org:9092"}
    content = {
        "project": "study",
        "cohorts": {"rest": {"source": "simulate", "simulate": {"subjects": 12}}},
        "split": {"institutions": "sites", "folds": 2, "repeats": 1},
        "experiments": {"methods": {"variants": ["ridge-local", "fedtangent"], "reference": "ridge-local"}},
        "study": study,
    }
    plan = load_plan(content)
    cohorts = {
        name: CohortInputs(name, settings, list_cohort(name, settings))
        for name, settings in plan.project.cohorts.items()
    }
    layout = Layout(plan, {name: inputs.listing for name, inputs in cohorts.items()})
    outline = report_outline(layout, cohorts, "study")
    assert outline["study"] == {"sites": ["berlin", "oslo"], "site": "oslo", "sets": 13}
    twins = read_outline(outline).cohorts[0].experiments[0].variant("fedtangent").twins
    assert {side: twin.missing for side, twin in twins.items()} == {
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
    assert experiments_that_cut(layout.plan) == ["methods", "methods-quick"]
    files = scope_inputs(layout, layout.plan.experiments["methods"], "ours")
    assert "/graphs/global-cut-k10-" in files["cut"]
    assert ["/graphs/local-k10-" in path for path in files["own"]] == [True]


def test_a_sweep_of_splits_is_drawn_as_one_figure_of_its_members():
    layout, _ = laid_out()
    assert groups_drawn_as(layout.plan, "clients") == ["sizes", "sizes-quick"]
    outline = figure_outline(layout, "ours", "sizes")
    assert [member["title"] for member in outline["members"]] == ["sizes (count = 2)", "sizes (count = 3)"]
