"""Centring by site gains nothing from the prevalence of sites where folds are stratified by site and label.

The features are noise with an offset of each site; nothing in them depends on the label. Folds that are stratified by
label alone draw a site's test subjects at random from it: where more of them are patients, fewer of its training
subjects are. Ridge scores a test subject by the training subjects near it.

- Raw features are near those of the same site, whose training labels lean to the other side: AUC below .5.
- Centred by all subjects of a site, its test and training subjects have opposite means: AUC above .5.
- Centred by the training subjects of a site, they are unrelated: AUC .5.

So either centring gains over raw features, by .2 and .1, although there is nothing to find. A site of n subjects has
S patients more than the prevalence of the cohort gives, t of them in the tested one of K folds. The score of features
that are centred by all follows -(S - t) / n, and its covariance with the label Var(t) - S^2 (K - 1) / K^2: positive
where sites differ little in prevalence against the binomial spread. Folds by site and label take Var(t) away.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.cohort.settings import SplitSettings
from brainfed.cohort.splits import split
from brainfed.methods.linear._dual import training_span
from brainfed.methods.linear.train import TrainingSet, fit_ridge
from brainfed.runtime import Streams

SITES, SIZE, DIMENSIONS, REPEATS, FOLDS = 10, 20, 1500, 12, 5
SIMILAR = (9, 11)
DIFFERENT = (5, 15)
"""Patients of every other site."""


def centred(features, site, fitted):
    """The features without the mean of the site's `fitted` subjects."""
    means = np.array([features[(site == code) & fitted].mean(axis=0) for code in range(SITES)])
    return features - means[site]


def labels_of(patients):
    """(n,) labels; the sites in turn have so many patients."""
    return (np.arange(SIZE) < np.resize(patients, SITES)[:, None]).ravel().astype(np.int64)


@cache
def folds_of(stratify, patients):
    """(repeats, n) folds."""
    ids = [f"s{number:03d}" for number in range(SITES * SIZE)]
    included = pd.DataFrame({"subject": ids, "included": True, "twin_group": ids, "reason": ""})
    site, label = np.repeat(np.arange(SITES), SIZE).astype(str), pd.array(labels_of(patients), dtype="Int8")
    people = pd.DataFrame({"subject": ids, "site": site, "diagnosis": label})
    settings = SplitSettings(count=1, folds=FOLDS, stratify=stratify)
    return [split(included, people, settings, Streams(1, repeat))["fold"].to_numpy() for repeat in range(REPEATS)]


@cache
def aucs(stratify, centring, patients):
    """(repeats,) AUC of ridge on noise, the mean over folds; every repeat has other features and another split."""
    site, label = np.repeat(np.arange(SITES), SIZE), labels_of(patients)
    everybody = np.ones(len(site), dtype=bool)
    found = []
    for repeat, fold in enumerate(folds_of(stratify, patients)):
        rng = np.random.default_rng(repeat)
        raw = rng.standard_normal((len(site), DIMENSIONS)) + rng.standard_normal((SITES, DIMENSIONS))[site]
        own = []
        for tested in range(FOLDS):
            training = fold != tested
            fitted = {"none": None, "all": everybody, "training": training}[centring]
            features = raw if fitted is None else centred(raw, site, fitted)
            span = training_span(features, training, "none")
            subjects = TrainingSet(span, label[training], np.arange(int(training.sum())), 0)
            scores = fit_ridge(subjects, [1.0]).scores(features[~training])
            own.append(roc_auc_score(label[~training], scores))
        found.append(np.mean(own))
    return np.array(found)


def t_value(differences):
    """Mean over its standard error over the repeats."""
    return differences.mean() / (differences.std(ddof=1) / np.sqrt(len(differences)))


def gain(stratify, centring, patients=SIMILAR):
    return aucs(stratify, centring, patients) - aucs(stratify, "none", patients)


@pytest.mark.parametrize("centring", ["all", "training"])
@pytest.mark.full("A claim about many draws takes seconds.")
def test_folds_by_label_show_a_gain_that_is_none(centring):
    assert t_value(gain("label", centring)) > 5


@pytest.mark.parametrize(
    "centring", ["all", pytest.param("training", marks=pytest.mark.full("A claim about many draws takes seconds."))]
)
def test_folds_by_site_and_label_show_no_gain(centring):
    assert t_value(gain("site_label", centring)) < 2
    assert t_value(gain("label", centring) - gain("site_label", centring)) > 5


def test_folds_by_label_show_noise_as_better_than_chance_and_those_by_site_and_label_do_not():
    assert t_value(aucs("label", "all", SIMILAR) - 0.5) > 4
    assert t_value(aucs("site_label", "all", SIMILAR) - 0.5) < 2


@pytest.mark.parametrize("stratify", ["label", "site_label"])
@pytest.mark.parametrize(
    "patients", [SIMILAR, pytest.param(DIFFERENT, marks=pytest.mark.full("A claim about many draws takes seconds."))]
)
def test_centred_by_training_subjects_noise_stays_noise(stratify, patients):
    assert abs(t_value(aucs(stratify, "training", patients) - 0.5)) < 3


@pytest.mark.full("A claim about many draws takes seconds.")
@pytest.mark.parametrize("stratify", ["label", "site_label"])
def test_where_sites_differ_much_raw_features_score_by_the_prevalence_of_sites_and_centred_ones_against_it(stratify):
    assert t_value(aucs(stratify, "none", DIFFERENT) - 0.5) > 5
    assert t_value(aucs(stratify, "all", DIFFERENT) - 0.5) < -5
