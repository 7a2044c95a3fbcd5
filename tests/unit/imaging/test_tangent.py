"""Tangent features against their formulas; each reference is a sum over subjects of its group alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm
from sklearn.covariance import LedoitWolf

from brainfed.federation import Ledger, of_institutions
from brainfed.imaging import (
    Covariances,
    covariances,
    crossings_of_all,
    displacements,
    load_covariances,
    log_sum,
    mean_correlation,
    spectral,
    tangent_at_identity,
    tangent_ledger,
    tangent_of_all,
    tangent_of_fold,
    to_triangles,
    whitening_of_fold,
    write_covariances,
)
from brainfed.imaging._tangent import BLOCK, from_triangles, shrunk_correlation
from brainfed.imaging.series import standardised
from brainfed.runtime import UserError, read_arrays
from reference import tangent as plain

SUBJECTS = tuple(f"s{i}" for i in range(9))
INSTITUTION = ("a",) * 4 + ("b",) * 4 + ("c",)
TRAINING = np.array([True, True, True, False] * 2 + [False])
GROUPS = ("institution", "training")
NAMES = tuple("vwxyz")


def series(seed, regions=5, time=60):
    random = np.random.default_rng(seed)
    return (random.standard_normal((time, regions)) @ random.standard_normal((regions, regions))).astype(np.float32)


def cohort():
    return {subject: series(seed) for seed, subject in enumerate(SUBJECTS)}


def found(data, shrinkage=0.0, **given):
    regions = next(iter(data.values())).shape[1]
    return covariances(data, [f"r{i}" for i in range(regions)], shrinkage, given.pop("runs", {}), **given)


def fitted(data, training=TRAINING, group="institution", institution=INSTITUTION, ledger=None, shrinkage=0.0):
    held = found(data, shrinkage)
    return tangent_of_fold(held, institution, training, group, ledger or tangent_ledger(len(held.regions)))


def exact(data, training, group, shrinkage, institution=INSTITUTION):
    """The features in float64, by the package's functions, before any is rounded to float32."""
    matrices = np.stack([mean_correlation(values) for values in data.values()])
    matrices = (1 - shrinkage) * matrices + shrinkage * np.eye(matrices.shape[1])
    logarithms = to_triangles(spectral(matrices, np.log))
    if group == "all":
        return displacements(matrices, log_sum(logarithms).whitening)
    whitening = whitening_of_fold(logarithms, institution, training, group, tangent_ledger(matrices.shape[1]))
    return np.stack([displacements(matrix, whitening[own]) for matrix, own in zip(matrices, institution, strict=True)])


class TestShrunkCorrelation:
    @pytest.mark.parametrize(("regions", "time"), [(1, 9), (2, 2), (2, 40), (7, 200), (30, 12)])
    def test_it_is_scikit_learns_ledoit_wolf(self, regions, time):
        values = series(regions, regions, time)
        expected = LedoitWolf().fit(standardised(values)).covariance_
        assert np.abs(shrunk_correlation(values) - expected).max() < 1e-12

    def test_two_points_in_time_by_hand(self):
        # z-scores are +-1, so every |x_t|^2 = R and |C|^2 = R^2: b = (R^2 - R^2) / ... = 0, nothing shrinks.
        assert shrunk_correlation(np.array([[0, 5, 1], [1, 3, 2]], dtype=np.float32)) == pytest.approx(
            np.array([[1, -1, 1], [-1, 1, -1], [1, -1, 1]])
        )

    @pytest.mark.parametrize("silent", [0.0, 7.0, np.nan])
    def test_a_region_without_signal_is_a_row_of_the_identity_and_touches_no_other(self, silent):
        values = series(1)
        values[:, 2] = silent
        matrix = shrunk_correlation(values)
        assert np.array_equal(matrix[2], np.eye(5)[2])
        assert np.array_equal(matrix[:, 2], np.eye(5)[2])
        kept = [0, 1, 3, 4]
        assert np.array_equal(matrix[np.ix_(kept, kept)], shrunk_correlation(values[:, kept]))

    def test_a_series_without_any_signal_is_the_identity(self):
        assert np.array_equal(shrunk_correlation(np.ones((9, 3), dtype=np.float32)), np.eye(3))

    def test_runs_of_all_lengths_have_equal_weights(self):
        first, second = series(1, time=30), series(2, time=90)
        expected = (shrunk_correlation(first) + shrunk_correlation(second)) / 2
        joined = np.vstack([first, second])
        assert np.array_equal(mean_correlation(joined, (30, 90)), expected)
        assert not np.allclose(mean_correlation(joined), expected)

    def test_a_region_that_is_constant_in_one_run_leaves_the_mean_positive_definite(self):
        first, second = series(1, time=30), series(2, time=30)
        first[:, 0], second[:, 1] = 3, 4
        assert np.linalg.eigvalsh(mean_correlation(np.vstack([first, second]), (30, 30)))[0] > 0


