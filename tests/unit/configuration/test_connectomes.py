"""Connectomes in a config: one a subject and density, by fold as their features are, refused for other features."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.configuration import load_plan
from brainfed.configuration.layout import Layout
from brainfed.configuration.prune import kept_folders
from brainfed.runtime import UserError
from support.files.connectome_files import built, correlations
from support.samples.connectome_method import READER, register

COHORTS = {"ours": {"source": "simulate"}}


@pytest.fixture(autouse=True)
def reader(monkeypatch):
    """A method that reads connectomes."""
    register(monkeypatch)


def planned(definition=None, **config):
    experiments = {"methods": {"variants": ["majority", "own"], "reference": "majority"}}
    own = {"own": {"method": "reader", **(definition or {})}}
    return load_plan({"project": "p", "cohorts": COHORTS, "experiments": experiments, "variants": own} | config)


def connectomes(plan):
    (stage,) = (one.stage("connectomes") for one in plan.experiments["methods"].variants if one.name == "own")
    return stage


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_subjects_share_connectomes_in_all_splits(protocol, tmp_path):
    plan = planned(protocol=protocol)
    stage = connectomes(plan)
    assert (stage.split, stage.by_fold) == ("", False)
    assert stage.name == connectomes(planned(split={"count": 7})).name
    assert stage.name.startswith("density-0.1-")
    variant = plan.experiments["methods"].variants[1]
    regime = plan.experiments["methods"].regime.name
    read = Layout(plan, {}).method_inputs(variant, regime, "ours", 1)
    assert read["connectomes"] == [f"results/ours/connectomes/{stage.name}/all.safetensors"]
    assert set(read) == {"split", "participants", "connectomes"}
    own = Layout(plan, {}).connectome_inputs(stage, "ours")
    features = stage.parent("features").name
    assert own["features"] == f"results/ours/features/{features}/all.safetensors"
    assert tmp_path / "ours/connectomes" / stage.name in set(kept_folders(plan, tmp_path))


@pytest.mark.parametrize("fitted", [{"connectivity": "tangent"}, {"harmonise": "combat"}])
def test_features_that_a_fold_fits_have_connectomes_by_fold(fitted):
    plan = planned({"features": fitted})
    stage = connectomes(plan)
    split = plan.experiments["methods"].regime.split
    assert (stage.split, stage.by_fold) == (split, True)
    layout, features = Layout(plan, {}), stage.parent("features").name
    assert layout.files_of(stage, "ours", 2)[1] == f"results/ours/connectomes/{stage.name}/repeat-2/fold-1.safetensors"
    own = layout.connectome_inputs(stage, "ours", 2, "fold-1")
    assert own["features"] == f"results/ours/features/{features}/repeat-2/fold-1.safetensors"
    assert stage.name != connectomes(planned({"features": fitted}, split={"count": 7})).name


@pytest.mark.parametrize(
    ("features", "found"),
    [
        ({"kind": "morphometry"}, "kind: morphometry"),
        ({"selection": "rfe"}, "selection: rfe"),
        ({"views": {"a": {}, "b": {"connectivity": "partial"}}}, "2 views"),
    ],
)
def test_features_that_are_not_one_number_a_connection_are_refused(features, found):
    words = f"variants.own.features: .*expected one number for each connection of two regions, found {found}; leave"
    with pytest.raises(UserError, match=words):
        planned({"features": features})


def test_selected_columns_or_measures_of_the_project_stop_no_variant_that_reads_connectomes():
    assert connectomes(planned(features={"selection": "rfe"})).parent("features").settings.selection == "none"
    tables = {"ours": {"source": "freesurfer", "freesurfer": {"tables": ["a.tsv"]}, "phenotype": "p.csv"}}
    plan = planned(features={"kind": "morphometry"}, cohorts=tables, experiments={"shipped": {}})
    names = [variant.name for variant in plan.experiments["shipped"].variants]
    assert "ridge-central" in names and "reader" not in names


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"density": 0}, "density: expected a share above 0"),
        ({"density": 1.5}, "connectomes: density: expected at most 1, found 1.5"),
        ({"threshold": -0.1}, "threshold: expected at least 0"),
        ({"edges": "absolut"}, "did you mean 'absolute'"),
        ({"densty": 0.1}, "unknown key 'densty'; did you mean 'density'"),
        ({"edges": "absolute", "threshold": 1.2}, r"connectomes.threshold: expected at most 1.*found 1\.2; lower it"),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings, words):
    with pytest.raises(UserError, match=words):
        planned({"connectomes": settings})


def test_transformed_and_tangent_entries_may_have_thresholds_above_1():
    for features in ({"fisher_z": True}, {"connectivity": "tangent"}):
        stage = connectomes(planned({"features": features, "connectomes": {"edges": "absolute", "threshold": 1.2}}))
        assert stage.name.startswith("threshold-1.2-")


def test_settings_without_effect_stand_at_their_defaults():
    assert connectomes(planned({"connectomes": {"threshold": 0.7}})) == connectomes(planned())
    absolute = {"edges": "absolute", "threshold": 0.7}
    assert connectomes(planned({"connectomes": {**absolute, "density": 0.4}})) == connectomes(
        planned({"connectomes": absolute})
    )


def test_densities_are_swept():
    plan = planned({"connectomes": {"density": [0.1, 0.2]}})
    held = {one.name: one.stage("connectomes") for one in plan.experiments["methods"].variants[1:]}
    assert [stage.settings.density for stage in held.values()] == [0.1, 0.2]
    assert list(held) == ["own-density0.1", "own-density0.2"]


@pytest.mark.parametrize("settings", [{"density": 0.3}, {"edges": "absolute", "threshold": 0.0}])
def test_the_expected_size_is_that_of_the_file(tmp_path, settings):
    stage = connectomes(planned({"connectomes": settings}))
    graphs = built(tmp_path, correlations(30, 20), 20, **settings)
    starts = graphs.node_start.nbytes + graphs.edge_start.nbytes
    held = sum(getattr(graphs, name).nbytes for name in vars(graphs)) - starts
    assert 4 * stage.kind.numbers(stage, 30, 20) == held
    assert (tmp_path / "connectomes.safetensors").stat().st_size == pytest.approx(held, rel=0.1)
    assert np.diff(graphs.edge_start).max() == 2 * stage.settings.most_connections(20)


def test_a_method_reads_graphs_or_features():
    with pytest.raises(ValueError, match=r"reader: expected connectomes alone .*'features'"):
        replace(READER, needs=("connectomes", "features"))
