"""Every federated method is compared with the same model, alone and on pooled data, and with nothing else."""

import pytest
import yaml

from brainfed.configuration import counterparts_of, load_plan
from brainfed.configuration._counterparts import find_counterparts, topology_of
from brainfed.methods import METHODS, SHIPPED_VARIANTS

CONFIG = """
project: counterparts
cohorts: {demo: {source: simulate}}
variants:
  quiet: {method: fedgcn, noise: off}
  shuffled: {method: fedgcn, graph: {shuffle: true}}
  local-shuffled: {method: localgcn, graph: {shuffle: true}}
  wide: {method: fedmlp, hidden: [128, 32]}
  local-wide: {method: localmlp, hidden: [128, 32]}
  long: {method: fedmlp, rounds: 100}
  poisoned: {method: fedmlp, attack: paf, defence: krum, trim: 0.3}
  defended: {method: fedmlp, attack: paf, attacked: 0, defence: median}
  raw: {method: logistic-federated, standardise: none}
  rfe: {method: fedmlp, features: {selection: rfe}}
  apart: {method: fedgcn, graph: {scope: local}}
  localgcn-apart: {method: localgcn, graph: {scope: local}}
  tangent-own:
    method: ridge
    choice: inner_folds
    standardise: none
    features: {connectivity: tangent, fisher_z: off, shrinkage: 0.5}
  thick:
    method: fedtangent
    features:
      views: {tangent: {connectivity: tangent, reference: all, shrinkage: 0.5}, other: {weight: 0.2}}
  thick-own:
    method: ridge
    choice: inner_folds
    standardise: none
    features:
      views: {tangent: {connectivity: tangent, shrinkage: 0.5}, other: {weight: 0.2}}
experiments:
  methods: {reference: VARIANT, variants: VARIANTS}
"""


def experiment_of(tmp_path, *variants):
    content = yaml.safe_load(CONFIG)
    content["experiments"]["methods"] = {"reference": variants[0], "variants": list(variants)}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_plan(content).experiments["methods"]


def counterparts(tmp_path, name, *others):
    experiment = experiment_of(tmp_path, name, *others)
    own = next(variant for variant in experiment.variants if variant.name == name)
    return find_counterparts(own, experiment.variants)


@pytest.mark.parametrize(("name", "noted"), [("logistic-federated", False), ("logistic-fedavg", True)])
def test_a_difference_of_a_solver_is_noted_for_that_solver_alone(tmp_path, name, noted):
    for counterpart in counterparts(tmp_path, name, "logistic-local", "logistic-central").values():
        assert any("no penalty" in sentence for sentence in counterpart["differs"]) == noted
        assert not any("`" in sentence for sentence in counterpart["differs"])


def test_no_sentence_on_a_counterpart_has_marks_that_a_page_does_not_read():
    assert not [method.name for method in METHODS.values() if method.comparison and "`" in method.comparison.differs]


@pytest.mark.parametrize(
    ("name", "alone", "pooled"),
    [
        ("fedmlp", "localmlp", "centralmlp"),
        ("fedgcn", "localgcn", "centralgcn"),
        ("quiet", "localgcn", "centralgcn"),
        ("fedni", "localgcn", "centralgcn"),
        ("fedsage-plus", "localgcn", "centralgcn"),
        ("logistic-federated", "logistic-local", "logistic-central"),
    ],
)
def test_a_federated_variant_has_its_own_counterparts(tmp_path, name, alone, pooled):
    every = ["localmlp", "centralmlp", "localgcn", "centralgcn", "logistic-local", "logistic-central", "ridge-local"]
    found = counterparts(tmp_path, name, *every)
    assert (found["alone"]["name"], found["pooled"]["name"]) == (alone, pooled)
    assert found["alone"]["missing"] == ""


def test_every_federated_method_declares_counterparts_that_train_alone_and_on_pooled_data():
    for method in METHODS.values():
        assert (method.topology == "federated") == (method.family == "federated") == (method.comparison is not None)
        if method.comparison is not None:
            for side, topology in (("alone", "local"), ("pooled", "central")):
                settings = SHIPPED_VARIANTS[getattr(method.comparison, side)]
                counterpart = METHODS[settings["method"]]
                assert settings.get("training", counterpart.topology) == topology


def test_no_other_model_stands_in_for_a_missing_counterpart(tmp_path):
    found = counterparts(tmp_path, "fedmlp", "localgcn", "centralgcn", "ridge-local")
    assert found["alone"] == {"name": "", "differs": [], "missing": "add localmlp", "other_model": ""}
    assert found["pooled"]["missing"] == "add centralmlp"


def test_methods_whose_counterparts_have_another_model_say_so(tmp_path):
    other = {name: method.comparison.other_model for name, method in METHODS.items() if method.comparison}
    assert {name: words for name, words in other.items() if words} == {
        "fedni": "without generated nodes", "fedni-centroids": "without centroids", "fedsage-plus": "another model"
    }  # fmt: skip
    (difference,) = counterparts(tmp_path, "fedsage-plus", "localgcn")["alone"]["differs"]
    assert "GraphSAGE" in difference
    found = counterparts(tmp_path, "fedni", "localgcn")["alone"]
    assert found["differs"] == ["The counterparts have no generated nodes."]


@pytest.mark.parametrize("name", ["fedmlp", "fedgcn", "fedni", "fedsage-plus", "logistic-federated"])
def test_a_pooled_counterpart_scales_over_the_pool_and_says_so(tmp_path, name):
    found = counterparts(
        tmp_path, name, "localmlp", "centralmlp", "localgcn", "centralgcn", "logistic-local", "logistic-central"
    )
    assert any("z-scores features inside each institution" in sentence for sentence in found["pooled"]["differs"])
    assert not any("z-scores" in sentence for sentence in found["alone"]["differs"])