class TestSymmetricMatrices:
    @given(arrays(np.float64, (3, 10), elements=st.floats(-5, 5)))
    def test_triangles_and_matrices_are_inverses(self, triangles):
        matrices = from_triangles(triangles)
        assert matrices.shape == (3, 4, 4)
        assert np.array_equal(matrices, matrices.transpose(0, 2, 1))
        assert np.array_equal(to_triangles(matrices), triangles)

    def test_triangles_go_row_by_row(self):
        assert to_triangles(np.array([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])).tolist() == [1, 2, 3, 4, 5, 6]

    def test_the_number_of_threads_changes_no_bit(self):
        data = {f"s{i:03d}": series(i) for i in range(3 * BLOCK + 1)}
        one, four = found(data), found(data, threads=4)
        assert one.logarithm.tobytes() == four.logarithm.tobytes()
        assert tangent_of_all(one).tobytes() == tangent_of_all(four, threads=4).tobytes()


class TestFormulas:
    @pytest.mark.parametrize("shrinkage", [0.0, 0.5])
    @pytest.mark.parametrize("group", ["institution", "training", "all"])
    def test_features_equal_the_plain_version(self, group, shrinkage):
        data = cohort()
        data["s0"] = data["s0"].copy()
        data["s0"][:, 1] = 4
        expected = plain.tangent_features(list(data.values()), INSTITUTION, TRAINING, group, shrinkage)
        assert np.abs(exact(data, TRAINING, group, shrinkage) - expected).max() < 1e-9
        held = found(data, shrinkage)
        stored = (
            tangent_of_all(held)
            if group == "all"
            else tangent_of_fold(held, INSTITUTION, TRAINING, group, tangent_ledger(5))
        )
        assert stored.dtype == np.float32
        assert np.abs(stored - expected).max() < 1e-5

    @pytest.mark.parametrize("shrinkage", [0.0, 0.5])
    def test_features_at_the_identity_equal_the_plain_version(self, shrinkage):
        data = cohort()
        expected = plain.tangent_features(list(data.values()), INSTITUTION, TRAINING, "identity", shrinkage)
        stored = tangent_at_identity(found(data, shrinkage))
        assert stored.dtype == np.float32
        assert np.abs(stored - expected).max() < 1e-5

    def test_a_row_at_the_identity_depends_on_no_other_subject(self):
        data = cohort()
        before = tangent_at_identity(found(data, 0.5))
        data[SUBJECTS[0]] = 1 - data[SUBJECTS[0]] ** 2
        after = tangent_at_identity(found(data, 0.5))
        assert after[1:].tobytes() == before[1:].tobytes()
        assert not np.array_equal(after[0], before[0])

    def test_the_displacement_of_known_matrices_is_recovered(self):
        # Reference diag(4, 1): W = diag(1/2, 1). S = W^-1 exp(V) W^-1 must give V back.
        vector = np.array([[0.3, -0.2], [-0.2, 0.7]])
        away = np.diag([2.0, 1.0])
        row = displacements(away @ expm(vector) @ away, np.diag([0.5, 1.0]))
        assert row == pytest.approx([0.3, -0.2 * np.sqrt(2), 0.7])
        assert np.linalg.norm(row) == pytest.approx(np.linalg.norm(vector))

    def test_two_regions_by_hand(self):
        # Unit diagonals commute: log [[1, r], [r, 1]] has the eigenvalues log(1 + r) and log(1 - r), and the tangent
        # vector is half the difference of the logarithms.
        pair = {"one": series(1, 2), "two": series(2, 2)}
        r, s = (shrunk_correlation(values)[0, 1] for values in pair.values())
        features = fitted(pair, np.array([True, True]), institution=("a", "a"))
        plus, minus = (np.log((1 + sign * r) / (1 + sign * s)) / 2 for sign in (1, -1))
        expected = [(plus + minus) / 2, (plus - minus) / 2 * np.sqrt(2), (plus + minus) / 2]
        assert features == pytest.approx(np.array([expected, -np.array(expected)]), abs=1e-6)

    def test_vectors_at_the_reference_of_commuting_subjects_have_mean_zero(self):
        pair = {"one": series(1, 2), "two": series(2, 2), "three": series(3, 2)}
        assert np.abs(tangent_of_all(found(pair)).mean(axis=0)).max() < 1e-6

    def test_a_subject_at_the_reference_is_at_zero(self):
        data = dict.fromkeys(SUBJECTS, series(1))
        assert np.abs(tangent_of_all(found(data, 0.3))).max() < 1e-6

    def test_full_shrinkage_leaves_nothing(self):
        near = tangent_of_all(found(cohort(), 0.99))
        assert 0 < np.abs(near).max() < np.abs(tangent_of_all(found(cohort(), 0.5))).max()

    def test_more_regions_than_time_points_are_accepted(self):
        data = {f"s{i}": series(i, regions=30, time=20) for i in range(4)}
        features = fitted(data, np.array([True, True, True, False]), institution=("a",) * 4)
        assert features.shape == (4, 465)
        assert np.isfinite(features).all()


