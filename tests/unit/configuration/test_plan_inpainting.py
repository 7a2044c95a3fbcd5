"""Generators and fused graphs of a config: their names, the variants that share them, and those without."""

import pytest
import yaml

from brainfed.configuration import load_plan
from brainfed.configuration._loading import overlay
from brainfed.configuration.stages.graphs import max_generated
from brainfed.methods import inpainter_of
from brainfed.runtime import UserError
from support.samples.parameter_ids import in_order

CONFIG = """
project: study
cohorts:
  ours: {source: simulate}
split: {count: 2, folds: 3, repeats: 2}
variants:
  first: {method: fedni}
  second: {method: fedni, rounds: 3}
  sage: {method: fedsage-plus}
experiments:
  methods: {variants: [ridge-central, fedgcn, first, second, sage]}
"""


def plan(**changes):
    return load_plan(overlay(yaml.safe_load(CONFIG), changes))


def variant(planned, name, experiment="methods"):
    return next(found for found in planned.experiments[experiment].variants if found.name == name)


def names(planned, name="first"):
    """The names of a variant's files, from the top down."""
    found = variant(planned, name)
    return {
        "features": found.stages["features"].name,
        "graph": found.stages["graph"].name,
        "inpainting": found.stages["inpainting"].name,
        "fused": found.stages["fused"].name,
    }


def moved(name="first", **changes):
    """The kinds of names that a change affects."""
    before, after = names(plan(), name), names(plan(**changes), name)
    return {kind for kind in before if before[kind] != after[kind]}


def test_names_begin_with_the_inpainter():
    found = names(plan())
    assert found["inpainting"].startswith("fedni-") and found["fused"].startswith("fedni-")
    assert names(plan(), "sage")["inpainting"].startswith("fedsage-")


def test_two_variants_with_the_same_inpainting_share_generator_and_fused_graph():
    planned = plan()
    assert variant(planned, "first").stages["fused"] == variant(planned, "second").stages["fused"]
    assert len(planned.stages["inpainting"]) == len(planned.stages["fused"]) == 2
    assert variant(planned, "first").stages["graph"] == variant(planned, "fedgcn").stages["graph"]


def test_variants_that_fuse_differently_share_the_generator_alone():
    planned = plan(variants={"second": {"fusing": {"edges": "binary"}}})
    first, second = names(planned, "first"), names(planned, "second")
    assert first["inpainting"] == second["inpainting"] and first["fused"] != second["fused"]


def test_a_method_without_inpainter_has_no_fused_graph():
    assert variant(plan(), "fedgcn").stage("fused") is None


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"inpainting": {"alpha": 0.5}}, {"inpainting", "fused"}),
        ({"variants": {"first": {"inpainting": {"masking": "random"}}}}, {"inpainting", "fused"}),
        ({"fusing": {"cap": 1.0}}, {"fused"}),
        ({"variants": {"first": {"fusing": {"nodes": "random"}}}}, {"fused"}),
        ({"graph": {"k": 5}}, {"graph", "inpainting", "fused"}),
        ({"features": {"fisher_z": True}}, {"features", "graph", "inpainting", "fused"}),
        ({"protocol": "inductive"}, {"graph", "inpainting", "fused"}),
        ({"variants": {"first": {"learning_rate": 0.1, "local_epochs": 3}}}, set()),
        ({"experiments": {"methods": {"labels": "permuted"}}}, set()),
        ({"split": {"repeats": 7}}, set()),
        ({"inpainting": {"alpha": 1}}, set()),
    ],
    ids=in_order,
)
def test_a_change_renames_what_depends_on_it(changes, kinds):
    assert moved(**changes) == kinds


def test_the_projects_inpainting_is_fednis_alone():
    assert moved("sage", inpainting={"rounds": 7}) == set()
    planned = plan(inpainting={"rounds": 7})
    assert variant(planned, "first").stages["inpainting"].settings.rounds == 7
    assert variant(planned, "sage").stages["inpainting"].settings.rounds == 20


def test_a_variant_may_set_its_own_inpainters_keys():
    planned = plan(variants={"sage": {"inpainting": {"fgen_width": 32}}})
    assert variant(planned, "sage").stages["inpainting"].settings.fgen_width == 32


def test_fusing_is_the_projects_then_the_methods_then_the_variants():
    planned = plan(fusing={"edges": "similar", "cap": 0.25, "nodes": "random"})
    first, sage = variant(planned, "first").stages["fused"].settings, variant(planned, "sage").stages["fused"].settings
    assert (first.edges, first.cap, first.nodes) == ("similar", 0.25, "random")
    assert (sage.edges, sage.cap, sage.nodes) == ("binary", None, "random")
    own = plan(fusing={"cap": 0.25}, variants={"sage": {"fusing": {"cap": 0.75}}})
    assert variant(own, "sage").stages["fused"].settings.cap == 0.75


def test_one_subject_gets_as_many_nodes_as_are_predicted_or_fedsages_number_of_targets():
    planned = plan(graph={"k": 7})
    assert max_generated(variant(planned, "first").stages["inpainting"]) is None
    assert max_generated(variant(planned, "sage").stages["inpainting"]) == 5


