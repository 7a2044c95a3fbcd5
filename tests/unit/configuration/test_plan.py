"""Names of stages: each stands for its own settings and those above it, and for nothing else."""

import copy
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.configuration import load_plan
from brainfed.configuration._loading import overlay
from brainfed.configuration.planning import scopes_of, split_content
from brainfed.configuration.planning._plan import stage_name
from brainfed.runtime import UserError
from support.samples.parameter_ids import in_order

CONFIG = """
project: study
cohorts:
  ours: {source: simulate}
split: {count: 2, folds: 3, repeats: 1}
variants:
  first: {method: fedgcn}
  second: {method: fedgcn, rounds: 3}
experiments:
  methods: {variants: [ridge-central, fedmlp, localgcn, centralgcn, first, second]}
"""


def plan(**changes):
    return load_plan(overlay(yaml.safe_load(CONFIG), changes))


def variant(planned, name, experiment="methods"):
    return next(found for found in planned.experiments[experiment].variants if found.name == name)


def names(planned, name="first"):
    """The names of a variant's files: split, features, graph, regime."""
    regime, found = planned.experiments["methods"].regime, variant(planned, name)
    return {
        "split": regime.split,
        "features": found.stages["features"].name,
        "graph": found.stages["graph"].name,
        "regime": regime.name,
    }


def moved(**changes):
    """The kinds of names that a change affects."""
    before, after = names(plan()), names(plan(**changes))
    return {kind for kind in before if before[kind] != after[kind]}


def test_a_name_is_a_slug_and_a_digest():
    assert stage_name("pearson", {"b": 1, "a": [2]}) == "pearson-63c9663d"
    found = names(plan())
    assert found["split"].startswith("2-random-3-fold-") and found["features"].startswith("pearson-")
    assert found["graph"].startswith("global-cut-k10-")
    assert found["regime"].startswith("2-random-3-fold-transductive-")


def test_two_variants_with_the_same_graph_share_it_and_all_share_the_features():
    planned = plan()
    assert variant(planned, "first").stages["graph"] is not None
    assert variant(planned, "first").stages["graph"] == variant(planned, "second").stages["graph"]
    assert variant(planned, "first").stages["graph"] == variant(planned, "localgcn").stages["graph"]
    assert set(planned.stages["graph"]) == {
        variant(planned, "first").stages["graph"].name,
        variant(planned, "centralgcn").stages["graph"].name,
    }
    assert len(planned.stages["features"]) == 1
    assert variant(planned, "ridge-central").stage("graph") is None
    assert variant(planned, "fedmlp").stage("graph") is None


def test_a_method_that_needs_the_graph_of_everybody_gets_it():
    planned = plan()
    assert variant(planned, "centralgcn").stages["graph"].settings.scope == "global"
    assert variant(planned, "localgcn").stages["graph"].settings.scope == "global_cut"


def test_graphs_of_the_institutions_own_subjects_are_for_methods_inside_institutions():
    planned = plan(graph={"scope": "local"})
    assert variant(planned, "localgcn").stages["graph"].settings.scope == "local"
    assert variant(planned, "first").stages["graph"].settings.scope == "local"
    assert variant(planned, "centralgcn").stages["graph"].settings.scope == "global"


def test_the_scopes_that_are_drawn_are_the_first_cut_graph_and_the_same_inside_institutions():
    """`wide` is cut with another k; `own` is `first` inside institutions; the shuffled control is never drawn."""
    added = {
        "own": {"method": "fedgcn", "graph": {"scope": "local"}},
        "wide": {"method": "fedgcn", "graph": {"k": 20}},
        "shuffled": {"method": "fedgcn", "graph": {"shuffle": True}},
    }

    def drawn(*names):
        experiments = {"methods": {"variants": ["ridge-central", *names]}}
        return scopes_of(plan(variants=added, experiments=experiments).experiments["methods"].variants)

    cut, own = drawn("wide", "first", "own")
    assert (cut.settings.scope, cut.settings.k, own.settings.scope, own.settings.k) == ("global_cut", 10, "local", 10)
    cut, own = drawn("shuffled", "wide", "centralgcn")
    assert (cut.settings.k, own) == (20, None) and drawn("own", "shuffled") == drawn() == (None, None)


