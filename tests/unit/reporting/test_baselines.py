"""A method beside what its paper compares it with, in numbers and in words."""

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation import compare, compare_with_reference
from brainfed.reporting import PageTests, Scored, ShownVariant
from brainfed.reporting.charts._scores import headline_chart
from brainfed.reporting.text import beside_sentence, find_answer, find_beside, listed
from support.reports.chart_rows import rows_of
from support.reports.made_up_scores import runs_of

BESIDE = ("fedgcn", "fedsage-plus", "fedmlp", "ridge-central")
FEDNI = ShownVariant("fedni", "fedni", "FedNI", "federated", beside=BESIDE)
FEDGCN = ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated")
SAGE = ShownVariant("fedsage-plus", "fedsage-plus", "FedSage+", "federated")
FEDMLP = ShownVariant("fedmlp", "fedmlp", "FedMLP", "federated")
RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"}, topology="central")
EVERYBODY = [FEDMLP, FEDGCN, SAGE, FEDNI, RIDGE]


def page_of(runs, reference):
    held = set(runs["variant"])
    return PageTests(Scored(runs, 0.25), [variant for variant in EVERYBODY if variant.name in held], reference)


def result_of(reference="fedgcn", **values):
    (result,) = find_beside(page_of(runs_of(**values), reference))
    return result


def test_the_leader_is_named_beside_fedni():
    result = result_of(fedni=0.70, fedgcn=0.60, fedsage_plus=0.70, fedmlp=0.80, ridge_central=0.82)
    assert beside_sentence(result).endswith("Ridge (central) has the highest AUC of all methods, 0.82.")
    leading = result_of(fedni=0.90, fedgcn=0.60, fedmlp=0.7)
    assert beside_sentence(leading).endswith("It has the highest AUC of all methods.")


def test_differences_are_fedni_minus_the_baseline():
    """Wobbles (-2 ... 2, twice) shifted by one differ by -0.04 in two runs and 0.01 in eight: sd 0.02108."""
    result = result_of(fedni=0.70, fedgcn=0.60)
    (one,) = result.baselines
    assert one.difference.mean == pytest.approx(0.1)
    reach = 2.26216 * np.sqrt((1 / 10 + 0.25) * 0.0210819**2)
    assert one.difference.low == pytest.approx(0.1 - reach, abs=1e-6)
    assert one.difference.high == pytest.approx(0.1 + reach, abs=1e-6)
    assert "differs by +0.10 [+0.07, +0.13] from FedGCN." in beside_sentence(result)


def test_holm_counts_the_comparisons_that_are_there():
    """p of the lone comparison is doubled beside a second one that is larger."""
    alone = page_of(runs_of(fedni=0.70, fedgcn=0.67), "fedni").differences("fedni", ["fedgcn"], "auc")
    page = page_of(runs_of(fedni=0.70, fedgcn=0.67, ridge_central=0.70), "fedni")
    both = page.differences("fedni", ["fedgcn", "ridge-central"], "auc")
    assert both["fedgcn"][1] == pytest.approx(2 * alone["fedgcn"][1])
    assert page.counted("fedni", ["fedgcn"], "auc").startswith("over all 2 comparisons with FedNI in the tests below")


def test_without_fedni_or_a_baseline_there_is_no_result_and_one_run_has_no_interval():
    assert find_beside(page_of(runs_of(fedgcn=0.7, fedmlp=0.6), "fedgcn")) == []
    assert find_beside(page_of(runs_of(fedni=0.7), "fedni")) == []
    runs = runs_of(fedni=0.7, fedgcn=0.6).query("repeat == 0 and fold == 0")
    assert "differs by +0.06 from FedGCN." in beside_sentence(*find_beside(page_of(runs, "fedgcn")))


