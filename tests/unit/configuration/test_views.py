"""Several views in a config: stages with the views as parents, for methods that weigh them."""

from dataclasses import replace
from types import MappingProxyType

import pytest
import yaml

from brainfed.configuration import load_plan
from brainfed.configuration._outline import variant_outline
from brainfed.configuration.layout import Layout
from brainfed.configuration.planning import _experiments as experiments
from brainfed.configuration.prune import kept_folders
from brainfed.configuration.stages.features import width
from brainfed.configuration.stages.registry import kinds_of
from brainfed.methods import METHODS, Capabilities
from brainfed.reporting._variants import without_sweep
from brainfed.runtime import UserError

VIEWS = {
    "connectome": {"connectivity": "tangent", "reference": "all", "shrinkage": 0.5},
    "thickness": {"kind": "morphometry", "weight": 0.15, "centre": "site", "standardise": True, "clip": 4},
}
CONFIG = """
project: study
cohorts:
  ours:
    source: timeseries
    phenotype: participants.tsv
    series: series/{subject}.1D
    regions: 10
    freesurfer: {tables: [lh.tsv], measures: [thickness]}
split: {count: 2, folds: 3, repeats: 2}
experiments:
  methods: {variants: [ridge-central, both]}
"""


@pytest.fixture
def weighing(monkeypatch):
    """Ridge as a method that weighs views."""
    methods = MappingProxyType({**METHODS, "ridge": replace(METHODS["ridge"], capabilities=Capabilities(views=True))})
    monkeypatch.setattr(experiments, "METHODS", methods)


def config(views=VIEWS, method="ridge", **changes):
    defined = {"both": {"method": method, "features": {"views": views}}}
    return {**yaml.safe_load(CONFIG), "variants": defined, **changes}


def both(plan, experiment="methods"):
    return next(one for one in plan.experiments[experiment].variants if one.name == "both")


def test_the_views_are_stages_of_their_own_that_other_variants_share(weighing):
    shared = {"alone": {"method": "ridge", "features": VIEWS["connectome"]}}
    experiments = {"methods": {"variants": ["ridge-central", "both", "alone"]}}
    content = config(experiments=experiments)
    plan = load_plan(content | {"variants": content["variants"] | shared})
    stage = both(plan).stages["features"]
    assert stage.name.startswith("views-")
    connectome, thickness = stage.parents
    assert connectome.name in plan.stages["features"] and connectome.name.startswith("tangent-")
    assert thickness.name.startswith("morphometry-")
    assert plan.experiments["methods"].variants[2].stages["features"].name == connectome.name
    assert not stage.by_fold
    assert Layout(plan, {}).view_inputs(stage, "ours") == [
        f"results/ours/features/{view.name}/all.safetensors" for view in (connectome, thickness)
    ]


def test_one_view_that_is_fitted_puts_all_on_the_fold_axis(weighing):
    fitted = {**VIEWS, "connectome": {"connectivity": "tangent"}}
    plan = load_plan(config(fitted))
    stage = both(plan).stages["features"]
    assert stage.by_fold
    assert Layout(plan, {}).view_inputs(stage, "ours", 1, "fold-2") == [
        f"results/ours/features/{stage.parents[0].name}/repeat-1/fold-2.safetensors",
        f"results/ours/features/{stage.parents[1].name}/all.safetensors",
    ]
    shown = variant_outline(Layout(plan, {}), "ours", plan.experiments["methods"], both(plan))
    assert len(shown["feature_files"]) == 2 * 3
    timings = shown["preparation"]["features"]
    assert len(timings) == 2 * 2 * 3
    assert all(path.endswith("-timing.json") and "morphometry" not in path for path in timings)


def test_the_name_of_a_stage_depends_on_the_order_the_weights_and_the_scaling(weighing):
    weight = {**VIEWS, "thickness": VIEWS["thickness"] | {"weight": 0.3}}
    scaled = {**VIEWS, "thickness": VIEWS["thickness"] | {"clip": None}}
    turned = dict(reversed(VIEWS.items()))
    usual = {**VIEWS, "connectome": VIEWS["connectome"] | {"weight": 1.0, "fisher_z": False, "selected": 77}}
    names = [both(load_plan(config(views))).stages["features"].name for views in (VIEWS, weight, scaled, turned)]
    assert len(set(names)) == 4
    assert both(load_plan(config(usual))).stages["features"].name == names[0]


def test_nothing_that_views_read_is_pruned(weighing, tmp_path):
    plan = load_plan(config())
    stage = both(plan).stages["features"]
    kept = set(kept_folders(plan, tmp_path))
    assert {tmp_path / "ours" / "features" / one.name for one in (stage, *stage.parents)} <= kept


