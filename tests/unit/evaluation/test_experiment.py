"""From prediction files to the five tables of an experiment."""

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation import compare_with_reference, holm, ratio_of_splits, read_predictions, score_experiment
from brainfed.evaluation import test_train_ratio as ratio
from brainfed.evaluation._scores import GAIN_COLUMNS
from brainfed.evaluation._statistics import TEST_COLUMNS
from brainfed.runtime import UserError, write_table

RUNS = [("perfect", 0), ("perfect", 1), ("guessing", 0), ("guessing", 1)]


def predictions(variant, repeat):
    """Eight subjects, two institutions, two folds of four; `guessing` calls everybody a patient."""
    label = np.array([1, 0, 1, 0, 1, 0, 1, 0])
    return pd.DataFrame(
        {
            "subject": [f"s{number}" for number in range(8)],
            "institution": ["east"] * 4 + ["west"] * 4,
            "fold": np.array([0, 0, 1, 1] * 2) if repeat == 0 else np.array([1, 1, 0, 0] * 2),
            "score": label.astype(float) if variant == "perfect" else 0.9,
            "kind": "probability",
            "label": label,
        }
    )


@pytest.fixture
def splits(tmp_path):
    """What the predictions were made on."""
    paths = [str(tmp_path / f"split-{repeat}.parquet") for repeat in (0, 1)]
    for repeat, path in enumerate(paths):
        write_table(path, predictions("perfect", repeat)[["subject", "institution", "fold"]])
    return paths


@pytest.fixture
def files(tmp_path, splits):
    paths = []
    for variant, repeat in RUNS:
        paths.append(str(tmp_path / f"{variant}-{repeat}.parquet"))
        write_table(paths[-1], predictions(variant, repeat))
    return paths


COUNTERPARTS = {"perfect": {"alone": "guessing"}}


def tables(tmp_path, files, counterparts=COUNTERPARTS, reference="guessing", **options):
    outputs = {name: str(tmp_path / f"{name}.tsv") for name in ("summary", "runs", "tests", "gain", "confusion")}
    splits = [str(tmp_path / f"split-{repeat}.parquet") for repeat in (0, 1)]
    score_experiment(RUNS, files, splits, counterparts=counterparts, reference=reference, outputs=outputs, **options)
    return {name: pd.read_csv(path, sep="\t") for name, path in outputs.items()}


def row(table, **values):
    found = table.loc[np.logical_and.reduce([table[name] == value for name, value in values.items()])]
    assert len(found) == 1
    return found.iloc[0]


def test_predictions_know_their_variant_and_repeat(files):
    together = read_predictions(RUNS, files)
    assert (len(together), list(together["variant"].unique())) == (32, ["perfect", "guessing"])
    assert together.groupby(["variant", "repeat"]).size().tolist() == [8, 8, 8, 8]


def test_the_summary_equals_a_count_by_hand(tmp_path, files):
    summary = tables(tmp_path, files)["summary"]
    for scope in ("pooled", "institution"):
        assert row(summary, variant="perfect", scope=scope, metric="accuracy")["mean"] == 1.0
        assert row(summary, variant="perfect", scope=scope, metric="auc")["mean"] == 1.0
        guess = row(summary, variant="guessing", scope=scope, metric="accuracy")
        assert (guess["mean"], guess["sd"], guess["runs"]) == (0.5, 0.0, 4)
        assert row(summary, variant="guessing", scope=scope, metric="recall")["mean"] == 1.0
        assert row(summary, variant="guessing", scope=scope, metric="specificity")["mean"] == 0.0


def test_every_run_is_in_the_runs_table(tmp_path, files):
    runs = tables(tmp_path, files)["runs"]
    accuracy = runs[(runs["metric"] == "accuracy") & (runs["scope"] == "institution:east")]
    assert len(accuracy) == 8
    assert set(zip(accuracy["repeat"], accuracy["fold"], strict=True)) == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_every_variant_is_tested_against_the_reference_in_both_scopes(tmp_path, files):
    tests = tables(tmp_path, files)["tests"]
    assert (list(tests.columns), set(tests["variant"])) == ([*TEST_COLUMNS, "scope"], {"perfect"})
    assert set(zip(tests["metric"], tests["scope"], strict=True)) == {
        (metric, scope) for metric in ("accuracy", "auc") for scope in ("institution", "pooled")
    }
    accuracy = row(tests, metric="accuracy", scope="pooled")
    assert (accuracy["reference"], accuracy["difference"], accuracy["p_holm"]) == ("guessing", 0.5, 0.0)


def test_pooled_subjects_of_several_data_sets_are_not_tested(tmp_path, files):
    found = tables(tmp_path, files, pooled=False)
    assert set(found["tests"]["scope"]) == {"institution"}
    assert len(found["tests"]) == 2 and "pooled" in set(found["runs"]["scope"])