class TestReferences:
    @pytest.mark.parametrize("group", GROUPS)
    def test_a_tested_subject_moves_no_other_row_and_no_reference(self, group):
        before = fitted(cohort(), group=group)
        whitening = [references(cohort(), TRAINING, group)]
        for tested in np.flatnonzero(~TRAINING):
            changed = {**cohort(), SUBJECTS[tested]: series(99)}
            after = fitted(changed, group=group)
            others = np.arange(9) != tested
            assert before[others].tobytes() == after[others].tobytes()
            assert not np.allclose(before[tested], after[tested])
            whitening.append(references(changed, TRAINING, group))
        assert len(set(whitening)) == 1

    def test_a_training_subject_moves_its_own_institution_only(self):
        before, after = fitted(cohort()), fitted({**cohort(), "s0": series(99)})
        assert not np.allclose(before[:4], after[:4])
        assert before[4:8].tobytes() == after[4:8].tobytes()

    def test_a_training_subject_moves_everybody_under_training(self):
        before, after = (fitted(data, group="training") for data in (cohort(), {**cohort(), "s0": series(99)}))
        assert (np.abs(before - after).max(axis=1) > 1e-4).all()

    def test_the_sum_over_institutions_is_the_sum_over_their_pooled_subjects(self):
        logarithms = found(cohort()).logarithm
        apart = whitening_of_fold(logarithms, INSTITUTION, TRAINING, "training", tangent_ledger(5))
        pooled = log_sum(logarithms[TRAINING]).whitening
        assert {name: np.abs(matrix - pooled).max() < 1e-12 for name, matrix in apart.items()} == dict.fromkeys(
            "abc", True
        )

    def test_an_unseen_institution_uses_the_sums_of_the_others(self):
        training = np.array([True, False, False, False, True, True, False, False, False])
        both = fitted(cohort(), training)
        assert both[8].tobytes() == fitted(cohort(), training, "training")[8].tobytes()
        assert both[0] == pytest.approx(np.zeros(15), abs=1e-5)

    def test_a_fit_without_training_subjects_is_refused(self):
        with pytest.raises(ValueError, match="at least one training subject"):
            fitted(cohort(), np.zeros(9, dtype=bool))