@pytest.mark.parametrize(("protocol", "scope"), [("transductive", "local"), ("inductive", "global_cut")])
def test_an_unseen_site_shapes_no_graph_of_the_others(protocol, scope):
    sites = {"split": {"validation": "leave_one_site_out"}, "protocol": protocol}
    planned = plan(experiments={"methods": {"variants": ["ridge-central", "localgcn", "first", "centralgcn"], **sites}})
    assert variant(planned, "localgcn").stages["graph"].settings.scope == scope
    assert variant(planned, "first").stages["graph"].settings.scope == scope
    assert variant(planned, "centralgcn").stages["graph"].settings.scope == "global"


def test_features_chosen_by_labels_do_not_correlate_in_an_institution_that_is_left_out():
    """It has no training label to choose by, and components stand in."""
    chosen = {"first": {"graph": {"embedding": "rfe", "distance": "correlation"}}}
    sites = {"methods": {"variants": ["ridge-central", "first"], "split": {"validation": "leave_one_site_out"}}}
    with pytest.raises(UserError, match=r"variants\.first\.graph\.distance: expected euclidean with `embedding: rfe`"):
        plan(variants=chosen, experiments=sites)
    assert plan(variants=chosen)


def test_a_graph_that_joins_institutions_is_refused_where_they_train_apart():
    with pytest.raises(UserError, match=r"variants\.first\.graph\.scope: .*'fedgcn' trains inside institutions"):
        plan(variants={"first": {"graph": {"scope": "global"}}})


def test_one_variants_k_renames_its_graph_alone():
    before, after = plan(), plan(variants={"first": {"graph": {"k": 5}}})
    assert moved(variants={"first": {"graph": {"k": 5}}}) == {"graph"}
    assert names(after, "second") == names(before, "second")
    assert names(after, "first")["graph"].startswith("global-cut-k5-")


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"graph": {"k": 5}}, {"graph"}),
        ({"graph": {"phenotypes": []}}, {"graph"}),
        ({"features": {"fisher_z": True}}, {"features", "graph"}),
        ({"features": {"connectivity": "tangent"}}, {"features", "graph"}),
        ({"features": {"harmonise": "combat"}}, {"features", "graph"}),
        ({"protocol": "inductive"}, {"graph", "regime"}),
        ({"experiments": {"methods": {"protocol": "inductive"}}}, {"graph", "regime"}),
        ({"experiments": {"methods": {"labels": "permuted"}}}, {"regime"}),
        ({"split": {"folds": 4}}, {"split", "graph", "regime"}),
        ({"split": {"count": 3}}, {"split", "graph", "regime"}),
        ({"split": {"validation": "leave_one_site_out"}}, {"split", "graph", "regime"}),
        ({"experiments": {"methods": {"split": {"folds": 4}}}}, {"split", "graph", "regime"}),
        ({"seed": 1}, {"split", "graph", "regime"}),
        ({"split": {"repeats": 7}}, set()),
        ({"features": {"selected": 9}}, set()),
        ({"features": {"harmonise_covariates": [], "harmonise_bayes": False}}, set()),
        ({"variants": {"first": {"features": {"selected": 9}}}}, set()),
        ({"split": {"stratify": "site_label"}}, {"split", "graph", "regime"}),
        ({"split": {"stratify": "label"}}, set()),
        ({"split": {"groups": {"one": ["a"]}}}, set()),
        ({"threads": 2}, set()),
        ({"report": {"title": "Ours"}}, set()),
        ({"experiments": {"methods": {"title": "All"}}}, set()),
        ({"variants": {"first": {"learning_rate": 0.1}}}, set()),
        ({"cohorts": {"theirs": {"source": "simulate"}}}, set()),
    ],
    ids=in_order,
)
def test_a_change_renames_what_depends_on_it(changes, kinds):
    assert moved(**changes) == kinds


