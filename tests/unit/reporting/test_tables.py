"""The report's tables and counts on hand-made input."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.quality import reason_kind
from brainfed.imaging.fitted import harmonised
from brainfed.reporting import Scored, ShownVariant, site_table
from brainfed.reporting._outline import attrition, duplicate_groups
from brainfed.reporting.tables import (
    difference_table,
    read_costs,
    read_exchanges,
    readable,
    readable_bytes,
    readable_seconds,
    score_rows,
    without_effect,
)
from brainfed.runtime import write_arrays
from support.reports.report_experiments import crossing

METRICS = ("accuracy", "balanced_accuracy", "auc", "precision", "recall", "specificity", "f1")
FEDGCN = ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated", {"noise": 0.01, "rounds": 10})
SHUFFLED = ShownVariant("fedgcn-shuffled", "fedgcn", "FedGCN", "federated", {"noise": 0.0, "rounds": 10})
RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear")


def summary_of(means):
    return pd.DataFrame(
        [
            (variant, scope, metric, mean, 0.05, np.nan if variant == "fedgcn" else 0.012, 10, 0)
            for variant, mean in means.items()
            for scope in ("institution", "pooled")
            for metric in METRICS
        ],
        columns=["variant", "scope", "metric", "mean", "sd", "sd_of_repeats", "runs", "undefined"],
    )


def scored_of(means, sd=0.05):
    """Ten runs a variant, metric and scope, around its mean: the interval of sd 0.05 is wide, of 0.001 narrow."""
    wobble = sd * np.array([-1.0, 1.0] * 5)
    return Scored(
        pd.DataFrame(
            [
                (variant, number // 5, number % 5, scope, metric, mean + reach)
                for variant, mean in means.items()
                for scope in ("institution", "pooled")
                for metric in METRICS
                for number, reach in enumerate(wobble)
            ],
            columns=["variant", "repeat", "fold", "scope", "metric", "value"],
        ),
        0.25,
    )


def test_the_score_table_goes_by_family_and_marks_the_best():
    means = {"fedgcn": 0.61, "ridge-central": 0.7}
    rows = score_rows(summary_of(means), [FEDGCN, RIDGE], "institution", scored_of(means))
    assert [row.variant.name for row in rows] == ["ridge-central", "fedgcn"]
    assert ([cell.text for cell in rows[0].cells], rows[0].cells[0].note) == (["0.70"] * 7, ".05 · .01")
    assert rows[1].cells[0].note == ".05 · –"
    assert [cell.marked for cell in rows[0].cells] == [True, True, True, False, False, False, False]
    assert not any(cell.marked for cell in rows[1].cells)


def with_features(folder, name, sites, harmonise="combat", views=False):
    """A ridge whose features ComBat harmonised in these sites of each institution, by the file's own account."""
    path, account = folder / f"{name}.safetensors", {"harmonised": sites} if sites is not None else {}
    write_arrays(path, {"features": np.zeros((1, 1))}, {"views": [{}, account]} if views else account)
    settings = {"views": {"a": {}, "b": {"harmonise": harmonise}}} if views else {"harmonise": harmonise}
    return replace(RIDGE, name=name, feature_files=(str(path),), stages={"features": settings})


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("left_out", [False, True])
def test_combat_that_compared_no_two_sites_is_named_beside_the_scores(tmp_path, left_out, views):
    site = np.array(["a", "b"] * 6)
    institution = site if left_out else np.array(["one"] * 12)
    values = np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32)
    made = harmonised(values, site, institution, np.ones(12, dtype=bool), {})
    assert (made.features == values).all() == left_out
    even = with_features(tmp_path, "ridge-central-even", made.sites, views=views)
    plain = with_features(tmp_path, "ridge-central", None, "none")
    scored = scored_of({plain.name: 0.6, even.name: 0.6 if left_out else 0.7})
    expected = ["ComBat changed nothing for Ridge (central even): no institution has two sites"] if left_out else []
    for order in ([plain, even], [even, plain]):
        found = without_effect(order, scored)
        assert [one.partition(" with enough")[0] for one in found] == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_setting_that_changes_no_score_is_named(seed):
    draw = np.random.default_rng(seed)
    values = draw.integers(3, size=4)
    variants = [replace(RIDGE, name=f"ridge-{n}", settings={"a": int(n), "b": 1}) for n in range(4)]
    found = without_effect(variants, scored_of({f"ridge-{n}": 0.5 + values[n] / 10 for n in range(4)}))
    assert len(found) == 4 - len(set(values))
    assert all("has the scores of Ridge" in one and "every run: a changed nothing" in one for one in found)
    assert without_effect([FEDGCN, RIDGE], scored_of({FEDGCN.name: 0.6, RIDGE.name: 0.6})) == []


