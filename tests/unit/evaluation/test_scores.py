"""From predictions to the results table, with every number worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve as sklearn_curve

from brainfed.evaluation import brier_scores, calibration_curve, mean_roc, score_runs, sensitivities, summarise
from brainfed.evaluation._scores import PREDICTION_COLUMNS, RUN_COLUMNS, gain_over_counterparts
from brainfed.runtime import UserError


def predictions(rows, variant="v", repeat=0, kind="probability"):
    """Predictions from (subject, institution, fold, label, score)."""
    table = pd.DataFrame(rows, columns=["subject", "institution", "fold", "label", "score"])
    return table.assign(variant=variant, repeat=repeat, kind=kind)[list(PREDICTION_COLUMNS)]


# Fold 0: A gets 2 of 2 right, B 1 of 4. Fold 1: A has one class and gets 1 of 1 right.
TABLE = predictions(
    [
        ("s1", "A", 0, 1, 0.9),
        ("s2", "A", 0, 0, 0.1),
        ("s3", "B", 0, 1, 0.8),
        ("s4", "B", 0, 1, 0.2),
        ("s5", "B", 0, 0, 0.7),
        ("s6", "B", 0, 0, 0.6),
        ("s7", "A", 1, 1, 0.6),
        ("s8", "B", 1, 0, 0.4),
        ("s9", "B", 1, 1, 0.3),
    ]
)


def value(table, column="value", **where):
    chosen = table
    for name, wanted in where.items():
        chosen = chosen.loc[chosen[name] == wanted]
    assert len(chosen) == 1
    return chosen[column].iloc[0]


def test_scopes_of_a_run_and_the_mean_over_institutions_without_the_undefined():
    runs = score_runs(TABLE)
    assert tuple(runs.columns) == RUN_COLUMNS
    first = {"metric": "accuracy", "fold": 0}
    assert value(runs, scope="institution:A", **first) == 1
    assert value(runs, scope="institution:B", **first) == pytest.approx(1 / 4)
    assert value(runs, scope="institution", **first) == pytest.approx((1 + 1 / 4) / 2)
    assert value(runs, scope="pooled", **first) == pytest.approx(3 / 6)
    second = {"metric": "auc", "fold": 1}
    assert np.isnan(value(runs, scope="institution:A", **second))
    assert value(runs, scope="institution:B", **second) == 0
    assert value(runs, scope="institution", **second) == 0
    assert value(runs, scope="pooled", **second) == pytest.approx(1 / 2)  # control .4 between patients .6 and .3


def test_margins_are_cut_at_zero():
    rows = [("s1", "A", 0, 1, 0.2), ("s2", "A", 0, 0, -0.1), ("s3", "A", 0, 0, 0.3)]
    runs = score_runs(predictions(rows, kind="margin"))
    assert value(runs, scope="pooled", metric="accuracy") == pytest.approx(2 / 3)


def test_row_order_does_not_matter():
    pd.testing.assert_frame_equal(score_runs(TABLE), score_runs(TABLE.sample(frac=1, random_state=3)))


def test_variants_stay_in_their_order():
    both = pd.concat([predictions([("s1", "A", 0, 1, 0.2)], variant=v, repeat=r) for v in "zb" for r in (1, 0)])
    runs = score_runs(both)
    assert runs[["variant", "repeat"]].drop_duplicates().to_numpy().tolist() == [["z", 0], ["z", 1], ["b", 0], ["b", 1]]


def runs_of(values, variant="v", scope="pooled", metric="accuracy"):
    """Runs from {(repeat, fold): value}."""
    rows = [(variant, r, f, scope, metric, float(x)) for (r, f), x in values.items()]
    return pd.DataFrame(rows, columns=list(RUN_COLUMNS))


def test_summary_by_hand():
    # Repeat means .6 and .8; four runs of mean .7 with squared deviations .04 + 0 + 0 + .04 over 3.
    summary = summarise(runs_of({(0, 0): 0.5, (0, 1): 0.7, (1, 0): 0.7, (1, 1): 0.9}))
    assert list(summary.columns) == [
        "variant", "scope", "metric", "mean", "sd", "sd_of_repeats", "runs", "undefined",
    ]  # fmt: skip
    row = summary.iloc[0]
    assert row["mean"] == pytest.approx(0.7) and row["sd"] == pytest.approx(np.sqrt(0.08 / 3))
    assert row["sd_of_repeats"] == pytest.approx(np.sqrt(0.02))
    assert (row["runs"], row["undefined"]) == (4, 0)


def test_undefined_runs_are_counted_without_moving_the_mean_and_one_run_has_no_spread():
    row = summarise(runs_of({(0, 0): 0.5, (0, 1): np.nan, (1, 0): 0.7})).iloc[0]
    assert row["mean"] == pytest.approx(0.6) and (row["runs"], row["undefined"]) == (2, 1)
    row = summarise(runs_of({(0, 0): 0.5})).iloc[0]
    assert row["mean"] == 0.5 and np.isnan([row["sd"], row["sd_of_repeats"]]).all()


def test_the_mean_over_institutions_counts_undefined_values():
    summary = summarise(score_runs(TABLE))
    assert value(summary, "undefined", scope="institution:A", metric="auc") == 1
    assert value(summary, "undefined", scope="institution", metric="auc") == 1
    assert value(summary, "undefined", scope="pooled", metric="auc") == 0
    assert value(summary, "runs", scope="institution", metric="auc") == 2


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_diverged_score_is_named(broken):
    table = TABLE.assign(score=TABLE["score"].where(TABLE["subject"] != "s5", broken))
    with pytest.raises(UserError, match=r"v gave (nan|inf) for subject s5 \(repeat 0, fold 0; 1 such rows\)"):
        score_runs(table)


def test_a_subject_scored_twice_is_named():
    with pytest.raises(UserError, match="v scores subject s1 twice in repeat 0"):
        score_runs(pd.concat([TABLE, TABLE.iloc[[0]].assign(fold=1)]))


def test_the_gain_over_a_counterpart_is_paired_by_run():
    local = pd.concat(
        [
            runs_of({(0, 0): 0.5, (0, 1): 0.6}, "local", "institution:A"),
            runs_of({(0, 0): 0.9, (0, 1): np.nan}, "local", "institution:B"),
        ]
    )
    federated = pd.concat(
        [
            runs_of({(0, 0): 0.6, (0, 1): 0.9}, "federated", "institution:A"),
            runs_of({(0, 0): 0.7, (0, 1): 0.8}, "federated", "institution:B"),
            runs_of({(0, 0): 0.7, (0, 1): 0.8}, "federated", "pooled"),
        ]
    )
    gain = gain_over_counterparts(pd.concat([federated, local]), {"federated": {"alone": "local"}})
    assert gain["variant"].tolist() == ["federated", "federated"]
    assert (gain["against"].tolist(), gain["twin"].tolist()) == (["alone", "alone"], ["local", "local"])
    assert gain["institution"].tolist() == ["A", "B"]
    assert gain["mean"].tolist() == pytest.approx([0.2, -0.2])
    assert gain["sd"].iloc[0] == pytest.approx(np.sqrt(0.02)) and gain["runs"].tolist() == [2, 1]


def test_each_counterpart_has_rows_of_its_own_and_other_methods_have_none():
    runs = pd.concat(
        [
            runs_of({(0, 0): value, (0, 1): value}, name, "institution:A")
            for name, value in {"federated": 0.7, "local": 0.5, "central": 0.8, "other": 0.9}.items()
        ]
    )
    gain = gain_over_counterparts(runs, {"federated": {"alone": "local", "pooled": "central"}})
    assert gain[["variant", "against"]].to_numpy().tolist() == [["federated", "alone"], ["federated", "pooled"]]
    assert gain["mean"].tolist() == pytest.approx([0.2, -0.1])


def test_a_gain_needs_the_runs_of_the_counterpart():
    with pytest.raises(UserError, match="localgcn has no runs"):
        gain_over_counterparts(runs_of({(0, 0): 0.5}, "v", "institution:A"), {"v": {"alone": "localgcn"}})


def test_calibration_by_hand():
    rows = [("s1", "A", 0, 0, 0.1), ("s2", "A", 0, 1, 0.3), ("s3", "A", 0, 1, 0.9), ("s4", "A", 0, 1, 1.0)]
    table = pd.concat([predictions(rows), predictions(rows, variant="svm", kind="margin")])
    curve = calibration_curve(table, bins=2)
    assert curve["variant"].tolist() == ["v", "v"]
    assert curve["mean_score"].tolist() == pytest.approx([0.2, 0.95])
    assert curve["fraction_patients"].tolist() == pytest.approx([0.5, 1.0])
    assert curve["subjects"].tolist() == [2, 2]
    assert curve["low"].tolist() == pytest.approx([0.0945, 0.3424], abs=1e-4)
    assert curve["high"].tolist() == pytest.approx([0.9055, 1.0], abs=1e-4)
    brier = brier_scores(table)
    assert brier["variant"].tolist() == ["v"]
    assert brier["brier"].iloc[0] == pytest.approx((0.1**2 + 0.7**2 + 0.1**2 + 0) / 4)


def test_a_score_on_an_edge_is_of_the_bin_below_as_in_scikit_learn():
    scores = [0.0, 0.2, 0.25, 0.5, 0.5, 0.75, 0.8, 1.0]
    rows = [(f"s{number}", "A", 0, number % 3 > 0, score) for number, score in enumerate(scores)]
    curve = calibration_curve(predictions(rows), bins=4)
    observed, mean = sklearn_curve([row[3] for row in rows], scores, n_bins=4)
    assert curve["fraction_patients"].tolist() == pytest.approx(observed.tolist())
    assert curve["mean_score"].tolist() == pytest.approx(mean.tolist())


def test_repeats_add_no_people_to_a_bin():
    rows = [("s1", "A", 0, 0, 0.1), ("s2", "A", 0, 1, 0.3), ("s3", "A", 0, 1, 0.9), ("s4", "A", 0, 1, 1.0)]
    once = calibration_curve(predictions(rows), bins=2)
    thrice = calibration_curve(pd.concat([predictions(rows, repeat=repeat) for repeat in range(3)]), bins=2)
    pd.testing.assert_frame_equal(once, thrice)


def test_sensitivity_at_a_specificity_by_hand():
    """Of ten controls two score above 0.75, where three of four patients are: a specificity of 0.8."""
    controls = [(f"c{number}", "A", 0, 0, score) for number, score in enumerate([0.9, 0.8, *np.linspace(0, 0.7, 8)])]
    patients = [(f"p{number}", "A", 0, 1, score) for number, score in enumerate([0.95, 0.85, 0.78, 0.1])]
    one_class = predictions([("s3", "A", 1, 1, 0.1)])
    found = sensitivities(pd.concat([predictions(controls + patients), one_class]), 0.8)
    assert found[["variant", "repeat", "fold"]].to_numpy().tolist() == [["v", 0, 0]]
    assert found["value"].iloc[0] == pytest.approx(0.75)


def test_mean_roc_of_a_perfect_and_a_reversed_run():
    perfect = predictions([("s1", "A", 0, 1, 0.9), ("s2", "A", 0, 0, 0.1)])
    reversed_ = predictions([("s1", "A", 0, 1, 0.1), ("s2", "A", 0, 0, 0.9)], repeat=1)
    one_class = predictions([("s3", "A", 1, 1, 0.1)])
    roc = mean_roc(pd.concat([perfect, reversed_, one_class]), points=5)
    np.testing.assert_allclose(roc.fpr, [0, 0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(roc.tpr, [0, 0.5, 0.5, 0.5, 0.5, 1])
    np.testing.assert_allclose(roc.sd, [0, *[np.sqrt(0.5)] * 4, 0])
    assert roc.runs == 2


def test_the_area_under_the_mean_roc_is_the_mean_auc_of_institutions_whose_scores_have_no_common_scale():
    """Local models may differ by any constant; pooled on one scale their AUC would be that of another question."""
    rng = np.random.default_rng(0)
    tables = []
    for repeat in range(4):
        label = rng.integers(0, 2, 200)
        rows = [
            (f"s{i}", "ABC"[i % 3], 0, y, y + rng.normal() + 50 * (i % 3 == repeat % 3)) for i, y in enumerate(label)
        ]
        tables.append(predictions(rows, repeat=repeat, kind="margin"))
    table = pd.concat(tables)
    roc = mean_roc(table, points=1001)
    runs = score_runs(table)
    auc = runs[runs["metric"] == "auc"].groupby("scope")["value"].mean()
    assert np.trapezoid(roc.tpr, roc.fpr) == pytest.approx(auc["institution"], abs=1e-3)
    assert auc["pooled"] < auc["institution"] - 0.1


def test_sensitivity_is_the_mean_over_institutions_each_at_its_own_threshold():
    """B's scores lie 10 above A's: one threshold for both would find none of A's patients."""
    one = [("c1", "A", 0, 0, 0.1), ("c2", "A", 0, 0, 0.3), ("p1", "A", 0, 1, 0.4), ("p2", "A", 0, 1, 0.5)]
    two = [(f"{name}b", "B", fold, label, score + 10) for name, _, fold, label, score in one[:-1]]
    worse = [("p2b", "B", 0, 1, 10.0)]
    single = [("p3", "C", 0, 1, 0.9)]
    assert sensitivities(predictions(one + two + worse + single), 1.0)["value"].tolist() == [0.75]


def test_no_run_has_a_curve():
    roc = mean_roc(predictions([("s3", "A", 1, 1, 0.1)]))
    assert roc.runs == 0 and np.isnan(roc.tpr).all()