@pytest.mark.parametrize(
    ("split", "void", "counts"),
    [
        ({}, {"groups": {"one": ["a"]}}, {"count": 4}),
        ({}, {"stratify": "label"}, {"stratify": "site_label"}),
        ({}, {"block": 7, "tested": 0.3, "held_back": 0.2}, {"validation": "holdout"}),
        ({"institutions": "consecutive"}, {"groups": {"one": ["a"]}, "tested": 0.3}, {"block": 7}),
        ({"institutions": "consecutive"}, {"block": 50}, {"count": 4}),
        ({"validation": "holdout"}, {"folds": 9, "stratify": "site_label", "block": 7}, {"tested": 0.2}),
        ({"validation": "holdout"}, {"held_back": 0.1}, {"held_back": 0.0}),
        ({"institutions": "sites"}, {"count": 4, "groups": {"one": ["a"]}, "stratify": "site_label"}, {"folds": 4}),
        ({"institutions": "site_groups", "groups": {"one": ["a"]}}, {"count": 4}, {"groups": {"two": ["a"]}}),
        (
            {"validation": "leave_one_site_out"},
            {"count": 4, "folds": 9, "institutions": "sites", "groups": {"one": ["a"]}, "stratify": "site_label"}
            | {"block": 7, "tested": 0.3, "held_back": 0.2},
            {"validation": "folds"},
        ),
    ],
    ids=str,
)
def test_a_setting_of_the_split_that_does_not_count_moves_no_name(split, void, counts):
    before = plan(split=split)
    content = [split_content(settings) for settings in before.splits.values()]
    after = plan(split=split | void)
    assert names(after) == names(before)
    assert [split_content(settings) for settings in after.splits.values()] == content
    assert names(plan(split=split | counts))["split"] != names(before)["split"]


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ({}, "5-random-5-fold-54e3ac76"),
        ({"institutions": "sites"}, "sites-5-fold-615498ca"),
        ({"institutions": "site_groups", "groups": {"one": ["a"]}}, "site-groups-5-fold-dc87853a"),
        ({"validation": "leave_one_site_out"}, "leave-one-site-out-a2ab86ee"),
    ],
    ids=str,
)
def test_a_setting_that_came_later_renames_no_split(split, name):
    assert plan(seed=20240101, split={"count": 5, "folds": 5} | split).experiments["methods"].regime.split == name


def test_one_test_set_is_in_the_name_of_a_split():
    split = {"institutions": "consecutive", "count": 30, "validation": "holdout"}
    assert plan(split=split).experiments["methods"].regime.split.startswith("30-consecutive-holdout-")


def test_who_is_held_back_is_in_no_fit_like_who_is_outside_a_share():
    tangent = {"features": {"connectivity": "tangent", "reference": "all"}}
    for split, reference in (({"held_back": 0.1}, "training"), ({"held_back": 0.0}, "all")):
        planned = plan(**tangent, split={"validation": "holdout", **split})
        assert variant(planned, "first").stage("features").settings.reference == reference


def test_splits_of_one_experiment_may_be_stratified_both_ways():
    swept = {"methods": {"split": {"stratify": ["label", "site_label"]}}}
    found = plan(experiments=swept)
    assert {"methods-stratify-label", "methods-stratify-site-label"} <= set(found.experiments)
    both = [found.experiments[f"methods-stratify-{name}"].regime.split for name in ("label", "site-label")]
    assert both[0] in plan().splits and both[1].startswith("2-random-3-fold-site-label-")


@pytest.mark.parametrize("features", [{"fisher_z": True}, {"connectivity": "partial", "fisher_z": True}], ids=str)
def test_shipped_tangent_variants_refuse_no_features_of_the_project(features):
    planned = load_plan({"project": "p", "cohorts": {"ours": {"source": "simulate"}}, "features": features})
    tangent = variant(planned, "tangent-central").stages["features"].settings
    assert (tangent.connectivity, tangent.fisher_z) == ("tangent", False)


def test_measures_alone_are_compared_without_shipped_variants_of_connectivity():
    morphometry = {"cohorts": {"ours": {"source": "freesurfer"}}, "features": {"kind": "morphometry"}}
    found = {one.name for one in load_plan({"project": "p", **morphometry}).experiments["methods"].variants}
    assert "ridge-central" in found and not found & {"tangent-local", "tangent-central", "fedtangent"}


def test_the_number_of_selected_features_is_no_setting_where_none_are_selected():
    found = plan(features={"selected": 9})
    assert found.stages["features"] == plan().stages["features"]
    chosen = [plan(features={"selection": "rfe", "selected": count}) for count in (9, 10)]
    assert names(chosen[0])["features"] != names(chosen[1])["features"]


def test_features_that_labels_select_are_taken_from_those_that_all_folds_share():
    planned = plan(variants={"first": {"features": {"selection": "rfe", "selected": 9}}})
    chosen, shared = variant(planned, "first").stages["features"], variant(planned, "second").stages["features"]
    assert chosen.by_fold and chosen.parents == (shared,) and shared.parents == ()
    assert set(planned.stages["features"]) == {chosen.name, shared.name}


