"""Corrected tests and Holm's correction: by hand, equal to other libraries, and where nothing is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from brainfed.evaluation import compare, corrected_t_test, holm, paired_difference
from brainfed.evaluation._statistics import TEST_COLUMNS, paired_effect_size, two_sample_t_test
from brainfed.runtime import UserError

# Mean 2, variance 1 (ddof 1), J = 3.
DIFFERENCES = np.array([1.0, 2.0, 3.0])


def test_corrected_t_by_hand():
    # Standard error sqrt((1/3 + 1/4) * 1) = sqrt(7/12) = 0.763763; t = 2.618615; t_.975(2) = 4.302653.
    found = corrected_t_test(DIFFERENCES, 0.25)
    assert found.difference == 2 and found.t == pytest.approx(2.618615, abs=1e-6)
    # Student's t with 2 degrees of freedom: p = 1 - t / sqrt(t^2 + 2).
    assert found.p == pytest.approx(1 - 2.618615 / np.sqrt(2.618615**2 + 2), abs=1e-6)
    assert found.ci_low == pytest.approx(2 - 4.302653 * 0.763763, abs=1e-5)
    assert found.ci_high == pytest.approx(2 + 4.302653 * 0.763763, abs=1e-5)


def test_without_the_correction_it_is_the_paired_t_test():
    expected = stats.ttest_1samp(DIFFERENCES, 0)
    found = corrected_t_test(DIFFERENCES, 0.0)
    assert found.t == pytest.approx(expected.statistic) and found.p == pytest.approx(expected.pvalue)


def test_the_interval_holds_zero_exactly_when_p_exceeds_five_percent():
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = corrected_t_test(rng.normal(0.5, 1, 25), 0.25)
        assert (found.ci_low < 0 < found.ci_high) == (found.p > 0.05)


def test_on_runs_that_share_their_training_subjects_the_correction_keeps_its_level():
    # 25 runs whose differences correlate by rho = n_test / (n_test + n_train) = 0.2, true mean 0.
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(2000, 1)) * np.sqrt(0.2) + rng.normal(size=(2000, 25)) * np.sqrt(0.8)
    corrected = np.mean([corrected_t_test(row, 0.25).p < 0.05 for row in shared])
    plain = np.mean([corrected_t_test(row, 0.0).p < 0.05 for row in shared])
    assert 0.03 < corrected < 0.07 and plain > 0.3


def test_identical_runs_do_not_differ():
    found = corrected_t_test(np.zeros(5), 0.25)
    assert (found.t, found.p, found.ci_low, found.ci_high) == (0, 1, 0, 0)
    assert two_sample_t_test(np.full(5, 0.7), np.full(5, 0.7)) == (0, 1)
    assert paired_effect_size(np.zeros(5)) == 0


def test_a_constant_difference_is_certain():
    found = corrected_t_test(np.full(4, -0.5), 0.25)
    assert (found.t, found.p, found.ci_low, found.ci_high) == (-np.inf, 0, -0.5, -0.5)
    assert paired_effect_size(np.full(4, -0.5)) == -np.inf


@pytest.mark.parametrize("values", [[], [0.3]])
def test_fewer_than_two_runs_cannot_be_tested(values):
    found = corrected_t_test(np.array(values), 0.25)
    assert np.isnan([found.t, found.p, found.ci_low, found.ci_high, paired_effect_size(np.array(values))]).all()
    assert np.isnan(two_sample_t_test(np.array(values), np.array([1.0, 2.0]))).all()


def test_two_sample_t_by_hand():
    # Means 2 and 4, pooled variance 1: t = -2 / sqrt(1/3 + 1/3) = -2.449490 with 4 degrees of freedom.
    t, p = two_sample_t_test(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0]))
    assert t == pytest.approx(-2.449490, abs=1e-6) and p == pytest.approx(0.070484, abs=1e-6)
    expected = stats.ttest_ind([0.1, 0.4, 0.3], [0.2, 0.9])
    assert two_sample_t_test(np.array([0.1, 0.4, 0.3]), np.array([0.2, 0.9])) == pytest.approx(tuple(expected))


def test_effect_size_by_hand():
    assert paired_effect_size(np.array([1.0, 2.0, 3.0])) == 2
    assert paired_effect_size(np.array([-1.0, 1.0])) == 0


def runs(**values):
    """Runs of several variants; two folds a repeat."""
    rows = [
        (variant, i // 2, i % 2, "pooled", "accuracy", x) for variant, xs in values.items() for i, x in enumerate(xs)
    ]
    return pd.DataFrame(rows, columns=["variant", "repeat", "fold", "scope", "metric", "value"])


def test_compare_fills_the_contract():
    table = runs(fedgcn=[0.6, 0.7, 0.8, 0.7], local=[0.5, 0.5, 0.5, 0.5], same=[0.5, 0.5, 0.5, 0.5])
    other = table.assign(scope="institution", value=0.0)
    found = compare(pd.concat([table, other]), "local", "accuracy", "pooled", 0.25)
    assert (tuple(found.columns), found["variant"].tolist()) == (TEST_COLUMNS, ["fedgcn", "same"])
    assert set(found["reference"]) == {"local"}
    first, second = found.iloc[0], found.iloc[1]
    assert first["difference"] == pytest.approx(0.2)
    # Variance of .1 .2 .3 .2 is .02 / 3; standard error sqrt((1/4 + 1/4) * .02 / 3) = .0577350.
    assert first["t_corrected"] == pytest.approx(0.2 / 0.0577350, rel=1e-5)
    assert first["effect_size"] == pytest.approx(0.2 / np.sqrt(0.02 / 3))
    assert first["t_paper"] == pytest.approx(0.2 / np.sqrt((0.02 / 3) / 4))
    assert first["p_holm"] == pytest.approx(2 * first["p_corrected"])
    assert (second["t_corrected"], second["p_corrected"], second["p_holm"]) == (0, 1, 1)


def test_runs_are_paired_by_repeat_and_fold_and_undefined_ones_left_out():
    table = runs(fedgcn=[0.6, 0.7, np.nan, 0.9], local=[0.5, np.nan, 0.1, 0.5])
    found = compare(table.sample(frac=1, random_state=0), "local", "accuracy", "pooled", 0.25)
    assert found["difference"].iloc[0] == pytest.approx((0.1 + 0.4) / 2)


def test_a_reference_without_runs_is_named_with_the_nearest():
    with pytest.raises(UserError, match="fedgnc has no runs in metric accuracy and scope pooled; did you mean fedgcn"):
        compare(runs(fedgcn=[0.6, 0.7], local=[0.5, 0.6]), "fedgnc", "accuracy", "pooled", 0.25)


def test_a_lone_difference_is_that_of_the_table():
    random = np.random.default_rng(3)
    runs = pd.DataFrame(
        [
            (name, repeat, fold, "institution", "auc", 0.6 + 0.05 * random.standard_normal())
            for name in ("one", "other", "third")
            for repeat in range(2)
            for fold in range(5)
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )
    runs.loc[3, "value"] = np.nan
    found = paired_difference(runs, "one", "other", "auc", "institution", 0.25)
    row = compare(runs, "other", "auc", "institution", 0.25).set_index("variant").loc["one"]
    assert [found.difference, found.ci_low, found.ci_high, found.p] == pytest.approx(
        row[["difference", "ci_low", "ci_high", "p_corrected"]].tolist(), rel=1e-12
    )


def test_holm_by_hand_and_of_nothing():
    # Sorted .01 .02 .04 by 3, 2, 1: .03 .04 .04; the undefined one does not make the family larger.
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, np.nan, 0.02])), [0.04, 0.03, np.nan, 0.04])
    assert np.isnan(holm(np.array([np.nan]))).all() and len(holm(np.zeros(0))) == 0


@pytest.mark.parametrize("seed", range(20))
def test_every_family_is_corrected_as_statsmodels_does(seed):
    random = np.random.default_rng(seed)
    p = random.choice([random.random(), 1.0, 0.0, 0.03, 0.2, 1e-12], size=random.integers(1, 40))
    p = np.where(random.random(len(p)) < 0.5, p, random.random(len(p)))
    np.testing.assert_array_equal(holm(p), multipletests(p, method="holm")[1])
