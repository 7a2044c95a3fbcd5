"""Odd scans, copied scans and QC-FC have known answers."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from brainfed.cohort.quality import group_difference, site_differences
from brainfed.cohort.quality._issues import cohen
from brainfed.imaging import relate_motion, typicality
from brainfed.imaging._quality import defined_connectivity, qc_fc, robust_z

REGIONS = 14


def cohort(count=20, seed=0):
    """Series with one shared connectivity."""
    random = np.random.default_rng(seed)
    mixing = np.linalg.cholesky(np.corrcoef(random.standard_normal((REGIONS, 20))))
    return {
        f"s{number:02d}": (random.standard_normal((200, REGIONS)) @ mixing.T).astype(np.float32)
        for number in range(count)
    }


def test_a_planted_outlier_is_the_only_one():
    series = cohort()
    series["s07"] = np.random.default_rng(9).standard_normal((200, REGIONS)).astype(np.float32)
    found = typicality(series, 0.999).set_index("subject")
    assert found.index[found["typicality_z"] < -3.5].tolist() == ["s07"]
    assert found["typicality"].drop("s07").min() > 0.8
    features = defined_connectivity(series)
    others = np.delete(features, 7, axis=0).mean(axis=0)
    assert found.loc["s07", "typicality"] == pytest.approx(np.corrcoef(features[7], others)[0, 1], abs=1e-5)
    assert found.loc["s07", "mean_fc"] == pytest.approx(features[7].mean(), abs=1e-6)


def test_a_silent_region_is_not_an_outlier():
    series = cohort()
    series["s03"][:, [1, 4]] = 7.0
    found = typicality(series, 0.999).set_index("subject")
    assert found.loc["s03", "typicality_z"] > -3.5
    assert np.isnan(defined_connectivity(series)[3]).sum() == 2 * (REGIONS - 2) + 1


def test_robust_z_of_hand_made_numbers():
    """Median 3, deviations 2 1 0 1 97: their median is 1."""
    assert robust_z(np.array([1.0, 2, 3, 4, 100])) == pytest.approx([-1.349, -0.6745, 0, 0.6745, 65.4265])
    assert np.isnan(robust_z(np.ones(5))).all()


def test_rounded_and_scaled_copies_are_found():
    series = cohort()
    series["s05"] = np.round(3 * series["s02"], 2)
    series["s11"] = series["s02"][:-1]
    found = typicality(series, 0.999).set_index("subject")["alike"]
    assert found[found != found.index].to_dict() == {"s05": "s02", "s11": "s02"}


def with_only(series, **seen):
    """Series with NaN in all regions of a subject except `seen`."""
    for subject, regions in seen.items():
        series[subject][:, np.setdiff1d(np.arange(REGIONS), regions)] = np.nan
    return series


def test_two_subjects_with_the_same_two_seen_regions_are_not_duplicates():
    """Their other connections are undefined: two rows of zeros and one equal value would correlate fully."""
    series = with_only(cohort(), s02=[0, 1], s05=[0, 1])
    found = typicality(series, 0.999).set_index("subject")
    assert (found["alike"] == found.index).all()
    assert found["typicality"].isna().to_dict() == {subject: subject in ("s02", "s05") for subject in found.index}


def test_copies_are_found_over_the_regions_seen_in_both():
    series = cohort()
    series["s05"] = 2 * series["s02"]
    with_only(series, s02=np.arange(2, 14), s05=np.arange(12))
    found = typicality(series, 0.999).set_index("subject")["alike"]
    assert found[found != found.index].to_dict() == {"s05": "s02"}
    assert typicality(with_only(series, s05=np.arange(11)), 0.999)["alike"].nunique() == 20


def test_too_few_subjects_or_regions_are_not_judged():
    assert typicality(cohort(9), 0.999)["typicality"].isna().all()
    few = {subject: values[:, :4] for subject, values in cohort().items()}
    few["s01"] = few["s00"]
    found = typicality(few, 0.999)
    assert found["typicality"].isna().all()
    assert (found["alike"] == found["subject"]).all()
    assert found["mean_fc"].notna().all()
    assert typicality({}, 0.999).empty


def test_qc_fc_is_pearsons_r_with_its_p():
    random = np.random.default_rng(1)
    features = random.standard_normal((40, 30)).astype(np.float32)
    features[3, 5] = np.nan
    motion = random.random(40)
    site = np.array(["a", "b"] * 20, dtype=object)
    found = qc_fc(features, motion, site)
    for column in (0, 5, 29):
        held = ~np.isnan(features[:, column])
        r, p = stats.pearsonr(features[held, column], motion[held])
        assert found.loc[column, ["r", "p"]].tolist() == pytest.approx([r, p], rel=1e-6)
        x, y = (pd.Series(values[held]) for values in (features[:, column].astype(float), motion))
        x, y = (values - values.groupby(site[held]).transform("mean") for values in (x, y))
        assert found.loc[column, "within_r"] == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-6)


def test_only_planted_motion_is_found():
    random = np.random.default_rng(2)
    motion = random.random(200)
    features = random.standard_normal((200, 500)).astype(np.float32)
    features[:, :50] += (4 * motion[:, None]).astype(np.float32)
    found = qc_fc(features, motion, np.full(200, "a", dtype=object))
    hits = stats.false_discovery_control(found["p"]) <= 0.05
    assert (hits == multipletests(found["p"], 0.05, "fdr_bh")[0]).all()
    assert hits[:50].all()
    assert hits[50:].mean() < 0.02


def test_differences_between_scanners_are_not_motion_within_sites():
    random = np.random.default_rng(3)
    site = np.repeat(np.array(["a", "b"], dtype=object), 100)
    shift = np.where(site == "a", 0.0, 1.0)
    features = (random.standard_normal((200, 300)) + 2 * shift[:, None]).astype(np.float32)
    found = qc_fc(features, random.random(200) + shift, site)
    assert (found["p"] < 0.05).mean() > 0.95
    assert (found["within_p"] < 0.05).mean() == pytest.approx(0.05, abs=0.04)


def test_a_constant_connection_has_no_correlation():
    found = qc_fc(np.ones((12, 2), dtype=np.float32), np.arange(12.0), np.full(12, "a", dtype=object))
    assert found.isna().all(axis=None)


def test_motion_is_related_to_all_connections_or_none():
    series = cohort()
    moved = pd.DataFrame({"subject": sorted(series), "mean_fd": np.linspace(0.1, 0.4, 20), "site": "a"})
    names = [f"R{number}" for number in range(REGIONS)]
    found = relate_motion(series, names, moved)
    assert len(found) == REGIONS * (REGIONS - 1) // 2
    assert found.loc[0, ["from", "to"]].tolist() == ["R0", "R1"]
    assert relate_motion(series, names, moved.assign(mean_fd=0.1)).empty
    assert relate_motion({}, (), moved.iloc[:0]).columns.tolist() == found.columns.tolist()


def test_group_comparison_equals_scipy_s():
    values = pd.Series([0.3, 0.4, 0.5, np.nan, 0.1, 0.2, 0.15, 9.0])
    diagnosis = pd.Series([1, 1, 1, 1, 0, 0, 0, None], dtype="Int8")
    found = group_difference(values, diagnosis)
    test = stats.ttest_ind([0.3, 0.4, 0.5], [0.1, 0.2, 0.15], equal_var=False)
    assert (found.patients, found.controls) == pytest.approx((0.4, 0.15))
    assert found.p == pytest.approx(test.pvalue)
    assert found.low < 0.25 < found.high
    assert group_difference(values, pd.Series([1] * 8, dtype="Int8")) is None
    assert group_difference(pd.Series([np.nan] * 8), diagnosis) is None


def test_a_site_apart_is_named():
    random = np.random.default_rng(4)
    site = pd.Series(np.repeat(["a", "b", "c", "alone"], [30, 30, 30, 1]))
    values = pd.Series(random.normal(0, 1, 91)) + 3 * (site == "b")
    found = site_differences(values, site)
    assert found.sites["site"].tolist() == ["a", "b", "c"]
    assert found.apart(1.5)["site"].tolist() == ["b"]
    parts = [values[site == name] for name in "abc"]
    assert found.p == pytest.approx(stats.f_oneway(*parts).pvalue)
    assert found.explained == pytest.approx(1 - sum(part.var(ddof=0) for part in parts) / 3 / values[:90].var(ddof=0))
    assert site_differences(values, pd.Series(["a"] * 91)) is None


def test_cohens_d_by_hand():
    """Means 2 and 4, both with variance 1."""
    assert cohen(np.array([1.0, 2, 3]), np.array([3.0, 4, 5])) == pytest.approx(-2)


@pytest.mark.data
def test_the_copied_scan_of_abide_is_found_and_no_other_at_its_site():
    with np.load(Path(os.environ["BRAINFED_DATA"]) / "abide" / "timeseries.npz") as held:
        series = {name: held[name] for name in held.files if name.startswith(("UM_1", "Caltech"))}
    found = typicality(series, 0.999).set_index("subject")
    assert found.loc[found["alike"] != found.index, "alike"].to_dict() == {"UM_1_0050286": "UM_1_0050279"}
    assert found["typicality"].between(0, 1).all()


def test_connectivity_by_run_is_defined_if_one_run_has_signal_in_both_regions():
    own = np.random.default_rng(4).standard_normal((60, 3)).astype(np.float32)
    own[:30, 0] = own[30:, 1] = 0
    found = defined_connectivity({"a": own}, {"a": (30, 30)})[0]
    assert np.isnan(found).tolist() == [True, False, False]
    expected = [np.corrcoef(own[30:, [0, 2]].T)[0, 1], np.corrcoef(own[:30, 1:].T)[0, 1]]
    np.testing.assert_allclose(found[1:], expected, atol=1e-6)