def test_unselected_features_are_a_stage_though_no_variant_reads_them():
    planned = plan(features={"selection": "rfe", "fisher_z": True})
    (whole,) = variant(planned, "first").stages["features"].parents
    assert (whole.settings.selection, whole.settings.fisher_z, whole.by_fold) == ("none", True, False)
    assert planned.stages["features"][whole.name] == whole


def test_tangent_features_are_selected_in_the_job_that_fits_them():
    planned = plan(features={"selection": "rfe", "connectivity": "tangent"})
    assert [stage.parents for stage in planned.stages["features"].values()] == [()]


@pytest.mark.parametrize("selection", ["none", "rfe"])
def test_a_fold_harmonises_and_selects_from_features_that_all_folds_share(selection):
    planned = plan(variants={"first": {"features": {"harmonise": "combat", "selection": selection}}})
    even, shared = variant(planned, "first"), variant(planned, "second").stages["features"]
    assert even.stages["features"].by_fold and even.stages["graph"].by_fold
    assert even.stages["features"].parents == (shared,)
    assert set(planned.stages["features"]) == {even.stages["features"].name, shared.name}


def test_each_setting_of_the_harmonisation_has_features_of_its_own():
    settings = ({}, {"harmonise_covariates": ["age"]}, {"harmonise_bayes": False}, {"selection": "rfe"})
    named = [variant(plan(features={"harmonise": "combat"} | own), "first").stages["features"].name for own in settings]
    assert len(set(named)) == 4


def test_tangent_features_are_harmonised_in_the_job_that_fits_them():
    planned = plan(features={"harmonise": "combat", "connectivity": "tangent"})
    assert [stage.parents for stage in planned.stages["features"].values()] == [()]


def test_a_diagnosis_is_no_covariate():
    with pytest.raises(UserError, match=r"features.*harmonise_covariates.*'age', 'sex'|one of age, sex"):
        plan(features={"harmonise": "combat", "harmonise_covariates": ["diagnosis"]})


def test_another_seed_means_other_splits_with_other_names():
    assert plan().splits.keys().isdisjoint(plan(seed=1).splits)


def test_tangent_features_have_a_diagonal_and_two_triangles_a_subject_beside_them():
    features = variant(plan(features={"connectivity": "tangent"}), "first").stages["features"]
    assert features.kind.numbers(features, 7, 4) == 7 * 10
    assert features.kind.numbers_of_all_parts(features, 7, 4) == 7 * 2 * 10
    plain = variant(plan(), "first").stages["features"]
    assert plain.kind.numbers(plain, 7, 4) == 7 * 6
    assert plain.kind.numbers_of_all_parts(plain, 7, 4) == 0


def test_tangent_features_of_everybody_have_neither_split_nor_folds_where_tested_scans_are_seen():
    everybody = {"features": {"connectivity": "tangent", "reference": "all"}}
    features = variant(plan(**everybody), "first").stages["features"]
    assert (features.split, features.by_fold, features.settings.reference) == ("", False, "all")
    hidden = variant(plan(**everybody, protocol="inductive"), "first").stages["features"]
    assert (hidden.by_fold, hidden.settings.reference) == (True, "training")


@pytest.mark.parametrize(
    "regime",
    [
        {},
        {"protocol": "inductive"},
        {"split": {"held_back": 0.1}},
        {"split": {"validation": "leave_one_site_out", "repeats": 1}},
    ],
)
def test_tangent_features_at_the_identity_have_neither_split_nor_folds_in_any_regime(regime):
    features = {"features": {"connectivity": "tangent", "reference": "identity"}}
    found = variant(plan(**features, **regime), "first").stages["features"]
    assert (found.split, found.by_fold, found.settings.reference) == ("", False, "identity")


@pytest.mark.parametrize(
    ("features", "key", "expected", "found"),
    [
        ({"connectivity": "tangent"}, "reference", "identity", "institution"),
        ({"connectivity": "tangent", "reference": "all"}, "reference", "identity", "all"),
        ({"harmonise": "combat"}, "harmonise", "none", "combat"),
        ({"selection": "rfe"}, "selection", "none", "rfe"),
    ],
)
def test_private_methods_refuse_features_that_other_subjects_enter(features, key, expected, found):
    with pytest.raises(UserError, match=f"first.features.{key}: expected {expected}, .*found {found};"):
        plan(variants={"first": {"method": "logistic-dp", "features": features}})
    repaired = {"method": "logistic-dp", "features": features | {key: expected}}
    assert not variant(plan(variants={"first": repaired}), "first").stages["features"].by_fold


