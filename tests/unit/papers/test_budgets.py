"""The answer at each privacy budget names the methods from the best on, and those without the accountant nowhere."""

import json
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from brainfed.papers._fglbc import BUDGETS, COUNTS, best_by_budget, printed_accuracies, read_budgets, wrapped_sentence
from brainfed.reporting import Interval, ShownVariant

FOUND = {"worse": 0.6, "better": 0.7, "printed": 0.9, "unscored": np.nan, "other-budget": 0.55}


class Scored:
    """AUCs of all variants, with intervals of .05 to both sides."""

    def interval(self, variant, metric):
        assert metric in ("auc", "accuracy")
        return Interval(FOUND[variant], FOUND[variant] - 0.05, FOUND[variant] + 0.05, 25)

    def differences(self, reference, others, metric):
        assert metric == "auc"
        gaps = {other: FOUND[other] - FOUND[reference] for other in others}
        return {
            other: (Interval(gap, gap - 0.05, gap + 0.05, 25), 0.01 if gap < -0.08 else 0.2)
            for other, gap in gaps.items()
        }


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
    assert "No interval" not in five
    assert five.endswith("Better is significantly ahead of Worse.")
    assert "ahead" not in best_by_budget([variant("better")], Scored())[0]
    assert ten.startswith("At \u03b5 = 10")
    assert ten.endswith("No interval lies above 0.5.")


def test_a_best_method_without_a_significant_lead_is_named_so(monkeypatch):
    monkeypatch.setitem(FOUND, "worse", 0.65)
    (found,) = best_by_budget([variant("worse"), variant("better")], Scored())
    assert found.endswith("Better is significantly ahead of none of them.")


def test_the_plan_stands_beside_what_was_spent_and_what_is_printed(tmp_path):
    path = tmp_path / "privacy.json"
    path.write_text(json.dumps([{"epsilon_spent": 5.5, "delta": 1e-5}, {"epsilon_spent": 4.0, "delta": 1e-5}]))
    private = replace(variant("better"), method="fglbc", privacy=(str(path),))
    outline = SimpleNamespace(
        variants=[private, variant("unscored", "none")], paper="fglbc", split={"institutions": "random", "count": 4}
    )
    table = read_budgets(SimpleNamespace(outline=outline, scored=Scored()))
    (row,) = table.rows
    planned, used, accuracy, auc, *printed = row.cells
    assert [planned.text, used.text, used.marked] == ["5", "5.5", True]
    assert (accuracy.text, accuracy.note) == (auc.text, auc.note) == ("0.70", "[0.65, 0.75]")
    assert [cell.value for cell in printed] == [0.7365, 0.8398, 0.8447]
    assert (
        read_budgets(SimpleNamespace(outline=SimpleNamespace(variants=outline.variants[1:]), scored=Scored())) is None
    )


def test_scans_shorter_than_a_window_are_counted(tmp_path):
    shown = []
    for number, (window, short) in enumerate([(128, 166), (64, 0), (128, 166)]):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"counts": {"wrapped_subjects": short}}))
        held = variant(f"net-{number}")
        shown.append(replace(held, settings={**held.settings, "window": window}, costs=(str(path),)))
    found = wrapped_sentence([variant("ridge"), *shown])
    assert found.endswith("to fill a window: 166 shorter than the window of 128 volumes.")
    assert wrapped_sentence([variant("ridge"), shown[1]]) == ""


@pytest.mark.parametrize(
    ("method", "changes", "count", "printed"),
    [
        ("fglbc", {}, 4, (0.7816, 0.8934, 0.9325)),
        ("fglbc", {"privacy": "paper", "epsilon": 2.0}, 4, (0.7098, 0.7927, 0.8012)),
        ("fedgnn", {"epsilon": 20.0}, 4, (0.7615, 0.8465, 0.8881)),
        ("fedavg-stgcn", {}, 10, (None, None, 0.7257)),
        ("fedavg-stgcn", {"epsilon": 5.0}, 10, (None, None, None)),
        ("fglbc", {"privacy": "none"}, 4, (None, None, None)),
        ("fglbc", {"epsilon": 3.0}, 4, (None, None, None)),
        ("ridge-dp", {}, 4, (None, None, None)),
    ],
)
def test_printed_accuracies_are_found_by_budget_and_institutions(method, changes, count, printed):
    settings = {"privacy": "accountant", "epsilon": 10.0} | changes
    outline = SimpleNamespace(split={"institutions": "random", "count": count})
    assert printed_accuracies(outline, ShownVariant(method, method, method, "federated", settings)) == printed


def test_the_printed_tables_agree():
    """The paper prints .9325 and .8628 in Table 1, .9324 and .8623 in Table 2, for the same runs."""
    for method, budgets in BUDGETS.items():
        assert budgets[10][2] == pytest.approx(COUNTS[method][4], abs=6e-4)
        assert all(later > earlier for one in zip(*budgets.values(), strict=True) for earlier, later in pairwise(one))
