"""Experiments as targets: named alone, with one repeat, all of them, and never part of a run that names nothing."""

from collections import Counter

import pytest

from workflow.project import CONFIG, SIMULATE

pytestmark = pytest.mark.workflow

SWEEP = {"sweep": {"method": "fedgcn", "rounds": 1, "local_epochs": 1, "graph": {"k": [3, 4, 5]}}}
CURVE = {
    "default": False,
    "figure": "line",
    "axes": ["graph.k"],
    "variants": ["sweep"],
    "reference": "sweep-k3",
    "split": {"repeats": 3},
}
CLIENTS = {
    "default": False,
    "figure": "clients",
    "axes": ["split.count"],
    "variants": ["ridge-central", "quick"],
    "split": {"count": [2, 3], "share": 0.3},
}

DOSES = {
    f"dose-{dose}": {
        "source": "simulate",
        "shards": 1,
        "simulate": SIMULATE | {"groups": 4, "group_agreement": dose / 100},
    }
    for dose in (0, 100)
}
RESPONSE = {
    "default": False,
    "cohorts": [*DOSES],
    "figure": "dose",
    "axes": ["simulate.group_agreement"],
    "variants": ["fedgcn", "centralgcn", "fedni"],
    "reference": "fedgcn",
}


@pytest.fixture
def project(finished, tmp_path):
    """The finished tiny project with a sweep of k and one of the number of institutions."""
    project = finished.copy(tmp_path / "project")
    project.configure(
        variants=CONFIG["variants"] | SWEEP,
        experiments=CONFIG["experiments"] | {"curve": CURVE, "clients": CLIENTS},
    )
    return project


def work(planned):
    """Planned rules without those that draw, measure or list for the report."""
    drawn = ("draw_", "audit_", "relate_", "list_issues", "write_report")
    return Counter({rule: count for rule, count in planned.items() if not rule.startswith(drawn)})


def test_a_run_that_names_nothing_leaves_them_out(project):
    assert project.planned() == Counter()
    assert "curve" not in project.snakemake("-n", "--quiet=host", "all").stdout


def test_a_sweep_of_k_builds_its_graphs_and_computes_no_features(project):
    planned = project.planned("curve")
    assert work(planned) == Counter(
        ingest_columns=1, split_subjects=2, build_graph=9, train_method=9, score_experiment=1
    )
    assert (planned["draw_line"], planned["draw_experiment"], planned["write_report"]) == (1, 1, 1)
    assert planned["draw_graphs"] == 1


def test_a_page_of_its_own_draws_its_graphs_where_a_plain_run_has_none(project):
    own = {"default": False, "variants": ["fedgcn", "fedgcn-own"], "reference": "fedgcn", "split": {"repeats": 3}}
    project.configure(
        variants={"fedgcn-own": {"method": "fedgcn", "graph": {"scope": "local"}}},
        experiments={"methods": {"variants": ["ridge-central"], "reference": "ridge-central"}, "own": own},
    )
    assert project.planned()["draw_graphs"] == 0
    planned = project.planned("own-quick")
    assert (planned["draw_graphs"], planned["draw_scopes"]) == (1, 1)


def test_the_quick_copy_has_one_repeat(project):
    assert work(project.planned("curve-quick")) == Counter(
        ingest_columns=1, build_graph=3, train_method=3, score_experiment=1
    )


def test_all_of_them_at_once_share_their_work_and_leave_out_the_jobs_of_a_plain_run(project):
    planned = project.planned("paper-quick")
    assert work(planned) == Counter(
        ingest_columns=1, split_subjects=2, build_graph=5, train_method=7, score_experiment=3
    )
    assert (planned["draw_line"], planned["draw_clients"]) == (1, 1)


@pytest.mark.full("A whole run of a sweep.")
def test_a_sweep_of_splits_ends_in_one_figure_and_a_report_of_its_own(project):
    project.snakemake("clients-quick", "--cores", "2")
    results = project.folder / "results"
    assert (results / "tiny" / "figures" / "clients-quick" / "clients.svg").is_file()
    assert {path.name for path in (results / "tiny" / "tables").glob("clients-quick-count?.tsv")} == {
        "clients-quick-count2.tsv",
        "clients-quick-count3.tsv",
    }
    assert [path.name for path in (results / "reports").glob("*.html")] == ["tiny-clients-quick.html"]
    page = (results / "reports" / "tiny-clients-quick.html").read_text()
    assert "count = 2" in page
    assert "count = 3" in page
    assert project.planned("clients-quick") == Counter()


def test_a_figure_over_several_cohorts_is_drawn_once_and_waits_for_all_of_them(project):
    methods = CONFIG["experiments"]["methods"] | {"cohorts": ["tiny"]}
    project.configure(cohorts=CONFIG["cohorts"] | DOSES, experiments={"methods": methods, "response": RESPONSE})
    planned = project.planned("response")
    assert (planned["draw_dose"], planned["draw_experiment"], planned["write_report"]) == (1, 2, 1)
    figure = "results/dose-0/figures/response/dose.svg"
    assert project.planned(figure)["score_experiment"] == 2
    assert project.planned(figure)["train_method"] == 6


def test_an_experiment_may_not_bear_a_rules_name(project):
    project.configure(experiments=CONFIG["experiments"] | {"build_graph": {"default": False}})
    done = project.snakemake("-n", "tables", check=False)
    assert done.returncode != 0
    assert "experiments.build_graph" in done.stdout + done.stderr


@pytest.mark.full("A whole run with a report.")
def test_one_method_alone_ends_in_a_report_too(project):
    project.configure(experiments={"methods": {"variants": ["ridge-central"], "reference": "ridge-central"}})
    said = project.snakemake("--cores", "2")
    assert "the report is results/reports/tiny.html" in said.stdout + said.stderr
    assert (project.folder / "results" / "reports" / "tiny.html").is_file()


def test_only_an_experiment_with_a_linear_model_shows_what_drives_it(project):
    networks = {"variants": ["fedmlp", "quick"], "reference": "fedmlp"}
    project.configure(experiments=CONFIG["experiments"] | {"networks": networks})
    planned = project.snakemake("-n", "--quiet=host", "all").stdout
    assert "figures/methods/patterns.svg" in planned
    assert "figures/networks/patterns.svg" not in planned
    assert "figures/networks/forest.svg" in planned