def test_one_repeat_shows_no_spread_of_repeats_and_a_narrow_interval_a_third_decimal():
    rows = score_rows(summary_of({"fedgcn": 0.61}), [FEDGCN], "institution", scored_of({"fedgcn": 0.61}))
    assert rows[0].cells[0].note == ".05"
    rows = score_rows(summary_of({"fedgcn": 0.61}), [FEDGCN], "institution", scored_of({"fedgcn": 0.61}, 0.001))
    assert rows[0].cells[0].text == "0.610"


def test_the_tests_table_has_both_tests_and_counts_significant_differences():
    tests = pd.DataFrame(
        [("fedgcn", "auc", "institution", -0.02, -0.05, 0.01, -0.4, 0.03, 0.2, 0.4),
         ("fedgcn-shuffled", "auc", "institution", -0.2, -0.3, -0.1, -2.0, 1e-9, 1e-4, 2e-4)],
        columns=["variant", "metric", "scope", "difference", "ci_low", "ci_high", "effect_size", "p_paper",
                 "p_corrected", "p_holm"],
    )  # fmt: skip
    table = difference_table("", tests, [RIDGE, FEDGCN, SHUFFLED], "auc", "institution", 10)
    rows = table.rows
    assert [cell.text for cell in rows[0].cells] == ["−0.02", "−0.40", ".030", ".200", ".400"]
    assert rows[0].cells[0].note == "[−0.05, +0.01]"
    assert [cell.marked for cell in rows[0].cells] == [False, False, True, False, False]
    assert [cell.text for cell in rows[1].cells][2:] == ["< .001", "< .001", "< .001"]
    assert (table.by_paper, table.by_holm, table.compared) == (2, 1, 2)


def people():
    return pd.DataFrame(
        {
            "subject": list("abcdef"),
            "site": ["X", "X", "Y", "X", "Y", "X"],
            "diagnosis": pd.array([1, 0, 1, None, 0, 1], dtype="Int8"),
            "included": [True, True, True, False, True, False],
            "twin_group": list("aacdef"),
            "reason": ["", "", "", "diagnosis missing", "", "Subject f: 20 time points, expected 50"],
        }
    )


def test_attrition_counts_kinds_of_reasons():
    counted = attrition(people())
    assert (counted.listed, counted.included) == (6, 4)
    assert dict(counted.left_out) == {"diagnosis missing": 1, "series unusable (damaged, short or not finite)": 1}
    assert sum(count for _, count in counted.left_out) == counted.listed - counted.included


def test_a_kind_of_reason_names_nobody():
    assert reason_kind("no series") == "no series"
    assert reason_kind("series file absent") == "series file absent"
    assert reason_kind("12 regions without signal") == "regions without signal"
    assert "sub-07" not in reason_kind("Subject sub-07, scan.nii.gz: damaged")


def test_sites_are_in_order_of_size_and_duplicates_are_found():
    table = site_table(people())
    assert table.to_dict("list") == {"site": ["X", "Y"], "patients": [1, 1], "controls": [1, 1]}
    assert duplicate_groups(people()) == [["a", "b"]]


def variant_with(tmp_path, rows, family="federated"):
    (tmp_path / "cost.json").write_text(json.dumps({"counts": {"parameters": 10, "rounds": 10}, "crossings": rows}))
    for repeat, seconds in enumerate((2.0, 4.0)):
        timing = {"seconds": seconds, "peak_memory_mb": 100 * (repeat + 1), "device": "cpu"}
        (tmp_path / f"timing-{repeat}.json").write_text(json.dumps(timing))
    timings = tuple(str(tmp_path / f"timing-{repeat}.json") for repeat in range(2))
    return ShownVariant("x", "x", "X", family, {"noise": 0.01}, (str(tmp_path / "cost.json"),), timings)


def test_a_tensor_with_a_subject_axis_flags_its_method(tmp_path):
    rows = [crossing("features", "subjects x features"), crossing("model", "features")]
    (found,) = read_exchanges([variant_with(tmp_path, rows)])
    assert found.patient_level == ["features"]


def test_nodes_and_edges_of_single_graphs_flag_their_method(tmp_path):
    rows = [crossing("edges", "edges x ends"), crossing("labels", "subjects"), crossing("nodes", "nodes x features")]
    (found,) = read_exchanges([variant_with(tmp_path, rows)])
    assert found.patient_level == ["edges", "labels", "nodes"]


def test_every_stage_that_sends_has_a_row_and_says_to_whom(tmp_path):
    rows = [
        crossing("tangent-reference", "regions x other-regions", stage="features", to="institutions"),
        crossing("features", "subjects x features", stage="graph", to="centre"),
        crossing("labels", "subjects", stage="classifier", to="centre", size=120),
    ]
    found = read_exchanges([variant_with(tmp_path, rows)])
    assert [(one.stage, one.to, one.volume("upload")) for one in found] == [
        ("features", "the other institutions", 1000), ("graph", "one centre", 1000), ("classifier", "one centre", 120)
    ]  # fmt: skip
    assert [bool(one.patient_level) for one in found] == [False, True, True]


