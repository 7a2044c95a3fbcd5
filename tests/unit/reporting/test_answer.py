"""The sentences of the first screen say what the intervals say, and turn on no limit of p."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.reporting import Interval, PageTests, Scored, ShownVariant, interval
from brainfed.reporting._variants import Counterpart
from brainfed.reporting.text import (
    beside_sentence,
    find_answer,
    find_beside,
    null_sentences,
    null_verdict,
    permutation_means,
    poison_sentences,
    sentences,
    verdict,
)
from brainfed.reporting.text._answer import ALONE, NO_IMAGING, POOLED, REFERENCE, SAME_ALONE, SAME_POOLED, graded
from support.reports.made_up_scores import runs_of

RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"}, topology="central")
SVM = ShownVariant("svm-central", "svm", "Linear SVM", "linear", {"training": "central"}, topology="central")
MOTION = ShownVariant("motion", "motion", "Motion", "baseline", topology="central")
RIDGE_LOCAL = ShownVariant("ridge-local", "ridge", "Ridge", "linear", {"training": "local"}, topology="local")
LOCAL = ShownVariant("localgcn", "localgcn", "LocalGCN", "graph", {"curve_every": 10}, topology="local")
CENTRAL = ShownVariant("centralgcn", "centralgcn", "CentralGCN", "graph", {"curve_every": 10}, topology="central")
COUNTERPARTS = {"alone": Counterpart("localgcn"), "pooled": Counterpart("centralgcn")}
FEDGCN = ShownVariant(
    "fedgcn", "fedgcn", "FedGCN", "federated", {"rounds": 10, "noise": 0.01}, topology="federated",
    counterparts=COUNTERPARTS,
)  # fmt: skip
FEDNI = replace(FEDGCN, name="fedni", method="fedni", method_title="FedNI")
QUIET = replace(FEDGCN, name="fedgcn-no-noise", settings={"rounds": 10, "noise": 0.0})


def found_in(runs, variants, reference):
    return find_answer(PageTests(Scored(runs, 0.25), variants, reference))


def answer_of(variants, **values):
    return found_in(runs_of(**values), variants, "ridge-central")


def test_the_best_federated_method_is_the_one_with_the_highest_mean():
    answer = answer_of(
        [FEDGCN, QUIET, RIDGE, LOCAL], fedgcn=0.60, fedgcn_no_noise=0.62, ridge_central=0.7, localgcn=0.5
    )
    assert (answer.chosen, answer.candidates) == (QUIET, 2)
    assert answer.score.mean == pytest.approx(0.62) and answer.score.runs == 10


def test_an_oracle_or_another_control_is_never_the_answer():
    oracle = replace(FEDGCN, name="fedni-true-nodes", stages={"fusing": {"nodes": "true"}})
    answer = answer_of([FEDGCN, oracle, LOCAL], fedgcn=0.60, fedni_true_nodes=0.9, localgcn=0.5)
    assert answer.chosen == FEDGCN and answer.candidates == 1 and oracle.title.endswith("an oracle)")


def test_a_poisoned_variant_is_never_the_answer_and_is_named_so():
    attack = {"attack": "paf", "attacked": 0.25, "defence": "none"}
    poisoned = replace(FEDGCN, name="fedgcn-x", settings=attack)
    swept = replace(FEDGCN, name="fedgcn-paf-attacked0.5", settings=attack | {"attacked": 0.5, "defence": "median"})
    clean = replace(FEDGCN, name="fedgcn-paf-attacked0", settings=attack | {"attacked": 0.0})
    answer = answer_of(
        [poisoned, swept, clean, LOCAL], fedgcn_x=0.8, localgcn=0.5, **{"fedgcn-paf-attacked0": 0.6, swept.name: 0.7}
    )
    assert ((answer.chosen, answer.candidates), poisoned.title) == ((clean, 1), "FedGCN (x, poisoned)")
    assert swept.title == "FedGCN (PAF, attacked = 0.5)"
    assert poison_sentences([poisoned, swept, clean, LOCAL], 5) == [
        "2 or 3 of 5 institutions poisoned. PAF: what they send is replaced by a far point, each in a direction of its "
        "own.",
        "Defences of the server: median.",
    ]
    defended = replace(clean, name="fedgcn-median", settings=clean.settings | {"defence": "median"})
    assert poison_sentences([defended], 5) == ["Defences of the server: median."]


def test_the_verdict_leads_with_the_estimate_and_its_interval():
    answer = answer_of([FEDGCN, CENTRAL, LOCAL], fedgcn=0.70, centralgcn=0.90, localgcn=0.50)
    assert re.fullmatch(
        r"FedGCN reaches an AUC of 0\.70 \[0\.6\d, 0\.7\d\]: "
        r"\+0\.20 \[\+0\.1\d, \+0\.2\d\] beside the same model alone, "
        r"\u22120\.20 \[\u22120\.2\d, \u22120\.1\d\] beside the same model on pooled data",
        verdict(answer),
    )


@pytest.mark.parametrize("gain", np.linspace(0.0, 0.06, 25).tolist())
def test_the_verdict_has_one_form_on_both_sides_of_every_limit_of_p(gain):
    """The same words stand around the numbers, whether p is .6, .051, .049 or .001."""
    answer = answer_of([FEDGCN, LOCAL], fedgcn=0.60 + gain, localgcn=0.60)
    said = verdict(answer) + " ".join(sentences(answer))
    assert not re.search(r"signific|p\u00a0|beats|loses|Holm", said)
    shape = re.sub(r"[+\u2212]?\d\.\d+", "N", verdict(answer))
    assert shape == "FedGCN reaches an AUC of N [N, N]: N [N, N] beside the same model alone"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.06, 0.09, "anything between a loss of 0.06 and a gain of 0.09"),
        (0.02, 0.09, "a gain of 0.02 to 0.09"),
        (-0.09, -0.02, "a loss of 0.02 to 0.09"),
        (0.001, 0.09, "a gain of 0.001 to 0.090"),
        (0.0004, 0.0006, "a gain of 0.0004 to 0.0006"),
        (0.0, 0.09, "anything between no difference and a gain of 0.09"),
        (-0.001, 0.09, "anything between no difference and a gain of 0.09"),
        (-0.09, 0.001, "anything between a loss of 0.09 and no difference"),
        (-0.09, -0.001, "a loss of 0.001 to 0.090"),
        (-0.0001, 0.0001, "no difference above 0.001"),
    ],
)
def test_words_are_graded_by_where_the_interval_lies(low, high, said):
    assert graded(Interval((low + high) / 2, low, high, 10)) == said


def test_the_numbers_behind_the_verdict_give_the_interval_in_words():
    answer = answer_of([FEDGCN, RIDGE, LOCAL], fedgcn=0.701, ridge_central=0.700, localgcn=0.699)
    pooled = answer.against(POOLED).difference
    assert pooled.low < 0 < pooled.high
    assert all("the data allow anything between a loss of 0.0" in sentence for sentence in sentences(answer))


def test_a_counterpart_and_the_strongest_of_its_kind_both_stand_beside_the_method():
    """Local ridge is stronger than the local counterpart: a gain over that is no gain over learning alone."""
    answer = answer_of(
        [FEDGCN, RIDGE, RIDGE_LOCAL, LOCAL, CENTRAL],
        fedgcn=0.7, ridge_central=0.9, ridge_local=0.8, localgcn=0.5, centralgcn=0.75,
    )  # fmt: skip
    assert (answer.against(SAME_ALONE).other, answer.against(ALONE).other) == (LOCAL, RIDGE_LOCAL)
    assert (answer.against(SAME_POOLED).other, answer.against(POOLED).other) == (CENTRAL, RIDGE)
    said = sentences(answer)
    assert said[0].startswith("LocalGCN, the same model alone, reaches 0.50: the federated method differs by +0.20 [")
    assert any(
        one.startswith(
            "Ridge (local), the strongest model alone, reaches 0.80: the federated method differs by \u22120.1"
        )
        for one in said
    )
    assert len(said) == 4


def test_a_counterpart_that_is_the_strongest_is_named_once():
    answer = answer_of([FEDGCN, LOCAL], fedgcn=0.7, localgcn=0.5)
    (said,) = sentences(answer)
    assert said.startswith("LocalGCN, the same model alone and the strongest model alone, reaches 0.50")


def test_without_its_counterpart_a_method_is_compared_with_the_strongest_and_the_page_says_so():
    missing = {"alone": Counterpart(missing="add localgcn"), "pooled": Counterpart(missing="add centralgcn")}
    answer = answer_of(
        [replace(FEDGCN, counterparts=missing), RIDGE_LOCAL, RIDGE], fedgcn=0.7, ridge_local=0.6, ridge_central=0.8
    )
    assert "beside the strongest model alone, " in verdict(answer)
    assert verdict(answer).endswith("beside the strongest model on pooled data")
    advice = "FedGCN has no local or pooled counterpart in this experiment: add localgcn and centralgcn."
    assert advice in sentences(answer)


def test_a_counterpart_that_must_be_defined_is_not_written_out_above_the_results():
    defined = "add a variant {method: centralgcn}"
    missing = {"alone": Counterpart(missing="add localgcn"), "pooled": Counterpart(missing=defined)}
    answer = answer_of(
        [replace(FEDGCN, counterparts=missing), RIDGE_LOCAL, RIDGE], fedgcn=0.7, ridge_local=0.6, ridge_central=0.8
    )
    (said,) = [one for one in sentences(answer) if "counterpart in this experiment" in one]
    assert said == (
        "FedGCN has no local or pooled counterpart in this experiment: the variants to add stand under Results, "
        "What federation changes."
    )


def test_a_counterpart_with_another_model_is_called_so():
    local = Counterpart("localgcn", ["Their model is another one."], "", "another model")
    other = replace(FEDGCN, counterparts={"alone": local})
    answer = answer_of([other, LOCAL], fedgcn=0.7, localgcn=0.6)
    assert verdict(answer).endswith("beside LocalGCN alone, another model")
    assert "the same model" not in verdict(answer)
    assert sentences(answer)[-1] == "Their model is another one."
    assert sentences(answer)[0].startswith("LocalGCN alone, another model and the strongest model alone, reaches 0.60")


def test_pooled_data_are_represented_by_their_strongest_model():
    """Above the reference and below another pooled model is no claim to beat pooled data."""
    answer = answer_of([FEDGCN, RIDGE, SVM], fedgcn=0.8, ridge_central=0.7, svm_central=0.9)
    assert (answer.against(POOLED).other, answer.against(REFERENCE).other) == (SVM, RIDGE)
    assert sentences(answer)[0].startswith("Linear SVM (central), the strongest model on pooled data, reaches 0.90")


def test_the_best_method_without_imaging_stands_beside_it():
    answer = answer_of([FEDGCN, RIDGE, MOTION], fedgcn=0.61, ridge_central=0.9, motion=0.60)
    assert answer.against(NO_IMAGING).other == MOTION
    assert sentences(answer)[1].startswith("Without imaging, Motion reaches 0.60: the federated method differs by ")


def test_a_reference_that_is_federated_is_named():
    answer = found_in(runs_of(fedgcn=0.6, fedgcn_no_noise=0.8), [FEDGCN, QUIET], "fedgcn")
    assert re.search(
        r"FedGCN \(no noise\), the best of 2 federated methods, .*: \+0\.20 .* beside FedGCN$", verdict(answer)
    )
    alone = found_in(runs_of(fedgcn=0.6), [FEDGCN], "fedgcn")
    assert alone.comparisons == () and verdict(alone).endswith("; it has nothing to be compared with")


def test_an_unseen_site_has_no_local_model():
    runs = runs_of(fedgcn=0.70, localgcn=0.50).query("repeat == 0")
    sites = runs.assign(scope="institution:site-" + runs["fold"].astype(str))
    variants = [FEDGCN, LOCAL]
    answer = found_in(pd.concat([runs, sites]), variants, "fedgcn")
    assert answer.unseen
    assert verdict(answer).endswith("beside the same model of the other sites, averaged")
    twice_tested = pd.concat([sites, sites.assign(scope="institution:site-0")])
    assert not found_in(pd.concat([runs, twice_tested]), variants, "fedgcn").unseen


def test_without_a_federated_method_there_is_no_answer():
    answer = answer_of([RIDGE, LOCAL], ridge_central=0.7, localgcn=0.6)
    assert answer.chosen is None and verdict(answer) == "No federated method was run"
    assert len(sentences(answer)) == 1


@pytest.mark.parametrize(
    ("federated", "said"), [([FEDGCN], "the federated method"), ([FEDGCN, QUIET], "all 2 federated methods")]
)
def test_a_federated_method_without_an_auc_was_run(federated, said):
    """A test of ten in a small institution may hold one class: nothing is undefined but the AUC."""
    runs = runs_of(fedgcn=0.6, fedgcn_no_noise=0.7, ridge_central=0.7).assign(value=np.nan)
    runs = runs[runs["variant"].isin([variant.name for variant in (*federated, RIDGE)])]
    answer = found_in(runs, [*federated, RIDGE], "ridge-central")
    assert answer.chosen is None
    assert verdict(answer) == f"The AUC of {said} is undefined in every institution"
    assert not any("No federated method" in one for one in sentences(answer))


def test_a_single_run_has_no_interval():
    runs = runs_of(fedgcn=0.7, ridge_central=0.8).query("repeat == 0 and fold == 0")
    answer = found_in(runs, [FEDGCN, RIDGE], "ridge-central")
    assert sentences(answer)[0].endswith("; 1 run, too few for an interval.")
    assert "[" not in verdict(answer)


@pytest.mark.parametrize(("count", "shown"), [(2, False), (3, False), (4, False), (5, True)])
def test_an_interval_of_few_runs_stands_in_no_sentence(count, shown):
    runs = runs_of(fedgcn=0.7, localgcn=0.6, fedni=0.65, ridge_central=0.8)
    runs = runs[5 * runs["repeat"] + runs["fold"] < count]
    compared = PageTests(Scored(runs, 0.25), [FEDGCN, LOCAL, RIDGE, FEDNI], "ridge-central")
    answer = find_answer(compared)
    said = [verdict(answer), *sentences(answer), *map(beside_sentence, find_beside(compared))]
    assert all(("[" in one or "interval 0" in one) == shown for one in said)
    assert ("the data allow" in " ".join(said)) == shown
    assert all((f"{count} runs, too few for an interval" in one) != shown for one in said)


@pytest.mark.parametrize(("gain", "said"), [
    (0.0, "there is no difference in any of 10 runs."),
    (-0.056, "the federated method differs by \u22120.056 in every one of 10 runs."),
])  # fmt: skip
def test_equal_runs_are_no_certainty(gain, said):
    """A saturated demo: 1.000 against 1.000 in every run says nothing about other data."""
    runs = runs_of(fedgcn=1.0, localgcn=1.0)
    runs = runs.assign(value=np.where(runs["variant"] == "fedgcn", 1.0 + min(gain, 0.0), 1.0))
    answer = found_in(runs, [FEDGCN, LOCAL], "localgcn")
    assert sentences(answer)[0].endswith(f": {said}")
    assert "[" not in verdict(answer) and "(in all 10 runs)" in verdict(answer)
    assert answer.score.in_words().endswith("(in all 10 runs)")


def test_the_interval_is_the_corrected_one():
    """0.59 and 0.61: variance 0.0002, error sqrt((1/2 + 1/4) 0.0002), t(0.975, 1) = 12.7062; cut at 0 and 1."""
    runs = runs_of(fedgcn=0.6).head(2).assign(value=[0.59, 0.61])
    found = interval(runs, "fedgcn", "auc", 0.25)
    reach = 12.7062 * np.sqrt(0.75 * 0.0002)
    assert (found.low, found.high) == (pytest.approx(0.6 - reach, abs=1e-5), pytest.approx(0.6 + reach, abs=1e-5))
    wide = interval(runs.assign(value=[0.5, 0.7]), "fedgcn", "auc", 0.25)
    assert (wide.low, wide.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "method", "title"),
    [
        ("fedgcn", "fedgcn", "FedGCN"),
        ("fedgcn-no-noise", "fedgcn", "FedGCN (no noise)"),
        ("mine", "fedgcn", "mine"),
        ("fedavg-dp", "fedavg-stgcn", "FedAvg + DP"),
        ("fedavg-dp-budget-epsilon2", "fedavg-stgcn", "FedAvg + DP (budget, epsilon = 2)"),
        ("fedgnn-dp-small", "fedgnn", "FedGNN + DP (small)"),
        ("fedavg-dpx", "fedavg-stgcn", "fedavg-dpx"),
    ],
)
def test_titles(name, method, title):
    assert ShownVariant(name, method, "FedGCN", "federated", {"epsilon": 2.0}).title == title


def permuted_runs(permutations):
    """FedGCN 0.49 and 0.51 in turn, LocalGCN 0.60 with a wobble: the one holds 0.5, the other does not."""
    rows = [("majority", 0.5, 0.0), ("fedgcn", 0.5, 0.01), ("localgcn", 0.6, 0.01)]
    return pd.DataFrame(
        [(name, repeat, fold, "institution", "auc", mean + (-1) ** repeat * reach)
         for name, mean, reach in rows for repeat in range(permutations) for fold in range(2)],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )  # fmt: skip


def test_a_null_control_counts_the_intervals_that_hold_chance():
    means = permutation_means(permuted_runs(20), [FEDGCN, LOCAL])
    assert "from 0.500 to 0.600 (2 methods), where chance is 0.5" in null_verdict(means)
    (said,) = null_sentences(means)
    assert said.startswith("The 95 % interval over 20 permutations holds 0.5 for 1 of 2 methods; by luck alone")


def test_few_permutations_are_called_few():
    assert "is one permutation" in null_sentences(permutation_means(permuted_runs(1), [FEDGCN, LOCAL]))[0]
    assert "an illustration" in null_sentences(permutation_means(permuted_runs(4), [FEDGCN, LOCAL]))[0]


def test_an_interval_counts_the_runs_in_which_both_are_defined():
    """An undefined AUC of either takes its run out."""
    runs = runs_of(fedgcn=0.7, localgcn=0.6)
    hole = (runs["variant"] == "localgcn") & (runs["repeat"] == 0) & (runs["fold"] == 0) & (runs["metric"] == "auc")
    assert hole.any()
    runs.loc[hole, "value"] = float("nan")
    scored, every = Scored(runs, 0.25), len(runs[["repeat", "fold"]].drop_duplicates())
    assert scored.difference("fedgcn", "localgcn", "auc").runs == every - 1
    assert scored.differences("localgcn", ["fedgcn"], "auc")["fedgcn"][0].runs == every - 1
    assert scored.interval("fedgcn", "auc").runs == every