def test_private_fedtangent_reads_each_subject_at_the_identity():
    found = variant(plan(variants={"first": {"method": "fedtangent-dp"}}), "first").stages["features"]
    assert (found.settings.connectivity, found.settings.reference) == ("tangent", "identity")


def test_tangent_features_are_named_by_their_split_and_have_folds():
    tangent = {"features": {"connectivity": "tangent"}}
    three = variant(plan(**tangent), "first")
    four = variant(plan(**tangent, split={"folds": 4}), "first")
    assert three.stages["features"].name != four.stages["features"].name
    assert three.stages["features"].by_fold and three.stages["graph"].by_fold
    assert not variant(plan(), "first").stages["features"].by_fold
    assert (
        variant(plan(), "first").stages["features"].name
        == variant(plan(split={"folds": 4}), "first").stages["features"].name
    )


def test_the_inductive_protocol_puts_the_graph_on_the_fold_axis_not_the_features():
    inductive = variant(plan(protocol="inductive"), "first")
    assert inductive.stages["graph"].by_fold and not inductive.stages["features"].by_fold
    assert not variant(plan(), "first").stages["graph"].by_fold


def test_experiments_under_the_same_regime_share_its_methods():
    planned = plan(experiments={"again": {"variants": ["ridge-central", "first"]}})
    assert planned.experiments["again"].regime == planned.experiments["methods"].regime
    assert variant(planned, "first", "again") == variant(planned, "first")


def test_more_repeats_of_one_experiment_share_the_first_ones():
    planned = plan(experiments={"again": {"variants": ["ridge-central"], "split": {"repeats": 4}}})
    assert planned.experiments["again"].regime == planned.experiments["methods"].regime
    assert (planned.experiments["again"].repeats, planned.experiments["methods"].repeats) == (4, 1)


def shuffled(content, order):
    """The same mappings with their keys in another order."""
    if not isinstance(content, dict):
        return content
    keys = list(content)
    order.shuffle(keys)
    return {key: shuffled(content[key], order) for key in keys}


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_of_keys(order):
    content = yaml.safe_load(CONFIG) | {
        "graph": {"k": 4, "age_gap": 1.0, "phenotypes": ["sex"]},
        "protocol": "inductive",
    }
    assert names(load_plan(shuffled(copy.deepcopy(content), order))) == names(load_plan(content))