def test_a_method_that_sends_nothing_has_a_row_that_says_so(tmp_path):
    (found,) = read_exchanges([variant_with(tmp_path, [])])
    assert (found.stage, found.crossings, found.to) == ("classifier", (), "")


def test_weights_alone_do_not(tmp_path):
    rows = [crossing("weight-0", "features x hidden-0"), crossing("weight-1", "hidden-0 x classes"),
            crossing("bias-0", "hidden-0", "download", 7)]  # fmt: skip
    (found,) = read_exchanges([variant_with(tmp_path, rows)])
    assert not found.patient_level and found.kinds == ["weight (2 tensors)", "bias"]
    assert (found.volume("upload"), found.volume("download"), found.noise) == (2000, 7, 0.01)


@pytest.mark.parametrize(("family", "rounds"), [("federated", 10), ("graph", 0)])
def test_cost_is_the_mean_time_and_the_largest_memory(tmp_path, family, rounds):
    (found,) = read_costs([variant_with(tmp_path, [], family)])
    assert (found.seconds, found.memory, found.devices, found.rounds) == (3.0, 200.0, ("cpu",), rounds)


def test_cost_has_the_preparation_and_the_memory_of_the_gpu(tmp_path):
    for name, timing in {
        "fold-0": {"seconds": 3.0, "peak_memory_mb": 700},
        "fold-1": {"seconds": 5.0, "peak_memory_mb": 600},
        "fused": {"seconds": 2.0, "peak_memory_mb": 10, "peak_gpu_memory_mb": 512.0},
    }.items():
        (tmp_path / name).write_text(json.dumps(timing | {"device": "cpu"}))
    prepared = {"features": [], "graph": [str(tmp_path / "fold-0"), str(tmp_path / "fold-1")]}
    prepared["fusing"] = [str(tmp_path / "fused")]
    variant = variant_with(tmp_path, [])
    (alone,) = read_costs([variant])
    assert alone.preparation == {} and np.isnan([alone.preparation_seconds, alone.gpu_memory]).all()
    (found,) = read_costs([replace(variant, preparation=prepared)])
    # Two repeats share the 8 s of the folds' graphs and the 2 s of one fusing.
    assert found.preparation == {"graph": 4.0, "fusing": 1.0}
    assert (found.preparation_seconds, found.memory, found.gpu_memory) == (5.0, 700.0, 512.0)


def test_readable_numbers():
    assert [readable(value) for value in (7, 999, 474594, 127543680000)] == ["7", "999", "474.6 k", "127.5 G"]
    assert [readable_bytes(value) for value in (96, 57_000_000)] == ["96 B", "57.0 MB"]
    assert [readable_seconds(value) for value in (8.26, 725, 12000)] == ["8.3 s", "12 min 05 s", "3 h 20 min"]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("fedgcn", "FedGCN"),
        ("fedgcn-no-noise", "FedGCN (no noise)"),
        ("fedgcn-k5", "FedGCN (k = 5)"),
        ("fedgcn-k-k5", "FedGCN (k = 5)"),
        ("fedgcn-wide-hidden8x4", "FedGCN (wide, hidden = 8 \u00d7 4)"),
        ("fedgcn-noise0.01-k10", "FedGCN (noise = 0.01, k = 10)"),
        ("fedgcn-noise1e-05", "FedGCN (noise = 1e-05)"),
        ("fedgcn-clip-off", "FedGCN (clip = off)"),
        ("fedgcn-scope-global-cut", "FedGCN (scope = global cut)"),
        ("fedgcn-phenotypes-sex-age-k5", "FedGCN (phenotypes = sex age, k = 5)"),
        ("fedgcn-age-gap2", "FedGCN (age gap = 2)"),
        ("width-hidden8x4", "width (hidden = 8 \u00d7 4)"),
        ("fedgcn-no-bfs", "FedGCN (no BFS)"),
        ("fedgcn-knn-rfe", "FedGCN (kNN RFE)"),
        ("fedgcn-fl-g-d", "FedGCN (FL-G-D)"),
        ("fedgcn-alpha0.01-beta5", "FedGCN (\u03b1 = 0.01, \u03b2 = 5)"),
        ("fedgcn-federated-generator", "FedGCN (federated = generator)"),
        ("fedgcn-hidden-fraction0.2", "FedGCN (hidden fraction = 0.2)"),
        ("plain", "plain"),
    ],
)
def test_the_title_of_a_variant(name, title):
    settings = {"noise": 0.01, "hidden": [64, 32], "clip": True}
    assert ShownVariant(name, "fedgcn", "FedGCN", "federated", settings).title == title
