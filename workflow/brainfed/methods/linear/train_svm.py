"""Linear support vector machine on the Gram matrix, C chosen by the accuracy of inner folds.

The hinge loss is a poor criterion: under strong penalties the margins shrink, and its minimum depends little on
the sign. This method predicts the sign alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from brainfed.methods.linear.declaration import SVM, SVMSettings
from brainfed.methods.linear.dual import LinearModel
from brainfed.methods.linear.fitting import LinearTask, TrainingSet, train_linear
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inner_folds import choose_cost, inner_folds
from brainfed.samples.inputs import IntArray, MethodInputs, Outcome


def train(inputs: MethodInputs, settings: SVMSettings, run: Run) -> Outcome:
    """Entry point of the method `svm`."""

    def fit(subjects: TrainingSet) -> LinearModel:
        return fit_svm(subjects, settings.costs)

    return train_linear(
        LinearTask(fit, "margin", settings.training, settings.standardise, SVM.crossing.tensors), inputs, run
    )


def fit_svm(subjects: TrainingSet, costs: Sequence[float]) -> LinearModel:
    """The support vector machine of the best cost, fitted to all the training subjects.

    Args:
        subjects: of the fit.
        costs: ascending. Once a machine has a hard margin, larger costs have the same one.
    """
    gram, labels = subjects.span.gram, subjects.labels
    hard: dict[bytes, SVC] = {}

    def margins(cost: float, kept: IntArray, held_out: IntArray) -> NDArray[np.float64]:
        machine = hard.get(kept.tobytes())
        if machine is None:
            machine = _machine(cost).fit(gram[np.ix_(kept, kept)], labels[kept])
            if _has_hard_margin(machine):
                hard[kept.tobytes()] = machine
        return np.asarray(machine.decision_function(gram[np.ix_(held_out, kept)]))

    cost = choose_cost(costs, labels, inner_folds(labels, subjects.twins, subjects.seed), margins, _error)
    machine = _machine(cost).fit(gram, labels)
    dual = np.zeros(len(labels))
    dual[machine.support_] = machine.dual_coef_[0]
    return subjects.span.model(dual, float(machine.intercept_[0]))


def _machine(cost: float) -> SVC:
    return SVC(C=cost, kernel="precomputed", tol=1e-6)


def _has_hard_margin(machine: SVC) -> bool:
    """Whether no dual variable is at its bound: then the optimality conditions hold for every larger cost."""
    return bool(np.abs(machine.dual_coef_).max() < machine.C)


def _error(labels: IntArray, margins: NDArray[np.float64]) -> float:
    return float(np.mean((margins > 0) != labels))
