"""Baselines without any imaging.

Majority uses the institution, phenotype the site, sex and age, motion the mean framewise
displacement. The last two are logistic regressions on the pooled training subjects.
"""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from brainfed.engines import record_pooling, sizes_of
from brainfed.federation import Ledger, record_help
from brainfed.methods.baselines.declaration import (
    MAJORITY,
    MOTION,
    PHENOTYPE,
    MajoritySettings,
    MotionSettings,
    PhenotypeSettings,
)
from brainfed.runtime import Float64
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, require_training_subjects

Columns = list[int]

PREVALENCE_BYTES = 8
"""Share of one class, float64; the share of the last class is 1 minus the others."""


def majority(inputs: MethodInputs, settings: MajoritySettings, run: Run) -> Outcome:  # noqa: ARG001
    """Share of every class among the training subjects of the subject's institution.

    An institution without training subjects in the fold takes the mean share of the others.

    Raises:
        UserError: a fold has no training subject.
    """
    ledger, size = Ledger(MAJORITY.crossing.tensors), PREVALENCE_BYTES * (inputs.classes - 1)
    scores = np.full((*inputs.labels.shape, inputs.classes), np.nan)
    member_scores = scores.copy()
    for fold in range(inputs.folds):
        training = require_training_subjects(inputs, fold)
        shares = {}
        for institution in np.unique(inputs.institution[training]).tolist():
            labels = inputs.labels[fold, training & (inputs.institution == institution)]
            shares[institution] = [float((labels == code).mean()) for code in range(inputs.classes)]
        for institution in np.unique(inputs.institution[inputs.tested(fold)]).tolist():
            rows = inputs.tested(fold) & (inputs.institution == institution)
            if institution not in shares and not ledger.rows():
                sizes = sizes_of(inputs.institution)
                helpers = {helper: sizes[helper] for helper in shares}
                record_help(ledger, helpers, {institution: sizes[institution]}, {"prevalence": ((), size)})
            others = [np.mean(share) for share in zip(*shares.values(), strict=True)]
            scores[fold, rows] = shares.get(institution, others)
        for institution, share in shares.items():
            member_scores[fold, training & (inputs.institution == institution)] = share
        run.progress(fold + 1, inputs.folds, "fold")
    counts = {"parameters": inputs.classes - 1}
    return Outcome(scores, "probability", counts=counts, crossings=ledger.rows(), member_scores=member_scores)


def phenotype(inputs: MethodInputs, settings: PhenotypeSettings, run: Run) -> Outcome:
    """Logistic regression on site, sex (one column a value seen in training) and standardised age.

    An unknown age is set to the training subjects' mean age, and one more column marks it. An unknown sex is a
    value of its own. All columns of a site that was not seen in training are 0.

    Raises:
        UserError: a fold has no training subject.
    """
    known = inputs.phenotypes
    columns = np.column_stack([known.of("site"), known.of("sex"), known.of("age")]).astype(np.float64)
    ledger = Ledger(PHENOTYPE.crossing.tensors)
    record_pooling(inputs, ledger, "site", "sex", "age")
    return _logistic(inputs, columns, [0, 1], [2], settings.cost, ledger, run)


def motion(inputs: MethodInputs, settings: MotionSettings, run: Run) -> Outcome:
    """Logistic regression on the standardised mean framewise displacement.

    An unknown displacement is set to the training subjects' mean, and one more column marks it.

    Raises:
        UserError: a fold has no training subject.
    """
    ledger = Ledger(MOTION.crossing.tensors)
    record_pooling(inputs, ledger, "mean_fd")
    return _logistic(inputs, inputs.phenotypes.of("mean_fd")[:, None], [], [0], settings.cost, ledger, run)


def _logistic(
    inputs: MethodInputs,
    columns: Float64,
    categories: Columns,
    measures: Columns,
    cost: float,
    ledger: Ledger,
    run: Run,
) -> Outcome:
    scores = np.full((*inputs.labels.shape, inputs.classes), np.nan)
    member_scores = scores.copy()
    parameters = 0
    for fold in range(inputs.folds):
        training, tested = require_training_subjects(inputs, fold), inputs.tested(fold)
        labels = inputs.labels[fold, training]
        if labels.min() == labels.max():
            scores[fold, tested] = member_scores[fold, training] = np.arange(inputs.classes) == labels[0]
        else:
            regression = _regression(categories, measures, cost).fit(columns[training], labels)
            scores[fold, tested] = _probabilities(regression, columns[tested], inputs.classes)
            member_scores[fold, training] = _probabilities(regression, columns[training], inputs.classes)
            parameters = max(parameters, regression[-1].coef_.size + regression[-1].intercept_.size)
        run.progress(fold + 1, inputs.folds, "fold")
    counts = {"parameters": parameters}
    return Outcome(scores, "probability", counts=counts, crossings=ledger.rows(), member_scores=member_scores)


def _probabilities(regression: Pipeline, columns: Float64, classes: int) -> Float64:
    """(n, classes) probabilities; 0 of a class that no training subject has."""
    probabilities = np.zeros((len(columns), classes))
    probabilities[:, regression.classes_] = regression.predict_proba(columns)
    return probabilities


def _regression(categories: Columns, measures: Columns, cost: float) -> Pipeline:
    filled = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    design = ColumnTransformer(
        [
            ("category", OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
            ("measure", filled, measures),
            ("unknown", MissingIndicator(features="all"), measures),
        ]
    )
    return make_pipeline(design, LogisticRegression(C=cost, tol=1e-8, max_iter=1000))