def test_the_first_picture_shows_fedni_and_its_baselines_once_each():
    runs = runs_of(fedni=0.70, fedgcn=0.60, fedsage_plus=0.72, fedmlp=0.80, ridge_central=0.82)
    answer = find_answer(page_of(runs, "ridge-central"))
    chart = headline_chart(answer, find_beside(page_of(runs, "ridge-central")))
    assert list(rows_of(chart)["method"]) == [
        "pooled data: Ridge (central)",
        "federated: FedMLP",
        "federated: FedSage+",
        "federated: FedNI",
        "federated: FedGCN",
    ]


@pytest.mark.parametrize("reference", ["fedni", "fedgcn", "ridge-central", "fedmlp"])
def test_a_difference_from_the_reference_has_the_p_of_the_test_table(reference):
    """FedNI minus FedGCN is significant among two and not among four: the page and the table agree."""
    runs = runs_of(fedni=0.70, fedgcn=0.673, fedsage_plus=0.70, fedmlp=0.70, ridge_central=0.70)
    table = compare(runs, reference, "auc", "institution", 0.25).set_index("variant")["p_holm"]
    page = page_of(runs, reference)
    others = [name for name in ("fedgcn", "fedsage-plus", "fedmlp", "ridge-central") if name in set(runs["variant"])]
    found = {name: p for name, (_, p) in page.differences("fedni", others, "auc").items()}
    if reference == "fedni":
        assert found == table.to_dict()
    else:
        assert found[reference] == table["fedni"]
        rest = compare(runs, "fedni", "auc", "institution", 0.25).set_index("variant")["p_holm"].drop(reference)
        assert {name: found[name] for name in rest.index} == rest.to_dict()
        counted = page.counted("fedni", others, "auc")
        assert counted.startswith("over the 4 comparisons with FedNI on this page, metric by metric, against ")


def test_the_p_of_the_table_counts_every_metric_and_scope():
    """Two metrics and two scopes: the smallest p of four tests is multiplied by four on the page as in the table."""
    base = runs_of(fedni=0.70, fedgcn=0.67)
    runs = pd.concat(
        [
            base.assign(metric=metric, scope=scope)
            for metric in ("auc", "accuracy")
            for scope in ("institution", "pooled")
        ]
    )
    (_, p) = page_of(runs, "fedni").differences("fedni", ["fedgcn"], "auc")["fedgcn"]
    alone = compare(runs, "fedni", "auc", "institution", 0.25)["p_corrected"].item()
    assert p == pytest.approx(min(1, 4 * alone))
    assert (
        p == compare_with_reference(runs, "fedni", 0.25).query("metric == 'auc' and scope == 'pooled'")["p_holm"].item()
    )


def test_a_pair_has_one_p_from_both_sides():
    """FedNI minus ridge among FedNI's comparisons, and ridge minus FedNI among the federated methods."""
    runs = runs_of(fedni=0.70, fedgcn=0.68, fedsage_plus=0.69, fedmlp=0.60, ridge_central=0.72)
    tests = page_of(runs, "fedmlp")
    federated = ["fedni", "fedgcn", "fedsage-plus", "fedmlp"]
    one = tests.differences("fedni", ["fedgcn", "ridge-central"], "auc")["ridge-central"][1]
    other = tests.differences("ridge-central", federated, "auc")["fedni"][1]
    assert one == other
    families = [
        compare(runs, centre, "auc", "institution", 0.25).set_index("variant").loc[beside, "p_holm"]
        for centre, beside in (("fedni", "ridge-central"), ("ridge-central", "fedni"))
    ]
    assert one == max(families)


def test_a_variant_without_a_defined_score_is_not_tested():
    runs = runs_of(fedni=0.70, fedgcn=0.68, fedmlp=0.6)
    runs.loc[runs["variant"] == "fedmlp", "value"] = np.nan
    found = page_of(runs, "fedni").differences("fedni", ["fedgcn", "fedmlp"], "auc")
    assert np.isnan(found["fedmlp"][1]) and np.isfinite(found["fedgcn"][1])


def test_lists_in_words():
    lists = ([], ["a"], ["a", "b"], ["a", "b", "c"])
    assert [listed(items, "or") for items in lists] == ["", "a", "a or b", "a, b or c"]
