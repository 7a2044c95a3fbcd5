"""The table of the strongest features: ranks within a view, shares by hand, places, planted connections."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainfed.evaluation import STRONGEST_COLUMNS, planted_connections, planted_table, strongest_table
from brainfed.evaluation import _patterns as patterns
from brainfed.evaluation._patterns import Patterns, precision_at, stability

PAIRS = [["a", "b"], ["a", "c"], ["b", "c"]]


def of(values, names=PAIRS, classes=()):
    values = np.asarray(values, dtype=np.float64)
    values = values[:, None] if values.ndim == 2 else values
    return Patterns(values, np.array([["", *pair] for pair in names]), classes)


def test_the_table_by_hand(monkeypatch):
    monkeypatch.setattr(patterns, "FEWEST", 1)
    places = {"a": np.array([-1.0, 2, 3]), "b": np.array([4.0, 5, 6])}
    table = strongest_table("ridge", of([[1, -2, 0], [3, -2.5, 0]]), places)
    assert tuple(table.columns) == STRONGEST_COLUMNS
    assert table[["rank", "from", "to"]].to_numpy().tolist() == [[1, "a", "c"], [2, "a", "b"], [3, "b", "c"]]
    assert table["mean"].tolist() == [-2.25, 2, 0]
    # The first run's strongest is a to c, the second's a to b.
    assert table["among_strongest"].tolist() == [0.5, 0.5, 0]
    assert (table["k"] == 1).all() and (table["features"] == 3).all()
    assert table.loc[1, ["from_x", "from_y", "from_z", "to_x"]].tolist() == [-1, 2, 3, 4]
    assert np.isnan(table.loc[0, "to_x"])
    assert set(table["variant"]) == {"ridge"} and set(table["class"]) == {""}


def test_a_feature_that_a_run_does_not_select_is_not_among_its_strongest():
    nan = np.nan
    table = strongest_table("x", of([[1, nan, nan], [nan, 2, 0]]), {}).set_index(["from", "to"])
    assert table["among_strongest"].to_dict() == {("a", "b"): 0.5, ("a", "c"): 0.5, ("b", "c"): 0.0}


def test_every_view_and_class_has_its_own_ranks():
    names = np.array([["fmri", "a", "b"], ["fmri", "a", "c"], ["thickness", "x", "x"], ["thickness", "y", "y"]])
    values = np.array([[[1.0, 2, 300, 200], [2, 1, 100, 200]]])
    table = strongest_table("x", Patterns(values, names, ("CN", "AD")), {})
    assert table[["class", "view", "rank", "from"]].to_numpy().tolist() == [
        ["CN", "fmri", 1, "a"], ["CN", "fmri", 2, "a"], ["CN", "thickness", 1, "x"], ["CN", "thickness", 2, "y"],
        ["AD", "fmri", 1, "a"], ["AD", "fmri", 2, "a"], ["AD", "thickness", 1, "y"], ["AD", "thickness", 2, "x"],
    ]  # fmt: skip
    planted = planted_table("x", Patterns(values[:, :1], names, ()), {("a", "c"): 1})
    assert planted[["view", "k", "precision", "planted", "connections"]].to_numpy().tolist() == [["fmri", 1, 1.0, 1, 2]]


@given(st.integers(1, 6), st.integers(21, 60), st.integers(0, 1000))
def test_shares_are_those_of_a_loop(runs, width, seed):
    values = np.random.default_rng(seed).standard_normal((runs, width))
    names = [[f"r{place:02d}", "z"] for place in range(width)]
    table = strongest_table("x", of(values, names), {}).set_index("from")
    expected = dict.fromkeys([first for first, _ in names], 0.0)
    for run in values:
        for place in sorted(range(width), key=lambda place: -abs(run[place]))[:20]:
            expected[names[place][0]] += 1 / runs
    assert table["among_strongest"].to_dict() == pytest.approx(expected)
    assert table["among_strongest"].sum() == pytest.approx(20)


def test_only_the_strongest_stay(monkeypatch):
    monkeypatch.setattr(patterns, "KEPT", 2)
    assert strongest_table("x", of([[1, -2, 3]]), {})["mean"].tolist() == [3, -2]


def test_planted_connections_are_scored_on_all_features(tmp_path):
    (tmp_path / "truth.json").write_text('{"connections": {"diagnosis": [["c", "a", 1], ["b", "a", 1]]}}')
    planted = planted_connections(tmp_path / "truth.json")
    patterns = of([[1, -2, 3]])
    table = planted_table("x", patterns, planted)
    expected = precision_at(stability(patterns), planted, [2])
    assert table["k"].tolist() == [2]
    assert table["precision"].tolist() == expected["precision"].tolist() == [0.5]
    assert (table["with_sign"].tolist(), table["chance"].tolist()) == ([0.0], [2 / 3])
    assert planted_table("x", patterns, {}).empty
