"""Ridge over nine penalties, chosen by leave-one-out or by inner folds: scikit-learn and `methods.linear`.

A penalty of scikit-learn's belongs to rows as they are, one of ours to rows of mean squared norm 1: scikit-learn is
given ours times that norm.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from made_up_cohort import MadeUpCohort
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from brainfed.methods.linear.declaration import PENALTIES, RidgeSettings
from brainfed.methods.linear.train import train_ridge
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, hidden_labels, institution_folds
from peers.comparison import Comparison, Result, compared, named, timed

TOLERANCE = 1e-8


def leave_one_out(quick: bool) -> Comparison:
    """Margins of all test subjects, the penalty by leave-one-out on the training subjects."""
    repeats = _repeats(2 if quick else 5, quick)
    # The mean squared norm of z-scored rows is their number of columns.
    alphas = np.array(PENALTIES) * repeats[0].features[0].shape[1]
    models = [[make_pipeline(StandardScaler(), RidgeCV(alphas)) for _ in range(one.folds)] for one in repeats]
    settings = RidgeSettings(training="central", standardise="institution", choice="leave_one_out")
    return _compared("ridge, leave-one-out", "StandardScaler, RidgeCV", repeats, models, settings)


def inner_folds(quick: bool) -> Comparison:
    """Margins of all test subjects, the penalty by inner folds of the training subjects."""
    repeats = _repeats(1, quick)
    models = [[_search(one, fold) for fold in range(one.folds)] for one in repeats]
    settings = RidgeSettings(training="central", standardise="none", choice="inner_folds")
    return _compared("ridge, inner folds", "GridSearchCV of Ridge", repeats, models, settings)


def _repeats(count: int, quick: bool) -> list[MethodInputs]:
    """Made-up cohorts whose labels depend on the features: with random ones the largest penalty would always win."""
    features, subjects = (500, 150) if quick else (7381, 871)
    made = [MadeUpCohort(features, subjects, repeat).method_inputs() for repeat in range(count)]
    random = np.random.default_rng(5)
    signal = made[0].features[0] @ random.standard_normal(features)
    truth = (signal + 0.5 * signal.std() * random.standard_normal(subjects) > 0).astype(np.int64)
    return [replace(one, labels=hidden_labels(truth, one.fold)) for one in made]


def _search(inputs: MethodInputs, fold: int) -> GridSearchCV:
    training = inputs.training(fold)
    rows = inputs.features[0][training].astype(np.float64)
    norm = np.square(rows - rows.mean(axis=0)).sum(axis=1).mean()
    split = PredefinedSplit(institution_folds(inputs, fold)[training])
    return GridSearchCV(Ridge(), {"alpha": np.array(PENALTIES) * norm}, scoring="neg_mean_squared_error", cv=split)


def _compared(
    name: str,
    estimator: str,
    repeats: Sequence[MethodInputs],
    models: Sequence[Sequence[BaseEstimator]],
    settings: RidgeSettings,
) -> Comparison:
    # scikit-learn computes in float64, and would convert float32 anew in every fit.
    rows = repeats[0].features[0].astype(np.float64)

    def theirs() -> Result:
        margins = np.full((len(repeats), *repeats[0].labels.shape), np.nan)
        for repeat, inputs in enumerate(repeats):
            for fold, model in enumerate(models[repeat]):
                training, tested = inputs.training(fold), inputs.tested(fold)
                model.fit(rows[training], 2.0 * inputs.labels[fold, training] - 1)
                margins[repeat, fold, tested] = model.predict(rows[tested])
        return margins

    def ours() -> Result:
        return np.stack([train_ridge(inputs, settings, Run()).scores[..., 1] for inputs in repeats])

    shape = f"{len(rows)} subjects, {rows.shape[1]:,} features"
    runs = f"{len(PENALTIES)} penalties, {sum(map(len, models))} runs"
    peer = f"{named('scikit-learn')} ({estimator})"
    return compared(name, peer, f"{shape}, {runs}: margins", timed(theirs), timed(ours), TOLERANCE)