@pytest.mark.parametrize(
    ("changes", "by_fold"),
    [
        ({}, False),
        ({"protocol": "inductive"}, True),
        ({"features": {"connectivity": "tangent"}}, True),
        ({"features": {"selection": "rfe"}}, True),
        ({"graph": {"embedding": "rfe"}}, True),
    ],
    ids=str,
)
def test_a_generator_stands_on_the_fold_axis_where_its_graph_does(changes, by_fold):
    stages = variant(plan(**changes), "first").stages
    assert {stages[kind].by_fold for kind in ("fused", "inpainting", "graph")} == {by_fold}


SITES = {"validation": "leave_one_site_out"}


@pytest.mark.parametrize("name", ["first", "sage"])
def test_a_site_that_counts_as_unseen_may_not_train_a_generator(name):
    experiment = {"variants": ["ridge-central", name]}
    words = rf"variants\.{name}: the generator of method '.*' would be trained on the site .* `protocol: inductive`"
    with pytest.raises(UserError, match=words):
        plan(split=SITES, experiments={"methods": experiment})
    with pytest.raises(UserError, match=words):
        plan(experiments={"sites": experiment | {"split": SITES}})
    inductive = plan(split=SITES, experiments={"methods": experiment | {"protocol": "inductive"}})
    assert variant(inductive, name).stages["fused"].by_fold


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_all_shipped_variants_are_those_that_may_see_an_unseen_site(protocol):
    sites = {"split": SITES, "protocol": protocol}
    planned = plan(experiments={"methods": sites | {"variants": []}, "random": {}})
    shown = {found.name for found in planned.experiments["methods"].variants}
    left_out = {found.name for found in planned.experiments["random"].variants} - shown
    generating = {found.name for found in planned.experiments["random"].variants if inpainter_of(found.method)}
    assert {"fedni", "fedni-skip", "fedni-centroids", "fedsage-plus"} <= generating
    assert left_out == (generating if protocol == "transductive" else set())


def test_a_shipped_variant_that_is_redefined_as_a_sweep_is_left_out_whole():
    sweep = {"fedgcn": {"method": "fedni", "rounds": [1, 2]}}
    planned = plan(variants=sweep, experiments={"methods": {"variants": [], "split": SITES}})
    assert not any(inpainter_of(found.method) for found in planned.experiments["methods"].variants)


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"method": "fedgcn", "inpainting": {"alpha": 1}}, r"variants\.wrong\.inpainting: .*'fedgcn' reads no inpaint"),
        ({"method": "fedgcn", "fusing": {"cap": 1}}, r"variants\.wrong\.fusing: .*'fedgcn' reads no fusing"),
        (
            {"method": "fedni", "inpainting": {"alfa": 1}},
            r"variants\.wrong\.inpainting: .*'alfa'; did you mean 'alpha'",
        ),
        ({"method": "fedsage-plus", "inpainting": {"alpha": 1}}, r"variants\.wrong\.inpainting: unknown key 'alpha'"),
        ({"method": "fedni", "fusing": {"edges": "binar"}}, r"variants\.wrong\.fusing: .*did you mean 'binary'"),
        ({"method": "fedni", "inpainting": 3}, r"variants\.wrong\.inpainting: expected keys with values, found 3"),
        ({"method": "fedni", "inpainting": {"hidden_least": 0.5}}, r"variants\.wrong\.inpainting: hidden_least: 0.5"),
        ({"method": "fedni", "inpainting": {"alpha": []}}, r"variants\.wrong\.inpainting\.alpha: .* empty list"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(definition, words):
    with pytest.raises(UserError, match=words):
        plan(variants={"wrong": definition})


@pytest.mark.parametrize(
    ("stage", "value"), [("fusing", {"edges": "binary"}), ("inpainting", {"discriminator": False})]
)
def test_variants_that_differ_in_their_fused_graph_alone_are_two(stage, value):
    variants = {"first": {"method": "fedni"}, "second": {"rounds": 10}}
    with pytest.raises(UserError, match="'first' and 'second' have the same settings"):
        plan(variants=variants)
    variants["second"][stage] = value
    assert (
        variant(plan(variants=variants), "second").stages["fused"]
        != variant(plan(variants=variants), "first").stages["fused"]
    )


def test_a_sweep_of_two_weights_is_their_product_on_one_graph():
    planned = plan(
        variants={"weights": {"method": "fedni", "inpainting": {"alpha": [0.1, 1], "beta": [0.1, 1]}}},
        experiments={"methods": {"variants": ["ridge-central", "weights"]}},
    )
    found = [found.name for found in planned.experiments["methods"].variants[1:]]
    assert found == [
        "weights-alpha0.1-beta0.1",
        "weights-alpha0.1-beta1",
        "weights-alpha1-beta0.1",
        "weights-alpha1-beta1",
    ]
    assert (len(planned.stages["graph"]), len(planned.stages["inpainting"])) == (1, 4)
    assert names(planned, "weights-alpha1-beta1") == names(plan(), "first")


def test_a_sweep_of_the_classifier_trains_one_generator():
    planned = plan(
        variants={"epochs": {"method": "fedni", "local_epochs": [1, 5]}},
        experiments={"methods": {"variants": ["ridge-central", "epochs"]}},
    )
    assert len(planned.experiments["methods"].variants) == 3
    assert len(planned.stages["inpainting"]) == len(planned.stages["fused"]) == 1