def test_holm_counts_every_metric_and_scope_as_one_family(tmp_path, files):
    """One variant, two metrics, two scopes: four tests in one family, not four families of one."""
    wrong = predictions("guessing", 0)
    wrong.loc[0, "score"] = 0.1
    write_table(files[2], wrong)
    tests = tables(tmp_path, files)["tests"]
    assert len(tests) == 4 and (tests["p_corrected"] > 0).any()
    assert tests["p_holm"].tolist() == pytest.approx(holm(tests["p_corrected"].to_numpy()).tolist())
    assert (tests["p_holm"] > tests["p_corrected"]).any()


def test_the_gain_is_measured_against_the_counterpart(tmp_path, files):
    gain = tables(tmp_path, files)["gain"]
    assert set(zip(gain["variant"], gain["against"], gain["twin"], strict=True)) == {("perfect", "alone", "guessing")}
    east = row(gain, variant="perfect", institution="east", metric="accuracy")
    assert (east["mean"], east["sd"], east["runs"]) == (0.5, 0.0, 4)


def test_without_a_counterpart_the_gain_table_is_empty(tmp_path, files):
    gain = tables(tmp_path, files, counterparts={})["gain"]
    assert list(gain.columns) == list(GAIN_COLUMNS) and gain.empty


def test_the_ratio_of_tested_to_training_subjects_is_that_of_the_folds(files):
    assert ratio(read_predictions(RUNS, files)) == 1.0
    fifths = pd.DataFrame({"variant": "a", "repeat": 0, "fold": np.arange(20) % 5})
    assert ratio(fifths) == pytest.approx(0.25)


def test_the_ratio_of_folds_is_the_same_in_the_splits(tmp_path, files, splits):
    people = tmp_path / "participants.parquet"
    write_table(people, predictions("perfect", 0).rename(columns={"label": "diagnosis"})[["subject", "diagnosis"]])
    assert ratio_of_splits(splits, str(people)) == ratio(read_predictions(RUNS, files))


def test_the_ratio_of_one_test_set_is_given_or_unknown_and_not_counted(tmp_path, files):
    assert np.isnan(ratio(pd.DataFrame({"variant": "a", "repeat": [0, 0, 1], "fold": 0})))
    runs = tables(tmp_path, files)["runs"]
    tested = runs[runs["fold"] == 0]
    single = compare_with_reference(tested[tested["repeat"] == 0], "guessing", 1 / 8)
    assert single["difference"].notna().all() and single[["p_corrected", "p_paper", "p_holm"]].isna().all().all()


def test_the_ratio_of_the_split_widens_the_interval(tmp_path, files):
    """Four are tested; four of the other fold train, and beside them 28 or 4 that no fold tests, or none."""
    wrong = predictions("guessing", 0)
    wrong.loc[0, "score"] = 0.1
    write_table(files[2], wrong)
    people, widths = tmp_path / "participants.parquet", []
    for others in (28, 4, None):
        ids = [*(f"s{number}" for number in range(8)), *(f"t{number:02d}" for number in range(others or 0))]
        write_table(people, pd.DataFrame({"subject": ids, "diagnosis": 1}))
        for repeat in (0, 1):
            beside = pd.DataFrame({"subject": ids[8:], "institution": "east", "fold": -1})
            drawn = predictions("perfect", repeat)[["subject", "institution", "fold"]]
            write_table(tmp_path / f"split-{repeat}.parquet", pd.concat([drawn, beside], ignore_index=True))
        held = None if others is None else str(people)
        found = row(tables(tmp_path, files, participants=held)["tests"], metric="accuracy", scope="pooled")
        widths.append((found["ci_high"] - found["ci_low"]) ** 2)
    quarter = 1 / 4
    assert widths[0] / widths[1] == pytest.approx((quarter + 1 / 8) / (quarter + 1 / 2))
    assert widths[2] / widths[1] == pytest.approx((quarter + 1) / (quarter + 1 / 2))


def test_a_score_that_is_not_finite_names_variant_and_subject(tmp_path, files):
    broken = predictions("perfect", 1)
    broken.loc[5, "score"] = np.nan
    write_table(files[1], broken)
    with pytest.raises(UserError, match="perfect gave nan for subject s5"):
        tables(tmp_path, files)


def test_a_damaged_prediction_file_is_named(tmp_path, files):
    write_table(files[2], predictions("guessing", 0).drop(columns="score"))
    with pytest.raises(UserError, match=r"guessing-0\.parquet.*'score'"):
        tables(tmp_path, files)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.assign(fold=1 - table["fold"]),
        lambda table: table.iloc[1:],
        lambda table: table.assign(institution=table["institution"].iloc[::-1].to_numpy()),
    ],
    ids=["fold", "subject", "institution"],
)
def test_predictions_of_another_split_are_refused(tmp_path, files, change):
    write_table(files[3], change(predictions("guessing", 1)))
    with pytest.raises(UserError, match=r"guessing, repeat 1: .*split-1\.parquet"):
        tables(tmp_path, files)


def test_predictions_may_stand_in_any_order(tmp_path, files):
    expected = tables(tmp_path, files)
    write_table(files[0], predictions("perfect", 0).iloc[::-1])
    found = tables(tmp_path, files)
    for name, table in expected.items():
        pd.testing.assert_frame_equal(found[name], table)
