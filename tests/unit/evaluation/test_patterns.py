"""Patterns of all runs are joined by feature, described over runs, and scored against planted connections."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainfed.cohort.settings import CohortSettings, SimulateSettings
from brainfed.cohort.settings._sources import SimulatedSite
from brainfed.cohort.sources import simulate_subjects, write_participants
from brainfed.cohort.sources._simulated_scans import region_signals, simulate_atlas, simulate_connectome
from brainfed.evaluation import planted_connections, read_patterns
from brainfed.evaluation._patterns import Patterns, precision_at, stability
from brainfed.imaging import FeatureSettings, ViewSettings, connectivity, join_views
from brainfed.methods.linear.declaration import RidgeSettings
from brainfed.methods.linear.train import train_ridge
from brainfed.runtime import Streams, UserError, write_arrays
from brainfed.runtime.jobs import Run
from brainfed.samples import Outcome, named_patterns
from support.samples.method_inputs import method_inputs

CONNECTIVITY = {"kind": "connectivity", "connectivity": "pearson"}
REGIONS = ["a", "b", "c", "d"]
PAIRS = [["a", "b"], ["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"], ["c", "d"]]


def write(path, values, columns=None, **described):
    """A file of patterns (F, K, d) of features without views."""
    values = np.asarray(values, dtype=np.float32)
    view = {"name": "", "start": 0, "stop": values.shape[-1], "regions": REGIONS, "settings": CONNECTIVITY} | described
    chosen = [[None]] * len(values) if columns is None else [[own] for own in columns]
    write_arrays(path, {"patterns": values}, {"views": [view], "columns": chosen, "classes": []})
    return path


def of(values):
    """Patterns (runs, d) of made-up connections."""
    values = np.asarray(values, dtype=np.float64)
    names = np.array([["", f"r{place:02d}", "z"] for place in range(values.shape[1])])
    return Patterns(values[:, None], names, ())


def test_runs_are_repeats_and_folds_in_order(tmp_path):
    values = np.random.default_rng(0).standard_normal((3, 2, 1, 6)).astype(np.float32)
    found = read_patterns([write(tmp_path / f"{repeat}", part) for repeat, part in enumerate(values)])
    np.testing.assert_array_equal(found.values, values.reshape(6, 1, 6))
    assert (found.features[:, 1:].tolist(), set(found.features[:, 0])) == (PAIRS, {""})
    assert found.classes == ()


def test_features_that_a_run_did_not_select_are_unknown_in_it(tmp_path):
    first = write(tmp_path / "0", [[[1, 2]], [[3, 4]]], columns=[[0, 5], [1, 5]])
    second = write(tmp_path / "1", [[[5, 6]], [[7, 8]]], columns=[[0, 1], [4, 5]])
    table = stability(read_patterns([first, second]))
    assert table["runs"].tolist() == [2, 2, 0, 0, 1, 3]
    assert table["mean"].tolist() == [3, 4.5, 0, 0, 7, pytest.approx(14 / 3)]
    # By the mean over all four runs: 14 / 4, 9 / 4, 7 / 4, 6 / 4.
    assert table["rank"].tolist() == [4, 2, 5, 6, 3, 1]
    assert table["same_sign"].tolist() == [1, 1, 0, 0, 1, 1]


def test_tangent_features_have_a_diagonal(tmp_path):
    path = write(tmp_path / "0", np.ones((1, 1, 10)), settings=CONNECTIVITY | {"connectivity": "tangent"})
    names = read_patterns([path]).features[:, 1:].tolist()
    assert names[:5] == [["a", "a"], ["a", "b"], ["a", "c"], ["a", "d"], ["b", "b"]]


def test_measures_have_their_own_name(tmp_path):
    path = write(tmp_path / "0", np.ones((1, 1, 4)), settings={"kind": "morphometry"})
    assert read_patterns([path]).features[:, 1:].tolist() == [[name, name] for name in REGIONS]


def test_views_stand_side_by_side(tmp_path):
    thickness = {"name": "thickness", "start": 3, "stop": 5, "regions": ["x", "y"], "settings": {"kind": "morphometry"}}
    connectome = {"name": "fmri", "start": 0, "stop": 3, "regions": REGIONS, "settings": CONNECTIVITY}
    patterns = np.arange(10, dtype=np.float32).reshape(2, 1, 5)
    described = {"views": [connectome, thickness], "columns": [[[0, 1, 5], None], [[1, 2, 3], None]], "classes": []}
    write_arrays(tmp_path / "0", {"patterns": patterns}, described)
    found = read_patterns([tmp_path / "0"])
    assert found.features.tolist() == [["fmri", *pair] for pair in PAIRS] + [
        ["thickness", "x", "x"], ["thickness", "y", "y"]
    ]  # fmt: skip
    expected = [[0, 1, np.nan, np.nan, np.nan, 2, 3, 4], [np.nan, 5, 6, 7, np.nan, np.nan, 8, 9]]
    np.testing.assert_array_equal(found.values[:, 0], expected)
    assert stability(found)["view"].tolist() == ["fmri"] * 6 + ["thickness"] * 2


def test_a_method_without_patterns_has_none(tmp_path):
    outcome = Outcome(np.zeros((1, 1, 2)), "probability")
    write_arrays(tmp_path / "0", *named_patterns(outcome, []))
    assert read_patterns([tmp_path / "0"]) is None


def test_patterns_of_other_features_are_refused(tmp_path):
    first = write(tmp_path / "0", np.ones((1, 1, 6)))
    second = write(tmp_path / "1", np.ones((1, 1, 6)), regions=["a", "b", "c", "e"])
    with pytest.raises(UserError, match=r"1: expected patterns of the features of .*0; delete both"):
        read_patterns([first, second])


def test_a_file_holds_the_names_of_its_features(tmp_path):
    outcome = Outcome(np.zeros((2, 1, 2)), "probability", patterns=np.ones((2, 1, 2), dtype=np.float32))
    files = []
    for fold, columns in enumerate(([0, 3], [2, 5])):
        described = {"subjects": ["s"], "regions": REGIONS, "settings": CONNECTIVITY, "columns": columns}
        write_arrays(tmp_path / f"fold-{fold}", {"features": np.zeros((1, 2), dtype=np.float32)}, described)
        files.append(tmp_path / f"fold-{fold}")
    arrays, metadata = named_patterns(outcome, files, ["control", "patient"])
    view = {"name": "", "start": 0, "stop": 2, "regions": REGIONS, "settings": CONNECTIVITY}
    assert metadata == {"views": [view], "columns": [[[0, 3]], [[2, 5]]], "classes": []}
    assert arrays["patterns"] is outcome.patterns
    write_arrays(tmp_path / "0", arrays, metadata)
    expected = [[1, np.nan, np.nan, 1, np.nan, np.nan], [np.nan, np.nan, 1, np.nan, np.nan, 1]]
    np.testing.assert_array_equal(read_patterns([tmp_path / "0"]).values[:, 0], expected)


def test_a_file_of_joined_views_describes_each(tmp_path):
    outcome = Outcome(np.zeros((2, 1, 2)), "margin", patterns=np.ones((2, 1, 8), dtype=np.float32))
    views = {}
    parts = (("fmri", 6, REGIONS, "connectivity"), ("thickness", 2, ["x", "y"], "morphometry"))
    for name, width, regions, kind in parts:
        described = {"subjects": ["s"], "regions": regions, "crossings": [], "settings": CONNECTIVITY | {"kind": kind}}
        write_arrays(tmp_path / name, {"features": np.zeros((1, width), dtype=np.float32)}, described)
        views[name] = ViewSettings(kind=kind)
    joined = join_views([tmp_path / name for name in views], views)
    write_arrays(tmp_path / "all", {"features": joined.features}, {**joined.metadata, "settings": {}})
    write_arrays(tmp_path / "0", *named_patterns(outcome, [tmp_path / "all"]))
    found = read_patterns([tmp_path / "0"])
    assert found.values.shape == (2, 1, 8)
    assert found.features[[0, 5, 6, 7]].tolist() == [
        ["fmri", "a", "b"], ["fmri", "c", "d"], ["thickness", "x", "x"], ["thickness", "y", "y"]
    ]  # fmt: skip


def test_several_classes_are_named(tmp_path):
    outcome = Outcome(np.zeros((1, 1, 3)), "margin", patterns=np.ones((1, 3, 6), dtype=np.float32))
    described = {"subjects": ["s"], "regions": REGIONS, "settings": CONNECTIVITY}
    write_arrays(tmp_path / "all", {"features": np.zeros((1, 6), dtype=np.float32)}, described)
    write_arrays(tmp_path / "0", *named_patterns(outcome, [tmp_path / "all"], ["CN", "MCI", "AD"]))
    found = read_patterns([tmp_path / "0"])
    assert found.classes == ("CN", "MCI", "AD")
    assert [len(stability(found, model)) for model in range(3)] == [6, 6, 6]


def test_stability_by_hand():
    table = stability(of([[1, 2, -1, 0], [3, 2, 2, 0], [2, 2, -4, 0]]))
    assert table["mean"].tolist() == [2, 2, -1, 0]
    np.testing.assert_allclose(table["sd"], [1, 0, 3, 0])
    np.testing.assert_allclose(table["z"], [2, np.inf, -1 / 3, 0])
    np.testing.assert_allclose(table["same_sign"], [1, 1, 2 / 3, 0])
    assert (table["rank"].tolist(), table["runs"].tolist()) == ([1, 2, 3, 4], [3] * 4)


def test_one_run_has_no_spread():
    table = stability(of([[1.0, -2.0]]))
    assert table["sd"].isna().all() and table["z"].isna().all() and table["rank"].tolist() == [2, 1]


@given(st.integers(2, 8), st.integers(1, 12), st.integers(0, 1000))
def test_stability_is_that_of_pandas(runs, features, seed):
    values = np.random.default_rng(seed).standard_normal((runs, features))
    table, plain = stability(of(values)), pd.DataFrame(values)
    np.testing.assert_allclose(table["mean"], plain.mean(), atol=1e-12)
    np.testing.assert_allclose(table["sd"], plain.std(), atol=1e-12)
    assert table["rank"].tolist() == plain.mean().abs().rank(ascending=False).astype(int).tolist()
    reverse = stability(of(-values[::-1]))
    np.testing.assert_allclose(reverse["z"], -table["z"])
    assert reverse["same_sign"].tolist() == table["same_sign"].tolist()


def test_precision_by_hand(tmp_path):
    truth = {"diagnosis": [["b", "a", 1], ["c", "d", -1], ["b", "c", 1]], "age": []}
    (tmp_path / "truth.json").write_text(json.dumps({"connections": truth}))
    planted = planted_connections(tmp_path / "truth.json")
    assert planted == {("a", "b"): 1, ("c", "d"): -1, ("b", "c"): 1}
    values = np.array([[[4.0, -3.0, 0.1, -2.0, 0.2, -1.0]]])
    table = stability(Patterns(values, np.array([["", *pair] for pair in PAIRS]), ()))
    found = precision_at(table, planted, [0, 1, 2, 3, 4, 6, 7])
    assert found["k"].tolist() == [1, 2, 3, 4, 6]
    np.testing.assert_allclose(found["precision"], [1, 1 / 2, 2 / 3, 3 / 4, 3 / 6])
    # The pattern of b to c is negative, the planted change positive.
    np.testing.assert_allclose(found["with_sign"], [1, 1 / 2, 1 / 3, 2 / 4, 2 / 6])
    assert set(found["chance"]) == {0.5}


def test_a_region_with_itself_is_no_connection():
    pairs = np.array([["", "a", "a"], ["", "a", "b"], ["", "b", "b"]])
    table = stability(Patterns(np.array([[[9.0, 1.0, 9.0]]]), pairs, ()))
    found = precision_at(table, {("a", "b"): 1}, [1, 2, 3])
    assert found.to_dict("list") == {"k": [1], "precision": [1.0], "with_sign": [1.0], "chance": [1.0]}


def test_a_planted_connection_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"planted connection \('a', 'x'\) is not among the 1 connections"):
        precision_at(stability(of([[1.0]])), {("a", "x"): 1}, [1])


def simulated(folder, effect):
    """Pearson features of 160 simulated subjects, 40 of 190 connections moved; labels, and the file of the truth."""
    sites = {"a": SimulatedSite(volumes=100), "b": SimulatedSite(volumes=100)}
    simulate = SimulateSettings(
        subjects=160, seed=3, regions=20, grid=(8, 9, 8), voxel_size=18.0, effect=effect, effect_connections=40,
        age_connections=40, sex_connections=40, sites=sites,
    )  # fmt: skip
    settings, streams = CohortSettings(source="simulate", simulate=simulate), Streams(simulate.seed)
    atlas = simulate_atlas(simulate, streams)
    connectome = simulate_connectome(simulate, atlas, streams)
    people = simulate_subjects(settings, streams)
    series = {name: region_signals(simulate, connectome, person, streams) for name, person in people.items()}
    labels = np.array([people[name].diagnosis == "patient" for name in sorted(people)], dtype=np.int64)
    write_participants(folder, settings)
    features = connectivity({name: one.astype(np.float32) for name, one in series.items()}, FeatureSettings())
    return features, labels, atlas.names, folder / "truth.json"


@pytest.mark.parametrize("training", ["local", "central"])
def test_the_strongest_connections_of_ridge_are_the_planted_ones(tmp_path, training):
    found = {}
    for effect in (0.2, 0.0):
        features, labels, names, truth = simulated(tmp_path / f"{effect}", effect)
        inputs = method_inputs(160, features.shape[1], 2, diagnosis=labels, features=features)
        patterns = train_ridge(inputs, RidgeSettings(training=training), Run()).patterns
        path = write(tmp_path / f"{effect}.safetensors", patterns, regions=list(names))
        table = stability(read_patterns([path]))
        found[effect] = precision_at(table, planted_connections(truth), [10, 20, 40]).set_index("k")
    assert found[0.2]["chance"].iloc[0] == 40 / 190
    assert (found[0.2]["precision"] == found[0.2]["with_sign"]).all()
    assert found[0.2].loc[10, "precision"] == 1 and found[0.2].loc[40, "precision"] > 0.9
    # Ten draws of 40 in 190 hold more than six planted ones with a probability of .002.
    assert found[0.0].loc[10, "precision"] <= 0.6
