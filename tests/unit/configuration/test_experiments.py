"""Experiments as targets: sweeps of splits, the copy with one repeat, and the experiments of the paper."""

import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import chdir
from pathlib import Path
from random import Random

import pytest
import yaml

from brainfed.configuration import TABLE_ENDINGS, load_plan, reports_of, targets_of
from brainfed.configuration import _project as project
from brainfed.configuration._loading import config_of, overlay, swept_split
from brainfed.configuration._project import FILES, RESERVED_EXPERIMENTS
from brainfed.configuration.layout import table_pattern
from brainfed.runtime import UserError

REPOSITORY = Path(__file__).resolve().parents[3]

CONFIG = """
project: study
cohorts:
  ours: {source: simulate}
split: {count: 2, folds: 3, repeats: 4}
experiments:
  methods: {variants: [ridge-central, fedgcn]}
  clients: {variants: [ridge-central, fedgcn], default: false, split: {count: [2, 4], share: 0.1}}
"""


def plan(**changes):
    return load_plan(overlay(yaml.safe_load(CONFIG), changes))


def test_a_list_in_a_split_makes_a_group_of_experiments():
    planned = plan()
    members = planned.group("clients")
    assert [(found.name, found.split.count, found.split.share) for found in members] == [
        ("clients-count2", 2, 0.1),
        ("clients-count4", 4, 0.1),
    ]
    assert members[0].regime != members[1].regime
    assert planned.group("methods") == (planned.experiments["methods"],)


@pytest.mark.parametrize("key", ["split", "experiments"])
def test_a_choice_on_the_next_fold_needs_a_third_fold_to_learn_from(key):
    chosen = {"chosen": {"method": "fedgcn", "choose": "inner"}}
    experiments = {"methods": {"variants": ["ridge-central", "chosen"]}}
    assert plan(variants=chosen, experiments=experiments)
    if key == "split":
        changed = {"split": {"folds": 2}}
    else:
        changed = {"experiments": {"methods": {"variants": ["ridge-central", "chosen"], "split": {"folds": 2}}}}
    with pytest.raises(UserError, match=r"experiments\.methods: variant 'chosen' .* needs 3 folds or more, .* found 2"):
        plan(**{"variants": chosen, "experiments": experiments, **changed})
    single = {"methods": {"variants": ["ridge-central", "chosen"], "split": {"validation": "holdout"}}}
    with pytest.raises(
        UserError, match=r"needs 3 folds .* found 1; set split\.validation: folds, or set `choose: none`"
    ):
        plan(variants=chosen, experiments=single)
    alone = {"methods": {"variants": ["ridge-central", "chosen"], "split": {"validation": "leave_one_site_out"}}}
    assert plan(variants=chosen, experiments=alone)


def test_every_experiment_has_a_copy_with_one_repeat_that_shares_its_results():
    planned = plan()
    whole, quick = planned.experiments["clients-count4"], planned.experiments["clients-quick-count4"]
    assert ((whole.repeats, quick.repeats), quick.regime) == ((4, 1), whole.regime)
    assert quick.variants == whole.variants and quick.group == "clients-quick" and not quick.default


def test_targets_are_the_experiments_and_the_set_that_no_plain_run_has():
    targets = targets_of(plan())
    assert targets == {
        "methods": ("methods",),
        "clients": ("clients-count2", "clients-count4"),
        "methods-quick": ("methods-quick",),
        "clients-quick": ("clients-quick-count2", "clients-quick-count4"),
        "paper": ("clients-count2", "clients-count4"),
        "paper-quick": ("clients-quick-count2", "clients-quick-count4"),
    }


def test_where_everything_is_part_of_a_plain_run_there_is_no_target_for_the_rest():
    targets = targets_of(plan(experiments={"clients": {"default": True}}))
    assert "methods" in targets and not {"paper", "paper-quick"} & set(targets)