def references(data, training, group):
    whitening = whitening_of_fold(found(data).logarithm, INSTITUTION, training, group, tangent_ledger(5))
    return b"".join(matrix.tobytes() for matrix in whitening.values())


def rows_of(ledger):
    shown = ("name", "direction", "to", "institutions", "tensors", "bytes")
    rows = ledger.rows() if isinstance(ledger, Ledger) else ledger
    assert {row["stage"] for row in rows} <= {"features"}
    return [tuple(row[key] for key in shown) for row in rows]


MATRIX = 5 * 5 * 8


class TestCrossings:
    def test_no_sum_crosses_if_every_institution_has_training_subjects(self):
        ledger = tangent_ledger(5)
        fitted(cohort(), np.arange(9) % 4 != 3, ledger=ledger)
        assert ledger.rows() == ()

    def test_an_unseen_institution_receives_the_sums_of_the_others(self):
        ledger = tangent_ledger(5)
        fitted(cohort(), ledger=ledger)
        assert rows_of(ledger) == [
            ("log-covariance-sum", "download", "institutions", "2", 2, 2 * MATRIX),
            ("log-covariance-sum", "upload", "institutions", "0 1", 2, 2 * MATRIX),
            ("summed-subjects", "download", "institutions", "2", 2, 8),
            ("summed-subjects", "upload", "institutions", "0 1", 2, 8),
        ]

    def test_a_reference_of_all_training_subjects_is_one_sum_up_and_one_matrix_down(self):
        ledger = tangent_ledger(5)
        fitted(cohort(), group="training", ledger=ledger)
        assert rows_of(ledger) == [
            ("log-covariance-sum", "upload", "server", "0 1", 2, 2 * MATRIX),
            ("summed-subjects", "upload", "server", "0 1", 2, 8),
            ("tangent-reference", "download", "institutions", "0 1 2", 3, 3 * MATRIX),
        ]

    @pytest.mark.parametrize("group", GROUPS)
    def test_a_single_institution_sends_nothing(self, group):
        ledger = tangent_ledger(5)
        fitted(cohort(), group=group, institution=("a",) * 9, ledger=ledger)
        assert ledger.rows() == ()

    def test_a_reference_of_everybody_crosses_in_the_institutions_of_a_split(self):
        rows = crossings_of_all(5)
        assert rows_of(of_institutions(rows, {0: 5, 1: 30, 2: 1})) == [
            ("log-covariance-sum", "upload", "server", "0 1 2", 3, 3 * MATRIX),
            ("summed-subjects", "upload", "server", "0 1 2", 3, 12),
            ("tangent-reference", "download", "institutions", "0 1 2", 3, 3 * MATRIX),
        ]
        assert of_institutions(rows, {0: 9}) == ()

    def test_rows_of_known_institutions_stay_as_they_are(self):
        ledger = tangent_ledger(5)
        fitted(cohort(), group="training", ledger=ledger)
        assert of_institutions(ledger.rows(), {0: 4, 1: 4, 2: 1, 3: 7}) == ledger.rows()

    @pytest.mark.parametrize("size", [4, 5, 6])
    def test_an_unseen_site_of_as_many_subjects_as_regions_receives_a_reference(self, size):
        data = {f"s{i}": series(i) for i in range(4 + size)}
        ledger = tangent_ledger(5)
        features = fitted(data, np.arange(4 + size) < 4, institution=("a",) * 4 + ("b",) * size, ledger=ledger)
        assert np.isfinite(features).all()
        assert {row["bytes"] for row in ledger.rows()} == {MATRIX, 4}


