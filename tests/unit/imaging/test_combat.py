"""ComBat removes planted site effects, keeps covariates, and fits on its own institution's training subjects only."""

import numpy as np
import pandas as pd
import pytest
from neuroCombat import neuroCombat
from neuroHarmonize import harmonizationApply, harmonizationLearn

from brainfed.imaging.fitted import harmonised

SHIFT = {"north": 0.7, "south": -0.4, "west": 0.1}
SCALE = {"north": 1.6, "south": 0.5, "west": 1.0}


class Cohort:
    """Subjects of several sites; site s has x = 2 + age effect + shift_s + scale_s e."""

    def __init__(self, subjects=120, dimensions=30, sites=tuple(SHIFT), institutions=("a",), seed=0):
        random = np.random.default_rng(seed)
        self.site = np.array(sites, dtype=object)[np.arange(subjects) % len(sites)]
        self.institution = np.array(institutions, dtype=object)[np.arange(subjects) // len(sites) % len(institutions)]
        self.training = random.random(subjects) < 0.75
        self.age = random.normal(30, 8, subjects)
        self.effect = random.normal(0, 0.05, dimensions)
        self.noise = random.normal(size=(subjects, dimensions))
        shift, scale = (np.array([table[name] for name in self.site])[:, None] for table in (SHIFT, SCALE))
        clean = 2 + (self.age - 30)[:, None] * self.effect
        self.features = (clean + shift + scale * self.noise).astype(np.float32)

    def harmonised(self, features=None, *, training=None, covariates=(), **options):
        given = {name: getattr(self, name) for name in covariates}
        features = self.features if features is None else features
        training = self.training if training is None else training
        return harmonised(features, self.site, self.institution, training, given, **options)

    def moments(self, features):
        """Mean and variance (sites, d) of the training subjects, within each site."""
        groups = [features[self.training & (self.site == name)].astype(np.float64) for name in SHIFT]
        return np.array([[group.mean(axis=0), group.var(axis=0, ddof=1)] for group in groups]).swapaxes(0, 1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
class TestKnownAnswer:
    def test_without_shrinkage_sites_have_one_mean_and_one_variance(self):
        cohort = Cohort()
        mean, variance = cohort.moments(cohort.harmonised(bayes=False).features)
        assert np.abs(mean - mean[0]).max() < 1e-5
        assert np.abs(variance / variance[0] - 1).max() < 1e-4

    def test_with_shrinkage_the_planted_effects_vanish_on_average_over_features(self):
        """All features of a site have one shift and one scale; shrinkage estimates them from 300 features."""
        cohort = Cohort(subjects=360, dimensions=300)
        before, after = (cohort.moments(values) for values in (cohort.features, cohort.harmonised().features))
        assert np.ptp(before[0].mean(axis=1)) > 1
        assert np.ptp(after[0].mean(axis=1)) < 0.02
        assert np.ptp(np.log(before[1].mean(axis=1))) > 1.8
        assert np.ptp(np.log(after[1].mean(axis=1))) < 0.05

    def test_two_sites_of_the_same_subjects_are_equal_after_harmonisation(self):
        """The sites hold the same subjects and differ by x -> 3 x + 1."""
        own = np.random.default_rng(2).normal(size=(40, 12))
        features = np.concatenate([own, 3 * own + 1]).astype(np.float32)
        site = ["here"] * 40 + ["there"] * 40
        found = harmonised(features, site, ["a"] * 80, np.ones(80, dtype=bool), {}, bayes=False).features
        np.testing.assert_allclose(found[:40], found[40:], atol=1e-5)

    def test_the_effect_of_a_covariate_stays_if_sites_differ_in_it(self):
        cohort = Cohort(subjects=600)
        cohort.age += np.where(cohort.site == "north", 12, 0)
        cohort.features += (np.where(cohort.site == "north", 12, 0)[:, None] * cohort.effect).astype(np.float32)
        slopes = {}
        for covariates in ((), ("age",)):
            found = cohort.harmonised(covariates=covariates).features.astype(np.float64)
            slopes[covariates] = np.polyfit(cohort.age, found, 1)[0]
        kept, lost = (np.polyfit(cohort.effect, slopes[covariates], 1)[0] for covariates in (("age",), ()))
        assert kept == pytest.approx(1, abs=0.05)
        assert lost < 0.8

    def test_one_institution_equals_a_direct_call_of_the_package(self):
        cohort = Cohort(subjects=90)
        seen, sex = cohort.training, (np.arange(90) // 3 % 2).astype(float)
        table = pd.DataFrame({"SITE": cohort.site, "age": cohort.age, "sex": sex})
        model, _ = harmonizationLearn(cohort.features[seen].astype(float), table[seen])
        expected = harmonizationApply(cohort.features.astype(float), table, model)
        cohort.sex = sex
        np.testing.assert_allclose(cohort.harmonised(covariates=("age", "sex")).features, expected, atol=2e-6)

    def test_a_fit_on_all_subjects_equals_the_reference_implementation(self, capsys):
        cohort = Cohort(subjects=90)
        table = pd.DataFrame({"site": cohort.site, "age": cohort.age})
        expected = neuroCombat(cohort.features.astype(float).T, table, "site", continuous_cols=["age"])["data"].T
        found = cohort.harmonised(training=np.ones(90, dtype=bool), covariates=("age",)).features
        np.testing.assert_allclose(found, expected, atol=2e-6)


class TestIndependence:
    def test_a_test_subject_moves_no_other(self):
        cohort = Cohort(institutions=("a", "b"))
        before = cohort.harmonised(covariates=("age",)).features
        for tested in np.flatnonzero(~cohort.training)[:6]:
            changed = cohort.features.copy()
            changed[tested] = 5 * changed[tested] - 3
            after = cohort.harmonised(changed, covariates=("age",)).features
            moved = (before != after).any(axis=1)
            assert moved.nonzero()[0].tolist() == [tested]

    def test_a_test_subjects_covariates_move_no_other(self):
        cohort = Cohort()
        before = cohort.harmonised(covariates=("age",)).features
        tested = int(np.flatnonzero(~cohort.training)[0])
        cohort.age[tested] = np.nan
        after = cohort.harmonised(covariates=("age",)).features
        others = np.arange(len(before)) != tested
        assert np.array_equal(before[others], after[others])

    def test_without_a_test_subject_the_others_are_the_same(self):
        """Test subjects affect neither the scale of covariates nor the list of sites."""
        cohort = Cohort()
        before = cohort.harmonised(covariates=("age",)).features
        kept = cohort.training.copy()
        args = cohort.site[kept], cohort.institution[kept], cohort.training[kept]
        after = harmonised(cohort.features[kept], *args, {"age": cohort.age[kept]}).features
        np.testing.assert_allclose(after, before[kept], atol=1e-6)

    def test_a_training_subject_moves_its_own_institution_only(self):
        cohort = Cohort(institutions=("a", "b"))
        changed = cohort.features.copy()
        changed[np.flatnonzero(cohort.training & (cohort.institution == "a"))[0]] += 3
        before, after = cohort.harmonised().features, cohort.harmonised(changed).features
        other = cohort.institution == "b"
        assert np.array_equal(before[other], after[other])
        assert not np.array_equal(before[~other], after[~other])


@pytest.mark.filterwarnings("error::RuntimeWarning")
class TestScarcity:
    @pytest.mark.parametrize(("seen", "bayes"), [(0, True), (4, True), (2, False), (9, False)])
    def test_a_site_with_too_few_training_subjects_is_unchanged(self, seen, bayes, caplog):
        caplog.set_level("INFO")
        cohort = Cohort()
        alone = np.flatnonzero(cohort.site == "west")
        training = cohort.training.copy()
        training[alone] = np.arange(len(alone)) < seen
        found = cohort.harmonised(training=training, bayes=bayes)
        assert found.sites == {"a": ["north", "south"]}
        assert "left as they are: west" in caplog.text
        assert np.array_equal(found.features[alone], cohort.features[alone])
        assert (found.features[cohort.site == "north"] != cohort.features[cohort.site == "north"]).all()

    def test_training_subjects_with_the_same_series_count_once(self):
        cohort = Cohort()
        west = np.flatnonzero(cohort.site == "west")
        cohort.features[west[:5]] = cohort.features[west[0]]
        training = cohort.training.copy()
        training[west] = np.arange(len(west)) < 5
        assert cohort.harmonised(training=training).sites == {"a": ["north", "south"]}

    @pytest.mark.parametrize(("seen", "bayes"), [(5, True), (10, False)])
    def test_the_least_number_of_training_subjects_suffices(self, seen, bayes):
        cohort = Cohort()
        west = np.flatnonzero(cohort.site == "west")
        training = cohort.training.copy()
        training[west] = np.arange(len(west)) < seen
        found = cohort.harmonised(training=training, covariates=("age",), bayes=bayes)
        assert found.sites == {"a": ["north", "south", "west"]}
        assert np.isfinite(found.features).all()
        tested = found.features[west[~training[west]]]
        assert tested.std(axis=0).max() < 4

    def test_an_institution_of_one_site_is_unchanged(self):
        cohort = Cohort()
        cohort.institution = cohort.site
        found = cohort.harmonised()
        assert found.sites == {name: [] for name in sorted(SHIFT)}
        assert np.array_equal(found.features, cohort.features)

    @pytest.mark.parametrize("bayes", [False, True])
    def test_features_without_variance_are_unchanged_and_affect_no_other(self, bayes):
        """The features are constant everywhere, constant in each site, and constant in one site."""
        cohort = Cohort()
        north = cohort.site == "north"
        cohort.features[:, 0] = 0.25
        cohort.features[:, 1] = np.where(north, 0.1, 0.7)
        cohort.features[north, 2] = 0.0
        found = cohort.harmonised(bayes=bayes).features
        assert np.array_equal(found[:, :2], cohort.features[:, :2])
        assert np.array_equal(found[:, 2:], cohort.harmonised(cohort.features[:, 2:], bayes=bayes).features)
        assert np.abs(found[:, 2]).max() < 20

    @pytest.mark.parametrize("dimensions", [1, 2])
    def test_few_features_are_harmonised_too(self, dimensions, capsys):
        """One feature alone cannot be shrunk towards others."""
        cohort = Cohort(dimensions=dimensions)
        mean, _ = cohort.moments(cohort.harmonised().features)
        assert np.abs(mean - mean[0]).max() < 0.3

    def test_an_unknown_value_counts_as_the_mean_of_the_training_subjects(self):
        cohort = Cohort()
        missing = np.flatnonzero(cohort.training)[3], np.flatnonzero(~cohort.training)[2]
        cohort.age[list(missing)] = np.nan
        found = cohort.harmonised(covariates=("age",)).features
        cohort.age[list(missing)] = np.nanmean(cohort.age[cohort.training])
        np.testing.assert_allclose(found, cohort.harmonised(covariates=("age",)).features, atol=1e-5)

    def test_an_uninformative_covariate_is_left_out(self):
        """The covariate is unknown for all, equal for all, equal within each site, or a copy of another."""
        cohort = Cohort()
        cohort.unknown, cohort.one = np.full(120, np.nan), np.ones(120)
        cohort.by_site, cohort.copy = np.where(cohort.site == "west", 5.0, 2.0), 3 * cohort.age - 1
        plain = cohort.harmonised(covariates=("age",)).features
        found = cohort.harmonised(covariates=("unknown", "one", "age", "by_site", "copy")).features
        assert np.array_equal(found, plain)

    def test_covariates_beyond_the_rank_of_the_training_subjects_are_left_out(self):
        cohort = Cohort(subjects=10, sites=("north", "south"))
        names = [f"more{number}" for number in range(9)]
        for name, values in zip(names, np.random.default_rng(3).normal(size=(9, 10)), strict=True):
            setattr(cohort, name, values)
        all_subjects = np.ones(10, dtype=bool)
        found = cohort.harmonised(training=all_subjects, covariates=("age", *names)).features
        assert np.array_equal(found, cohort.harmonised(training=all_subjects, covariates=("age", *names[:6])).features)
        assert np.isfinite(found).all()