def test_the_projects_own_report_has_the_default_experiments_and_each_target_one_of_its_own():
    reports = reports_of(plan())
    assert reports["study"] == ("methods",)
    assert reports["study-clients"] == ("clients-count2", "clients-count4")
    assert set(reports) == {"study"} | {f"study-{target}" for target in targets_of(plan())}


@pytest.mark.parametrize(
    ("experiments", "words"),
    [
        ({"clients": {"split": {"count": []}}}, r"experiments\.clients\.split\.count: .* empty list"),
        ({"clients": {"split": {"count": [2, 2]}}}, r"experiments\.clients: .*'clients-count2' twice"),
        ({"clients-count4": {"variants": ["ridge-central"]}}, r"another experiment 'clients-count4'"),
        ({"clients-quick-count4": {"variants": ["ridge-central"]}}, r"another experiment 'clients-quick-count4'"),
        ({"clients": {"split": {"count": [2, 20]}}}, r"experiments\.clients\.split: share: 20 institutions of 0\.1"),
        ({"clients": {"split": {"institutions": "sites"}}}, r"experiments\.clients\.split: share"),
        ({"fast-quick": {}}, r"experiments\.fast-quick: a name may not end in -quick"),
        ({"small-audit": {}}, r"experiments\.small-audit: a name may not end in -audit"),
        ({"graphs.json": {}}, r"experiments\.graphs\.json: a name may not end in \.json"),
        ({"site": {}}, r"experiments\.site: `snakemake site` is another target"),
        ({"train_method": {}}, r"experiments\.train_method: `snakemake train_method` is another target"),
        ({"paper": {}}, r"experiments\.paper: `snakemake paper` is another target"),
        ({"tables": {}}, r"experiments\.tables: `snakemake tables` is another target"),
        ({"methods": {"figure": "pie"}}, r"experiments\.methods\.figure: expected one of none, bars"),
    ],
    ids=str,
)
def test_an_invalid_experiment_is_refused(experiments, words):
    with pytest.raises(UserError, match=words):
        plan(experiments=experiments)


RULE_FILES = [*(REPOSITORY / "workflow" / "rules").glob("*.smk"), REPOSITORY / "workflow" / "Snakefile"]