def test_without_scaling_a_pooled_counterpart_removes_the_same(tmp_path):
    content = yaml.safe_load(CONFIG)
    content["variants"]["pool"] = {"method": "logistic", "training": "central", "standardise": "none"}
    content["experiments"]["methods"] = {"reference": "raw", "variants": ["raw", "pool"]}
    variants = load_plan(content).experiments["methods"].variants
    raw = next(variant for variant in variants if variant.name == "raw")
    found = find_counterparts(raw, variants)["pooled"]
    assert (found["name"], [one for one in found["differs"] if "z-scores" in one]) == ("pool", [])


@pytest.mark.parametrize(
    ("name", "plain", "counterpart", "line"),
    [
        ("shuffled", "localgcn", "local-shuffled", "a variant {method: localgcn, graph: {shuffle: true}}"),
        ("wide", "localmlp", "local-wide", "a variant {method: localmlp, hidden: [128, 32]}"),
    ],
)
def test_a_counterpart_has_the_same_graph_and_model(tmp_path, name, plain, counterpart, line):
    without = counterparts(tmp_path, name, plain)
    assert (without["alone"]["name"], without["alone"]["missing"]) == ("", f"add {line}")
    assert counterparts(tmp_path, name, plain, counterpart)["alone"]["name"] == counterpart


def test_other_features_and_another_scaling_need_counterparts_of_their_own(tmp_path):
    assert counterparts(tmp_path, "rfe", "localmlp")["alone"]["missing"] == (
        "add a variant {method: localmlp, features: {selection: rfe}}"
    )
    assert counterparts(tmp_path, "raw", "logistic-local")["alone"]["missing"] == (
        "add a variant {method: logistic, training: local, standardise: none}"
    )


def test_a_setting_that_a_counterpart_lacks_is_named(tmp_path):
    found = counterparts(tmp_path, "fedgcn-skip", "localgcn")["alone"]
    assert found["missing"] == "LocalGCN has no setting skip: linear"


def test_a_longer_training_is_named(tmp_path):
    found = counterparts(tmp_path, "long", "localmlp")
    assert found["alone"]["name"] == "localmlp"
    assert found["alone"]["differs"] == ["long trains for 1000 epochs, localmlp for 100."]


def test_the_counterpart_of_a_poisoned_variant_is_not_poisoned_and_said_to_be_so(tmp_path):
    found = counterparts(tmp_path, "poisoned", "localmlp", "centralmlp")
    assert (found["alone"]["name"], found["pooled"]["name"]) == ("localmlp", "centralmlp")
    assert found["alone"]["differs"] == ["Its counterparts train on honest data."]
    assert counterparts(tmp_path, "defended", "localmlp")["alone"]["differs"] == []


def test_a_server_with_a_model_of_its_own_trains_as_long_as_its_pooled_counterpart(tmp_path):
    found = counterparts(tmp_path, "gahfl", "recurrent-local", "recurrent-central")
    assert (found["alone"]["name"], found["pooled"]["name"]) == ("recurrent-local", "recurrent-central")
    assert not [sentence for side in found.values() for sentence in side["differs"] if "epochs" in sentence]


def test_variants_that_are_not_federated_have_no_counterpart(tmp_path):
    experiment = experiment_of(tmp_path, "ridge-central", "localmlp", "fedmlp", "ridge-local", "centralmlp")
    assert counterparts_of(experiment) == {"fedmlp": {"alone": "localmlp", "pooled": "centralmlp"}}
    assert [topology_of(variant) for variant in experiment.variants] == [
        "central", "local", "federated", "local", "central"
    ]  # fmt: skip


def test_a_counterpart_inside_institutions_has_a_graph_of_the_same_scope(tmp_path):
    found = counterparts(tmp_path, "apart", "localgcn", "centralgcn")
    assert found["pooled"]["name"] == "centralgcn"
    assert found["alone"]["missing"] == "add a variant {method: localgcn, graph: {scope: local}}"
    assert counterparts(tmp_path, "apart", "localgcn", "localgcn-apart")["alone"]["name"] == "localgcn-apart"
    assert counterparts(tmp_path, "fedgcn", "localgcn", "localgcn-apart")["alone"]["name"] == "localgcn"


def test_a_pooled_counterpart_has_the_same_reference_of_tangent_features(tmp_path):
    assert counterparts(tmp_path, "fedtangent", "tangent-own")["pooled"] == {
        "name": "",
        "differs": [],
        "missing": "add tangent-central",
        "other_model": "",
    }
    assert counterparts(tmp_path, "thick", "thick-own")["pooled"]["name"] == ""
    assert counterparts(tmp_path, "fedtangent", "tangent-own", "tangent-central")["pooled"]["name"] == "tangent-central"


def test_the_advice_on_a_missing_counterpart_of_views_is_short_and_makes_it(tmp_path, monkeypatch):
    found = counterparts(tmp_path, "thick", "ridge-central")
    for side, own in (("alone", ""), ("pooled", ", reference: all")):
        text = found[side]["missing"].removeprefix("add a variant ")
        views = f"{{tangent: {{connectivity: tangent{own}, shrinkage: 0.5}}, other: {{weight: 0.2}}}}"
        assert text.endswith(f"features: {{views: {views}}}}}")
        content = yaml.safe_load(CONFIG)
        content["variants"]["advised"] = yaml.safe_load(text)
        content["experiments"]["methods"] = {"reference": "thick", "variants": ["thick", "advised"]}
        experiment = load_plan(content).experiments["methods"]
        assert find_counterparts(experiment.variants[0], experiment.variants)[side]["name"] == "advised"
