"""The answer at each privacy budget names the methods from the best on, and those without the accountant nowhere."""

import numpy as np

from brainfed.reporting.intervals import Interval
from brainfed.reporting.tables.privacy.budgets import best_by_budget
from brainfed.reporting.variants import ShownVariant

FOUND = {"worse": 0.6, "better": 0.7, "printed": 0.9, "unscored": np.nan, "other-budget": 0.55}


class Scored:
    """AUCs of all variants, with intervals of .05 to both sides."""

    def interval(self, variant, metric):
        assert metric == "auc"
        return Interval(FOUND[variant], FOUND[variant] - 0.05, FOUND[variant] + 0.05, 25)


def variant(name, privacy="accountant", epsilon=5.0):
    stages = {"features": {"connectivity": "pearson", "views": {}}}
    settings = {"privacy": privacy, "epsilon": epsilon}
    return ShownVariant(name, name, name.title(), "federated", settings, shipped=settings, stages=stages)


def test_the_best_method_of_a_budget_comes_first():
    shown = [variant("worse"), variant("better"), variant("printed", "paper"), variant("unscored")]
    five, ten = best_by_budget([*shown, variant("other-budget", epsilon=10.0)], Scored())
    assert five.startswith("At \u03b5 = 5")
    assert five.index("Better") < five.index("Worse")
    assert "Printed" not in five
    assert "Unscored" not in five
    assert "None is above chance" not in five
    assert ten.startswith("At \u03b5 = 10")
    assert ten.endswith("None is above chance beyond its interval.")