@given(st.dictionaries(st.text(), st.integers() | st.text(), min_size=1))
def test_a_digest_moves_with_every_value(content):
    key = next(iter(content))
    assert stage_name("x", content) != stage_name("x", content | {key: [content[key]]})
    assert stage_name("x", content) == stage_name("x", json.loads(json.dumps(content)))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"method": "fedgcn", "graph": {"k": [5, 10]}}, ["wide-k5", "wide-k10"]),
        ({"method": "fedgcn", "local_epochs": [1, 5]}, ["wide-local-epochs1", "wide-local-epochs5"]),
        ({"method": "fedgcn", "learning_rate": [0.1, 0.001]}, ["wide-learning-rate0.1", "wide-learning-rate0.001"]),
        (
            {"method": "fedgcn", "standardise": ["institution", "none"]},
            ["wide-standardise-institution", "wide-standardise-none"],
        ),
        ({"method": "fedgcn", "hidden": [[8, 4], [16, 8]]}, ["wide-hidden8x4", "wide-hidden16x8"]),
        ({"method": "fedgcn", "noise": [False, 0.1]}, ["wide-noise-off", "wide-noise0.1"]),
        (
            {"method": "fedgcn", "graph": {"scope": ["local", "global_cut"]}},
            ["wide-scope-local", "wide-scope-global-cut"],
        ),
        (
            {"method": "fedgcn", "graph": {"phenotypes": [["sex", "age"], []]}},
            ["wide-phenotypes-sex-age", "wide-phenotypes-none"],
        ),
        (
            {"method": "fedgcn", "rounds": [1, 2], "graph": {"k": [3, 4]}},
            ["wide-rounds1-k3", "wide-rounds1-k4", "wide-rounds2-k3", "wide-rounds2-k4"],
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_sweep_becomes_one_variant_a_value_with_a_readable_name(definition, expected):
    planned = plan(variants={"wide": definition}, experiments={"methods": {"variants": ["ridge-central", "wide"]}})
    found = [found.name for found in planned.experiments["methods"].variants]
    assert found == ["ridge-central", *expected]


def test_the_overfitted_control_is_in_no_experiment_that_does_not_name_it():
    unnamed = plan(experiments={"methods": {"variants": []}})
    assert "ridge-central" in {one.name for one in unnamed.experiments["methods"].variants}
    assert "ridge-overfitted" not in {one.name for one in unnamed.experiments["methods"].variants}
    named = plan(experiments={"methods": {"variants": ["ridge-central", "ridge-overfitted"]}})
    assert variant(named, "ridge-overfitted").settings["alphas"] == (1e-6,)


def test_a_sweep_sets_what_its_name_says():
    planned = plan(
        variants={"wide": {"method": "fedgcn", "rounds": [1, 2], "graph": {"k": [3, 4]}}},
        experiments={"methods": {"variants": ["ridge-central", "wide"]}},
    )
    for found in planned.experiments["methods"].variants[1:]:
        rounds, k = found.settings["rounds"], found.stages["graph"].settings.k
        assert found.name == f"wide-rounds{rounds}-k{k}"
    assert (len(planned.experiments["methods"].variants), len(planned.stages["graph"])) == (5, 2)


def test_one_member_of_a_sweep_may_be_named_and_be_the_reference():
    members = {"methods": {"variants": ["ridge-central", "wide-k4"], "reference": "wide-k4"}}
    planned = plan(variants={"wide": {"method": "fedgcn", "graph": {"k": [3, 4]}}}, experiments=members)
    assert [found.name for found in planned.experiments["methods"].variants] == ["ridge-central", "wide-k4"]


def test_a_list_valued_setting_is_no_sweep():
    planned = plan(variants={"first": {"hidden": [8, 4], "graph": {"phenotypes": []}}})
    assert variant(planned, "first").settings["hidden"] == (8, 4)
    assert variant(planned, "first").stages["graph"].settings.phenotypes == ()


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ({"wide": {"method": "fedgcn", "graph": {"k": []}}}, "variants.wide.graph.k"),
        ({"wide": {"method": "fedgcn", "graph": {"k": [3, 0]}}}, "variants.wide-k0.graph"),
        ({"wide": {"method": "fedgcn", "rounds": [1]}, "wide-rounds1": {"method": "fedgcn"}}, "another variant"),
        ({"wide": {"method": "fedgcn", "rounds": [2, 2]}}, "variants.wide: .* twice"),
    ],
)
def test_an_invalid_sweep_is_refused(variants, words):
    with pytest.raises(UserError, match=words):
        plan(variants=variants)


def test_an_experiment_without_variants_has_all_shipped_ones():
    planned = plan(experiments={"methods": {"variants": []}})
    found = [found.name for found in planned.experiments["methods"].variants]
    assert {"majority", "ridge-local", "logistic-federated", "fedgcn"} <= set(found)
    assert "first" not in found


def test_an_unknown_variant_of_a_regime_is_no_variant():
    planned = plan()
    regime = planned.experiments["methods"].regime.name
    assert planned.variant(regime, "first").name == "first"
    with pytest.raises(KeyError):
        planned.variant(regime, "third")


VIEWS = {"one": {"harmonise": "combat"}, "two": {"shrinkage": 0.3, "connectivity": "tangent"}}


@pytest.mark.parametrize(
    "split", [{"institutions": "sites"}, {"institutions": "site_groups", "groups": {"north": ["a"], "south": ["b"]}}]
)
@pytest.mark.parametrize(
    "changes",
    [
        {"features": {"harmonise": "combat"}},
        {"variants": {"first": {"features": {"harmonise": "combat"}}}},
        {
            "variants": {"thick": {"method": "ridge", "features": {"views": VIEWS}}},
            "experiments": {"methods": {"variants": ["ridge-central", "thick"]}},
        },
    ],
)
def test_harmonisation_without_a_second_site_in_any_institution_stops(split, changes):
    with pytest.raises(
        UserError, match=r"experiments\.methods: expected features\.harmonise: none .* found combat in "
    ):
        plan(split=split, **changes)
    plan(split={"institutions": "random"}, **changes)
    if "groups" in split:
        plan(split=split | {"groups": {"north": ["a"], "south": ["b", "c"]}}, **changes)
