"""Private ridge: noised sums of clipped gradients, accounted for, of rows that no other subject enters."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from brainfed.federation import epsilon_spent, noise_multiplier
from brainfed.methods.private_linear.declaration import PrivateRidgeSettings
from brainfed.methods.private_linear.train import GradientClients, Member, Noise, train_ridge_dp, unit_rows
from brainfed.runtime import Streams, UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import check
from reference.private_ridge import scores_of
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled

EXACT = Run(precision="float64")
splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])


def three_classes(inputs):
    return relabelled(inputs, (diagnosis_of(inputs) + np.arange(len(inputs.subjects)) // 15) % 3)


class TestFormulas:
    @splits
    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize(
        "changes",
        [
            {"privacy": "none"},
            {"epsilon": 50.0, "clip": 0.3},
            {"epsilon": 50.0, "clip": 2.0, "balance": "none", "rounds": 1},
            {"privacy": "paper", "centre": "none", "balance": "none"},
            {"epsilon": 1.0},
        ],
    )
    def test_scores_equal_the_plain_version(self, split, classes, changes):
        inputs = method_inputs(45, 12, split=split)
        inputs = three_classes(inputs) if classes == 3 else inputs
        settings = PrivateRidgeSettings(**{"rounds": 4} | changes)
        multiplier = noise_multiplier(settings, 1.0, settings.rounds + (settings.balance == "classes"))
        found = train_ridge_dp(inputs, settings, EXACT).scores
        for fold in range(inputs.folds):
            expected = scores_of(inputs, fold, settings, multiplier)
            tested = inputs.tested(fold)
            own = found[fold, tested] if classes == 3 else found[fold, tested, 1:]
            np.testing.assert_allclose(own, expected[tested], atol=1e-6)

    def test_without_privacy_many_steps_end_at_least_squares(self):
        inputs = method_inputs(60, 6, institutions=2)
        settings = PrivateRidgeSettings("none", rounds=2000, balance="none")
        rows = unit_rows(inputs.features[0], "subject").astype(float)
        training = inputs.training(0)
        weights, *_ = np.linalg.lstsq(rows[training], 2.0 * inputs.labels[0, training] - 1, rcond=1e-4)
        found = train_ridge_dp(inputs, settings, EXACT).scores[0, inputs.tested(0), 1]
        np.testing.assert_allclose(found, rows[inputs.tested(0)] @ weights, atol=1e-4)

    def test_a_rare_class_is_predicted_if_classes_are_balanced(self):
        rare = (np.arange(300) // 3 % 5 == 0).astype(np.int64)
        inputs = method_inputs(300, 40, diagnosis=rare, effect=0.35)

        def predicted(balance):
            scores = train_ridge_dp(inputs, PrivateRidgeSettings("none", balance=balance), Run()).scores
            return np.mean(scores[0, inputs.tested(0), 1] > 0)

        assert predicted("none") < 0.05
        assert 0.15 < predicted("classes") < 0.5


def member(features, labels):
    return Member(torch.from_numpy(unit_rows(features, "subject")), torch.from_numpy(labels[None]))


def sums_of(one, clip, weights, number):
    """What an institution sends in round `number`, before noise."""
    clients = GradientClients([one], 2, 3, Noise(1.0, clip, Streams(0)), counts=True)
    clients.weights = weights.clone()
    clients.noise = Silent(1.0, clip, Streams(0))
    (tensor,) = clients.fit(number, [0])[0].tensors.values()
    return tensor


class Silent(Noise):
    """Clips, and adds nothing."""

    def add(self, sums, *_):
        return sums


class TestSensitivity:
    @given(
        seed=st.integers(0, 999),
        subjects=st.integers(1, 9),
        clip=st.floats(0.01, 3),
        size=st.floats(0.01, 1e4),
        left=st.integers(0, 8),
    )
    def test_a_subject_less_moves_the_sum_by_the_clipping_norm_at_most(self, seed, subjects, clip, size, left):
        rng = np.random.default_rng(seed)
        features = (size * rng.standard_normal((subjects, 7))).astype(np.float32)
        labels, others = rng.integers(0, 2, subjects), np.arange(subjects) != left % subjects
        weights = torch.from_numpy(rng.standard_normal((1, 1, 7)).astype(np.float32) * 3)
        whole, less = member(features, labels), member(features[others], labels[others])
        gradient = sums_of(whole, clip, weights, 1) - sums_of(less, clip, weights, 1)
        assert float(gradient.norm()) <= clip * (1 + 1e-5)
        counts = sums_of(whole, clip, weights, 0) - sums_of(less, clip, weights, 0)
        assert float(counts.norm()) == 1

    def test_a_wrong_score_reaches_the_clipping_norm(self):
        rng = np.random.default_rng(0)
        features = rng.standard_normal((1, 7)).astype(np.float32)
        one, none = member(features, np.array([1])), member(features, np.array([-1]))
        weights = -10 * one.rows[None]
        moved = sums_of(one, 0.5, weights, 1) - sums_of(none, 0.5, weights, 1)
        assert float(moved.norm()) == pytest.approx(0.5, rel=1e-4)

    @given(st.integers(0, 999), st.sampled_from(["none", "subject"]), st.floats(1e-3, 1e6))
    def test_rows_have_norm_one_at_most_and_depend_on_their_subject_alone(self, seed, centre, size):
        features = (size * np.random.default_rng(seed).standard_normal((4, 50)) + size).astype(np.float32)
        rows = unit_rows(features, centre)
        norms = np.linalg.norm(rows.astype(np.float64), axis=1)
        assert (norms <= 1).all()
        assert norms == pytest.approx(1, abs=1e-5)
        assert unit_rows(features[1:2], centre).tobytes() == rows[1:2].tobytes()

    def test_a_row_without_variation_is_zero(self):
        assert not unit_rows(np.full((1, 30), 0.3, np.float32), "subject").any()
        assert not unit_rows(np.zeros((1, 30), np.float32), "none").any()

    def test_the_noise_has_its_standard_deviation_in_every_institution_fold_and_round(self):
        noise, zeros = Noise(3.0, 0.5, Streams(1)), torch.zeros(2, 1, 20_000)
        trained = torch.tensor([True, True])
        drawn = [noise.add(zeros, 0.5, trained, "gradient", place, number) for place in (0, 1) for number in (1, 2)]
        flat = torch.stack(drawn).reshape(8, -1)
        assert flat.std(dim=1).numpy() == pytest.approx(1.5, rel=0.03)
        assert np.abs(np.corrcoef(flat.numpy()) - np.eye(8)).max() < 0.04
        assert not noise.add(zeros, 0.5, ~trained, "gradient", 0, 1).any()


class TestPrivacyRows:
    def test_every_institution_and_fold_spends_what_the_accountant_counts(self):
        inputs, settings = method_inputs(60, 20), PrivateRidgeSettings(epsilon=5.0)
        found = train_ridge_dp(inputs, settings, Run())
        assert {(row["institution"], row["fold"]) for row in found.privacy} == {
            (name, fold) for name in inputs.institutions for fold in range(3)
        }
        for row in found.privacy:
            code = inputs.institutions.index(row["institution"])
            assert row["subjects"] == int((inputs.training(row["fold"]) & (inputs.institution == code)).sum())
            spent = epsilon_spent(row["noise_multiplier"], 1.0, 41, 1e-5)
            assert row["epsilon_spent"] == spent
            assert 4.9 < spent <= 5.0
            assert (row["steps"], row["sampling_rate"], row["unit"]) == (41, 1.0, "subject")

    def test_the_printed_formula_spends_more_than_it_promises(self):
        found = train_ridge_dp(method_inputs(60, 20), PrivateRidgeSettings("paper", epsilon=10.0), Run())
        assert found.privacy[0]["epsilon_spent"] > found.privacy[0]["epsilon_planned"]

    def test_no_privacy_has_no_rows_and_no_noise(self):
        found = train_ridge_dp(method_inputs(60, 20), PrivateRidgeSettings("none"), Run())
        assert found.privacy == ()

    @splits
    def test_sums_alone_cross(self, split):
        inputs = method_inputs(60, 20, split=split)
        rows = train_ridge_dp(inputs, PrivateRidgeSettings(rounds=3), Run()).crossings
        sent = {(row["name"], row["direction"]): row["tensors"] for row in rows}
        trained, others = (3, 0) if split == "random" else (2, 1)
        assert sent == {
            ("training-subjects", "upload"): trained,
            ("class-counts", "upload"): trained,
            ("class-weights", "download"): trained,
            ("gradient", "upload"): 3 * trained,
            ("weights", "download"): 3 * trained + others,
        }
        assert not any("subjects" in str(row["axes"]).split(" x ") for row in rows)

    def test_a_single_release_is_one_sum(self):
        settings = PrivateRidgeSettings(rounds=1, balance="none")
        found = train_ridge_dp(method_inputs(60, 20), settings, Run())
        sent = {row["name"]: row["tensors"] for row in found.crossings if row["direction"] == "upload"}
        assert sent == {"training-subjects": 3, "gradient": 3}
        assert found.privacy[0]["steps"] == 1


class TestScores:
    def test_more_budget_finds_more(self):
        inputs = method_inputs(400, 300, 4, effect=0.35)
        truth = diagnosis_of(inputs)

        def auc(**changes):
            scores = train_ridge_dp(inputs, PrivateRidgeSettings(**changes), Run()).scores
            return roc_auc_score(truth, scores[inputs.fold, np.arange(400), 1])

        assert auc(epsilon=0.1) < 0.65 < auc(epsilon=20.0) - 0.1
        assert abs(auc(epsilon=1000.0) - auc(privacy="none")) < 0.02

    @splits
    @pytest.mark.parametrize("classes", [2, 3])
    def test_members_are_scored_by_the_last_model_of_the_fold_in_which_they_train(self, split, classes):
        inputs = method_inputs(60, 20, split=split)
        inputs = three_classes(inputs) if classes == 3 else inputs
        found = train_ridge_dp(inputs, PrivateRidgeSettings(rounds=3), Run())
        check(inputs, found)
        assert found.member_scores.shape == (inputs.folds, 60, classes)
        assert np.array_equal(np.isfinite(found.member_scores[..., 0]), inputs.labels >= 0)
        assert found.scores.tobytes() == found.round_scores[-1].tobytes()

    def test_one_label_of_a_member_moves_its_fold_without_noise_by_little_and_no_fold_that_tests_it(self):
        inputs = method_inputs(60, 20)
        labels = diagnosis_of(inputs)
        labels[0] = 1 - labels[0]
        before, after = (
            train_ridge_dp(given, PrivateRidgeSettings("none"), Run()).scores
            for given in (inputs, relabelled(inputs, labels))
        )
        fold, other = inputs.fold[0], (inputs.fold[0] + 1) % inputs.folds
        assert after[fold].tobytes() == before[fold].tobytes()
        assert (after[other] != before[other]).any(where=np.isfinite(before[other]))


@pytest.mark.parametrize("after", [1, 2, 7])
@pytest.mark.parametrize("balance", ["classes", "none"])
def test_an_interrupted_training_goes_on_to_the_same_bytes_and_spends_once(resumed, balance, after):
    inputs, settings = method_inputs(60, 20), PrivateRidgeSettings(rounds=8, balance=balance)
    whole = train_ridge_dp(inputs, settings, Run())
    again, _ = resumed(lambda run: train_ridge_dp(inputs, settings, run), after)
    assert again.scores.tobytes() == whole.scores.tobytes()
    assert again.round_scores.tobytes() == whole.round_scores.tobytes()
    assert again.training_loss.tobytes() == whole.training_loss.tobytes()
    assert again.crossings == whole.crossings
    assert again.privacy == whole.privacy


class TestRefusals:
    def test_features_that_are_fitted_are_refused(self):
        inputs = method_inputs(60, 20)
        inputs = replace(inputs, features=inputs.features * 5)
        with pytest.raises(UserError, match=r"features: expected the same for all folds.*found 5 fits"):
            train_ridge_dp(inputs, PrivateRidgeSettings(), Run())

    def test_a_delta_that_allows_to_publish_a_subject_is_refused(self):
        with pytest.raises(UserError, match="delta of institution site-0"):
            train_ridge_dp(method_inputs(60, 20), PrivateRidgeSettings(delta=0.1), Run())

    @pytest.mark.parametrize("changes", [{"epsilon": 0.0}, {"delta": 1.0}, {"clip": 0.0}])
    def test_settings_without_a_meaning_are_refused(self, changes):
        with pytest.raises(ValueError, match=next(iter(changes))):
            PrivateRidgeSettings(**changes)