class TestShards:
    def test_shards_are_joined_by_id(self, tmp_path):
        data = cohort()
        for number in range(3):
            part = {name: data[name] for name in SUBJECTS[number::3]}
            write_covariances(tmp_path / str(number), found(part, 0.2), 0.2)
        files = [tmp_path / str(number) for number in (2, 0, 1)]
        whole, joined = found(data, 0.2), load_covariances(files)
        assert (joined.subjects, joined.regions) == (SUBJECTS, whole.regions)
        for name in ("covariance", "logarithm"):
            assert getattr(joined, name).tobytes() == getattr(whole, name).tobytes()
        some = load_covariances(files, ["s7", "s2"])
        assert some.subjects == ("s7", "s2")
        assert np.array_equal(some.logarithm, whole.logarithm[[7, 2]])
        assert read_arrays(files[0]).metadata["shrinkage"] == 0.2

    def test_a_shard_without_subjects_is_read(self, tmp_path):
        write_covariances(tmp_path / "full", found(cohort()), 0.0)
        write_covariances(tmp_path / "empty", covariances({}, ["other"], 0.0, {}), 0.0)
        assert load_covariances([tmp_path / "empty", tmp_path / "full"]).regions == tuple(f"r{i}" for i in range(5))

    def test_runs_count_apart_where_their_lengths_are_given(self):
        data = {"s0": series(0), "s1": series(1)}
        apart, whole = found(data, 0.5, runs={"s1": (20, 40)}), found(data, 0.5)
        assert np.array_equal(apart.covariance[0], whole.covariance[0])
        expected = to_triangles(0.5 * mean_correlation(data["s1"], (20, 40)) + 0.5 * np.eye(5))
        assert apart.covariance[1] == pytest.approx(expected, abs=1e-7)
        assert not np.allclose(apart.covariance[1], whole.covariance[1])

    def test_a_subject_in_no_shard_and_a_cohort_without_series_are_refused(self, tmp_path):
        write_covariances(tmp_path / "full", found(cohort()), 0.0)
        with pytest.raises(UserError, match="Subject x: expected its covariance in one of 1 shards"):
            load_covariances([tmp_path / "full"], ["s1", "x"])
        write_covariances(tmp_path / "empty", covariances({}, NAMES, 0.0, {}), 0.0)
        with pytest.raises(UserError, match="expected a usable series in one of 1 shards"):
            load_covariances([tmp_path / "empty"])

    def test_shards_of_different_regions_are_refused(self, tmp_path):
        data = cohort()
        write_covariances(tmp_path / "one", found({"s0": data["s0"]}), 0.0)
        write_covariances(tmp_path / "two", covariances({"s1": data["s1"]}, NAMES, 0.0, {}), 0.0)
        with pytest.raises(UserError, match="other names or another order"):
            load_covariances([tmp_path / "one", tmp_path / "two"])

    def test_a_subject_with_other_regions_is_named(self):
        with pytest.raises(UserError, match="Subject s1: expected 5 regions as in its shard, found 4"):
            found({"s0": series(0), "s1": series(1, 4)})

    def test_a_singular_covariance_is_named_with_the_remedy(self):
        data = {"s0": series(0), "s1": series(1, time=2)}
        with pytest.raises(UserError, match=r"Subject s1: .*set features.shrinkage to 0.1 or more"):
            found(data)
        assert np.isfinite(found(data, 0.1).logarithm).all()

    def test_storage_in_float32_moves_no_feature_by_1e_6(self):
        data = {f"s{i:02d}": series(i, regions=40, time=150) for i in range(12)}
        institution, training = ("a",) * 12, np.ones(12, dtype=bool)
        stored = fitted(data, training, "training", institution, shrinkage=0.5)
        assert np.abs(stored - exact(data, training, "training", 0.5, institution)).max() < 1e-6

    def test_a_shard_holds_triangles_of_float32(self):
        held = found(cohort())
        assert isinstance(held, Covariances)
        assert {held.covariance.dtype, held.logarithm.dtype} == {np.dtype(np.float32)}
        assert held.covariance.shape == held.logarithm.shape == (9, 15)