def test_no_experiment_may_have_the_name_of_a_rule():
    """Snakemake itself lists the rules, those of loops and the demo's experiments among them."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--list-rules", "--quiet", "all"],
        cwd=REPOSITORY, env=os.environ | {"SLURM_CONF": os.devnull}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    listed = set(done.stdout.split())
    rules = {name for name in listed if "_" in name}
    assert len(rules) > 60
    assert {"train_method", "write_report", "draw_bars", "simulate_scans_demo_shard-00"} < rules
    assert set(RESERVED_EXPERIMENTS) < listed
    for name in rules:
        with pytest.raises(UserError, match=rf"experiments\.{name}: `snakemake {name}` is another target"):
            plan(experiments={name: {}}, cohorts={"demo": {"source": "simulate", "shards": 4}})
    made = {name.rpartition("_")[0] for name in rules}
    free = {f"{start}_{end}" for start in made for end in ("mine", "shard-00", "bars2")} - rules
    assert free <= set(plan(experiments={key: {} for key in sorted(free)}).experiments)


def test_rules_that_are_not_found_do_not_let_every_name_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "RULE_FILES", tmp_path / "rules")
    project.rule_names.cache_clear()
    with pytest.raises(
        UserError, match=r"rules: expected the workflow's rules beside its package, found none; install"
    ):
        plan()
    project.rule_names.cache_clear()


def test_rules_name_tables_of_experiments_by_the_list_of_endings():
    literal = re.compile(r"tables/\{+experiment\}+[^\s\"]*")
    found = {name for path in RULE_FILES for name in literal.findall(path.read_text())}
    assert found == {"tables/{experiment}-subjects.json"}
    with pytest.raises(ValueError, match="TABLE_ENDINGS"):
        table_pattern("-other")


def test_two_experiments_write_no_common_file_or_one_of_their_names_is_refused():
    ends = ["", *TABLE_ENDINGS, *FILES, "-quick", "-subjects", "-count2", ".", "-x"]
    names = [f"{base}{end}{further}" for base in ("small", "site-trace", "b.c") for end in ends for further in ends]
    random = Random(0)
    refused = 0
    for _ in range(int(os.environ.get("BRAINFED_CASES", "40"))):
        pair = random.sample(names, 2)
        try:
            made = plan(experiments={name: {"variants": ["ridge-central"]} for name in pair})
        except UserError as error:
            assert "rename it" in str(error)
            refused += 1
            continue
        written = Counter(
            table_pattern(ending).format(cohort="c", experiment=name)
            for name in made.experiments
            for ending in ("", *TABLE_ENDINGS)
        )
        assert set(written.values()) == {1}, pair
        assert not {"graphs.json", "site-trace.tsv"} & set(made.experiments)
    assert refused


SWEEP = {"wide": {"method": "fedgcn", "graph": {"k": [3, 5]}}}


@pytest.mark.parametrize(
    ("experiment", "words"),
    [
        ({"figure": "line"}, r"experiments\.methods\.axes: .*'line' is drawn against 1 swept setting\(s\), found 0"),
        ({"figure": "surface", "axes": ["graph.k"]}, r"axes: .*'surface' is drawn against 2 .* found 1"),
        (
            {"figure": "line", "axes": ["graph.kk"]},
            r"axes: no variant has the setting 'graph\.kk'; did you mean 'graph\.k'",
        ),
        ({"figure": "line", "axes": ["inpainting.alpha"]}, r"axes: no variant has the setting 'inpainting\.alpha'"),
        ({"figure": "line", "axes": ["rounds"]}, r"axes: expected variants of one method that differ in 'rounds'"),
        ({"figure": "rounds", "axes": ["local_epochs"]}, r"axes: expected variants .* differ in 'local_epochs'"),
        ({"figure": "surface", "axes": ["graph.k", "rounds"]}, r"axes: expected variants .* differ in 'rounds'"),
        ({"figure": "surface", "axes": ["graph.k", "graph.k"]}, r"axes: .*'surface' is drawn against 2 .* found 1"),
        ({"figure": "rounds", "axes": ["graph.embedding"]}, r"axes: 'graph\.embedding' has the value 'pca'"),
        ({"figure": "line", "axes": ["split.count"]}, r"axes: 'split\.count' is of the figure `clients`, found 'line'"),
        ({"axes": ["split.count"]}, r"axes: 'split\.count' is of the figure `clients`, found 'none'"),
        ({"figure": "clients"}, r"methods\.figure: `clients` compares numbers .* found a sweep of nothing"),
        ({"figure": "clients", "split": {"count": [2]}}, r"found a sweep of count \[2\]; give two values or more"),
        ({"figure": "clients", "split": {"share": [0.1, 0.2]}}, r"found a sweep of share \[0\.1, 0\.2\]; give"),
        ({"figure": "clients", "split": {"count": [2, 3], "folds": [2, 3]}}, r"found a sweep of count .*, folds"),
        (
            {"figure": "clients", "split": {"count": [2, 3], "institutions": "sites"}},
            r"split\.count: it counts with `institutions: random`",
        ),
        (
            {"figure": "clients", "split": {"count": [2, 3]}, "axes": ["split.share"]},
            r"axes: `clients` is drawn against split\.count, found split\.share",
        ),
        (
            {"figure": "bars", "split": {"count": [2, 3]}},
            r"figure: expected clients or none for a sweep of splits \(count\), found bars",
        ),
        ({"figure": "distribution"}, r"figure: `distribution` is of generated nodes, which no variant has"),
        ({"figure": "fidelity"}, r"figure: `fidelity` needs a variant of FedNI with `graph: {scope: global_cut}`"),
    ],
    ids=str,
)
def test_a_figure_that_could_not_be_drawn_is_refused_before_any_training(experiment, words):
    with pytest.raises(UserError, match=words):
        plan(variants=SWEEP, experiments={"methods": {"variants": ["ridge-central", "wide"]} | experiment})


DOSES = {"none": 0.0, "half": 0.5, "all": 1.0}
BETWEEN = {"variants": ["fedgcn", "centralgcn", "fedni"], "figure": "dose", "axes": ["simulate.group_agreement"]}


def doses(experiment, **changed):
    """A plan of three simulated cohorts that differ in the dose, one of them changed."""
    cohorts = {
        name: {"source": "simulate", "simulate": {"groups": 8, "group_agreement": dose}} for name, dose in DOSES.items()
    }
    cohorts = overlay(cohorts, changed)
    experiments = {"methods": {"cohorts": list(cohorts), "reference": "fedgcn"} | BETWEEN | experiment}
    local = {f"{name}-own-graph": {"method": name, "graph": {"scope": "local"}} for name in ("fedgcn", "fedni")}
    return plan(cohorts=cohorts, experiments=experiments, variants=local)


def test_cohorts_that_differ_in_the_dose_alone_are_one_figure():
    assert doses({}).experiments["methods"].cohorts == ("none", "half", "all")


@pytest.mark.parametrize(
    ("experiment", "changed", "words"),
    [
        ({"axes": []}, {}, r"axes: expected one number of the simulation for the figure `dose`, found none"),
        (
            {"axes": ["simulate.group_agrement"]},
            {},
            r"found simulate\.group_agrement; did you mean 'simulate\.group_agreement'",
        ),
        ({"axes": ["simulate.sites"]}, {}, r"axes: expected one number of the simulation .* found simulate\.sites"),
        ({"axes": ["graph.k"]}, {}, r"axes: expected one number of the simulation .* found graph\.k"),
        ({"cohorts": ["all"]}, {}, r"cohorts: `dose` needs two cohorts or more, .* found all 1\.0"),
        (
            {},
            {"half": {"simulate": {"group_agreement": 1.0}}},
            r"each with its own value of simulate\.group_agreement, found none 0\.0, half 1\.0, all 1\.0",
        ),
        (
            {},
            {"all": {"simulate": {"effect": 0.3}}},
            r"differ in group_agreement alone, found 'none' and 'all' with different simulate\.effect",
        ),
        (
            {},
            {"half": {"source": "timeseries", "phenotype": "people.tsv", "series": "{file}.csv"}},
            r"figure: `dose` compares simulated cohorts, found 'half' with source 'timeseries'; leave it out",
        ),
        (
            {},
            {"all": {"target": "sex", "min_timepoints": 70}},
            r"differ in group_agreement alone, found 'none' and 'all' with different target",
        ),
        (
            {},
            {"all": {"simulate": {"groups": 0}}},
            r"simulate\.group_agreement: expected groups for it, found 1 with groups 0",
        ),
        (
            {"variants": ["fedgcn-own-graph", "centralgcn", "fedni"], "reference": "centralgcn"},
            {},
            r"`dose` measures what a cut costs, found a fedgcn with graph\.scope: local; use global_cut",
        ),
        (
            {"variants": ["fedgcn", "centralgcn", "fedni-own-graph"]},
            {},
            r"compares new nodes in one graph, found 'fedni-own-graph' with another graph than fedgcn",
        ),
        ({"variants": ["fedgcn", "fedni"]}, {}, r"one of centralgcn, found none of centralgcn; name one"),
        ({"variants": ["fedgcn", "fedgcn-skip", "centralgcn"]}, {}, r"found fedgcn, fedgcn-skip of fedgcn; name one"),
        (
            {"variants": ["fedgcn", "centralgcn"]},
            {},
            r"variants: expected a variant with new nodes for `dose`, found none",
        ),
        ({"split": {"count": [2, 3]}}, {}, r"expected clients or none for a sweep of splits \(count\), found dose"),
    ],
    ids=str,
)
def test_cohorts_that_are_no_doses_of_one_simulation_are_refused(experiment, changed, words):
    with pytest.raises(UserError, match=words):
        doses(experiment, **changed)


@pytest.mark.parametrize(
    ("figure", "axes", "swept"),
    [
        ("line", ["graph.k"], {"graph": {"k": [3, 5]}}),
        ("line", ["rounds"], {"rounds": [1, 2]}),
        ("line", ["graph.scope"], {"graph": {"scope": ["local", "global_cut"]}}),
        ("rounds", ["local_epochs"], {"local_epochs": [1, 5]}),
        ("surface", ["graph.k", "rounds"], {"rounds": [1, 2], "graph": {"k": [3, 5]}}),
    ],
    ids=str,
)
def test_a_figure_may_be_drawn_against_swept_settings_of_stages_and_methods(figure, axes, swept):
    experiment = {"variants": ["ridge-central", "wide"], "figure": figure, "axes": axes}
    planned = plan(variants={"wide": {"method": "fedgcn"} | swept}, experiments={"methods": experiment})
    assert planned.experiments["methods"].settings.axes == tuple(axes)


def test_methods_whose_defaults_differ_are_no_sweep():
    variants = {"one": {"method": "fedgcn", "rounds": 2}, "other": {"method": "fedmlp", "rounds": 3}}
    experiment = {"variants": ["ridge-central", *variants], "figure": "line", "axes": ["rounds"]}
    with pytest.raises(UserError, match="expected variants of one method that differ in 'rounds'"):
        plan(variants=variants, experiments={"methods": experiment})


@pytest.mark.parametrize("axes", [[], ["split.count"]])
def test_clients_are_drawn_against_their_number(axes):
    planned = plan(experiments={"clients": {"figure": "clients", "axes": axes}})
    assert [found.split.count for found in planned.group("clients")] == [2, 4]


@pytest.fixture(scope="module", params=["config", "abide"])
def shipped(request):
    """The plan of a shipped config."""
    with chdir(REPOSITORY):
        return load_plan(yaml.safe_load((REPOSITORY / "config" / f"{request.param}.yaml").read_text()))


def variants_of(planned, group):
    return {variant.name: variant for variant in planned.group(group)[0].variants}


def test_every_table_and_figure_of_the_paper_is_shipped(shipped):
    papers = {experiment.settings.paper for experiment in shipped.experiments.values()} - {""}
    assert papers == {"table5", "table6", *(f"fig{number}" for number in range(2, 10))}
    by_name = [name for name, found in shipped.experiments.items() if found.settings.paper and found.default]
    assert by_name == []


def test_the_default_run_has_every_method_of_table_5(shipped):
    methods = {
        variant.method.name
        for experiment in shipped.experiments.values()
        if experiment.default
        for variant in experiment.variants
    }
    assert {"localgcn", "centralgcn", "fedmlp", "fedgcn", "fedsage-plus", "fedni"} <= methods


def test_the_sweep_of_k_shares_the_features_and_has_a_graph_a_value(shipped):
    found = variants_of(shipped, "fig8")
    assert len({variant.stages["features"].name for variant in found.values()}) == 1
    assert {found[f"fedni-k-k{k}"].stages["graph"].settings.k for k in (3, 5, 10, 15, 20, 25, 30, 40)} == {
        3, 5, 10, 15, 20, 25, 30, 40,
    }  # fmt: skip
    assert len({variant.stages["fused"].name for variant in found.values() if variant.stage("fused")}) == 8


def test_the_sweep_of_epochs_shares_graph_and_generator(shipped):
    found = variants_of(shipped, "fig9").values()
    assert [(variant.settings["rounds"], variant.settings["local_epochs"]) for variant in found] == [
        (100, epochs) for epochs in (1, 5, 10, 15, 20)
    ]
    assert len({variant.stages["fused"].name for variant in found}) == 1


def test_the_surface_has_six_by_six_weights_on_one_graph_and_fedsage_beside(shipped):
    found = variants_of(shipped, "fig6")
    weights = {
        (variant.stages["inpainting"].settings.alpha, variant.stages["inpainting"].settings.beta)
        for variant in found.values()
        if variant.method.name == "fedni"
    }
    values = (0.01, 0.05, 0.1, 0.5, 1, 5)
    assert weights == {(alpha, beta) for alpha in values for beta in values}
    assert len({variant.stages["graph"].name for variant in found.values()}) == 1
    assert "fedsage-plus" in found and shipped.group("fig6")[0].repeats == 1


def test_two_to_ten_institutions_hold_a_tenth_each(shipped):
    assert [(found.split.count, found.split.share) for found in shipped.group("fig7")] == [
        (count, 0.1) for count in (2, 4, 6, 8, 10)
    ]


@pytest.mark.parametrize(
    ("name", "stage", "key", "value"),
    [
        ("fedni-no-bfs", "inpainting", "masking", "random"),
        ("fedni-no-discriminator", "inpainting", "discriminator", False),
        ("fedni-no-edge", "fusing", "edges", "binary"),
    ],
)
def test_an_ablation_differs_from_fedni_in_one_setting(shipped, name, stage, key, value):
    found = variants_of(shipped, "fig2")
    settings = {
        "inpainting": lambda variant: variant.stages["inpainting"].values,
        "fusing": lambda variant: vars(variant.stages["fused"].settings),
    }
    for kind, of in settings.items():
        changed = {key: value} if kind == stage else {}
        assert of(found[name]) == of(found["fedni"]) | changed
    assert found[name].settings == found["fedni"].settings


def test_the_strategies_of_federation_are_the_papers_four(shipped):
    found = variants_of(shipped, "fig3").values()
    assert sorted(variant.stages["inpainting"].settings.federated for variant in found) == [
        "both",
        "discriminator",
        "generator",
        "none",
    ]


def test_fidelity_is_scored_where_the_true_neighbours_are_known(shipped):
    for variant in variants_of(shipped, "fidelity").values():
        assert variant.stages["graph"].settings.scope == "global_cut"


def test_a_report_shows_the_config_of_its_own_experiments():
    planned = plan(
        variants={
            "wide": {"method": "fedgcn", "graph": {"k": [3, 5]}},
            "slow": {"method": "fedgcn", "rounds": 30},
            "unused": {"method": "fedgcn", "rounds": 40},
        },
        experiments={
            "clients": {"variants": ["ridge-central", "wide-k5"]},
            "methods": {"variants": ["ridge-central", "slow"]},
        },
    )
    shown = config_of(planned, planned.group("clients-quick"))
    assert (set(shown["experiments"]), set(shown["variants"])) == ({"clients"}, {"wide"})
    assert shown["split"] == config_of(planned, planned.group("methods"))["split"]


def test_the_experiments_of_a_group_are_distinguished_by_their_swept_values():
    planned = plan()
    assert swept_split(planned, planned.experiments["clients-count4"]) == {"count": 4}
    assert swept_split(planned, planned.experiments["clients-quick-count2"]) == {"count": 2}
    assert swept_split(planned, planned.experiments["methods"]) == {}


def test_a_reading_changes_the_same_settings_in_every_method(shipped):
    found = variants_of(shipped, "readings")
    methods = ("localgcn", "centralgcn", "fedgcn")
    ends = {name.removeprefix(f"{method}-") for name in found for method in methods if name.startswith(f"{method}-")}
    assert {"rfe", "knn-rfe", "correlation", "site", "dropout", "paper", "parisot"} <= ends
    for end in ends:
        own = [found[f"{method}-{end}"] for method in methods]
        graphs = [{**variant.stage_settings()["graph"], "scope": ""} for variant in own]
        assert graphs[0] == graphs[1] == graphs[2]
        assert len({variant.stages["features"].name for variant in own}) == 1
        assert len({(variant.settings["dropout"], variant.settings["standardise"]) for variant in own}) == 1
    assert found["fedmlp-parisot"].stages["features"].name == found["fedgcn-parisot"].stages["features"].name