def test_the_size_of_views_is_that_of_their_connections(weighing):
    stage = both(load_plan(config())).stages["features"]
    assert (width(stage, 10), stage.kind.numbers(stage, 7, 10)) == (10 * 11 // 2, 7 * 55)


def reads_features(name):
    """Whether a stage that the method needs is made of features."""
    return "features" in {kind.name for kind in kinds_of(METHODS[name])}


WITHOUT_VIEWS = sorted(name for name, one in METHODS.items() if not one.capabilities.views and one.needs)


@pytest.mark.parametrize("method", [name for name in WITHOUT_VIEWS if reads_features(name)])
def test_a_method_of_one_kind_of_features_refuses_views(method):
    with pytest.raises(UserError, match=rf"variants\.both\.features\.views: method '{method}' reads one kind"):
        load_plan(config(method=method))


@pytest.mark.parametrize("method", [name for name in WITHOUT_VIEWS if not reads_features(name)])
def test_a_method_without_features_refuses_views(method):
    with pytest.raises(UserError, match=rf"variants\.both\.features: method '{method}' reads no features"):
        load_plan(config(method=method))


def test_views_for_all_variants_are_refused(weighing):
    with pytest.raises(UserError, match=r"features\.views: expected views under the `features` of variants"):
        load_plan(config(features={"views": VIEWS}))


def test_a_cohort_without_measures_refuses_a_view_of_them(weighing):
    content = config()
    del content["cohorts"]["ours"]["freesurfer"]
    with pytest.raises(UserError, match=r"found 'both' with morphometry; .* set cohorts\.ours\.freesurfer\.tables"):
        load_plan(content)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clip": 0}, "clip: expected a limit above 0"),
        ({"wieght": 1}, "unknown key .*wieght.*did you mean 'weight'"),
        ({"weight": -1}, "weight: expected at least 0"),
        ({"views": {}}, "unknown key"),
        ({"connectivity": "partial"}, "expected connectivity beside settings of it"),
    ],
)
def test_a_wrong_setting_of_a_view_is_refused(weighing, changes, words):
    with pytest.raises(UserError, match=words):
        load_plan(config({**VIEWS, "thickness": VIEWS["thickness"] | changes}))


def test_views_of_no_weight_are_refused(weighing):
    with pytest.raises(UserError, match="expected a weight above 0 in one view or more"):
        load_plan(config({name: view | {"weight": 0} for name, view in VIEWS.items()}))


def test_a_null_control_refuses_a_view_that_is_selected_by_true_labels(weighing):
    selected = {**VIEWS, "connectome": {"selection": "rfe"}}
    experiments = {"methods": {"variants": ["ridge-central", "both"], "labels": "permuted"}}
    with pytest.raises(UserError, match=r"variants\.both\.features\.views\.connectome\.features\.selection"):
        load_plan(config(selected, experiments=experiments))


def test_scans_of_tested_subjects_enter_no_reference_under_the_inductive_protocol(weighing):
    stage = both(load_plan(config(protocol="inductive"))).stages["features"]
    assert stage.parents[0].settings.reference == "training" and stage.by_fold


@pytest.mark.parametrize(("protocol", "found"), [("transductive", "own"), ("inductive", "all")])
def test_an_unseen_site_is_centred_by_its_own_subjects_unless_they_must_enter_no_fit(weighing, protocol, found):
    stage = both(load_plan(config(protocol=protocol))).stages["features"]
    assert stage.settings.views["thickness"].unseen_site == found


def test_the_mean_of_unseen_sites_changes_nothing_where_all_sites_share_one(weighing):
    views = {**VIEWS, "connectome": VIEWS["connectome"] | {"unseen_site": "all"}}
    names = [both(load_plan(config(one))).stages["features"].name for one in (VIEWS, views)]
    assert names[0] == names[1]


def test_a_list_in_a_view_is_a_sweep_named_after_the_view(weighing):
    views = {**VIEWS, "thickness": VIEWS["thickness"] | {"weight": [0.1, 0.2], "centre": ["all", "site"]}}
    experiments = {"methods": {"variants": ["ridge-central", "both"]}}
    plan = load_plan(config(views, experiments=experiments))
    found = {one.name: one.stages["features"] for one in plan.experiments["methods"].variants[1:]}
    assert list(found) == [
        f"both-thickness-weight{weight}-thickness-centre-{centre}"
        for weight in (0.1, 0.2)
        for centre in ("all", "site")
    ]
    thickness = found["both-thickness-weight0.2-thickness-centre-all"].settings.views["thickness"]
    assert (thickness.weight, thickness.centre, thickness.clip) == (0.2, "all", 4.0)
    assert len({tuple(view.name for view in stage.parents) for stage in found.values()}) == 1
    assert without_sweep("-thickness-weight0.2", {}) == ("-thickness", ["weight = 0.2"])
