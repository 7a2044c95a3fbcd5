"""The sentences of the first screen say what the corrected tests say, and no more."""

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation.statistics import compare
from brainfed.reporting.answer import ALONE, NO_IMAGING, POOLED, REFERENCE, find_answer
from brainfed.reporting.answer import LOCAL as CONFIGURED
from brainfed.reporting.answer_words import sentences, verdict
from brainfed.reporting.intervals import interval, signed
from brainfed.reporting.null_control import null_sentences, null_verdict, permutation_means
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import ShownVariant

RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"})
SVM = ShownVariant("svm-central", "svm", "Linear SVM", "linear", {"training": "central"})
MOTION = ShownVariant("motion", "motion", "Motion", "floor")
RIDGE_LOCAL = ShownVariant("ridge-local", "ridge", "Ridge", "linear", {"training": "local"})
LOCAL = ShownVariant("localgcn", "localgcn", "LocalGCN", "graph", {"curve_every": 10})
FEDGCN = ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.01})
QUIET = ShownVariant("fedgcn-no-noise", "fedgcn", "FedGCN", "federated", {"rounds": 10, "noise": 0.0})
WOBBLE = np.array([-0.02, -0.01, 0.0, 0.01, 0.02, -0.02, -0.01, 0.0, 0.01, 0.02])


def runs_of(**values):
    """Institution AUCs of ten runs: each variant its mean and a wobble of its own."""
    return pd.DataFrame(
        [
            (variant.replace("_", "-"), index // 5, index % 5, "institution", "auc", mean + wobble)
            for number, (variant, mean) in enumerate(values.items())
            for index, wobble in enumerate(np.roll(WOBBLE, number))
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )


def found_in(runs, variants, reference):
    return find_answer(PageTests(Scored(runs, 0.25), variants, reference), "localgcn")


def answer_of(variants, **values):
    return found_in(runs_of(**values), variants, "ridge-central")


def test_the_best_federated_method_is_the_one_with_the_highest_mean():
    answer = answer_of(
        [FEDGCN, QUIET, RIDGE, LOCAL], fedgcn=0.60, fedgcn_no_noise=0.62, ridge_central=0.7, localgcn=0.5
    )
    assert answer.chosen == QUIET
    assert answer.candidates == 2
    assert answer.score.mean == pytest.approx(0.62)
    assert answer.score.runs == 10


def test_a_clear_gain_and_a_clear_loss_are_said():
    answer = answer_of([FEDGCN, RIDGE, LOCAL], fedgcn=0.70, ridge_central=0.90, localgcn=0.50)
    assert verdict(answer) == "Federation beats learning alone and falls short of pooling all data"
    text = sentences(answer)
    assert text[0].startswith("The only federated method, FedGCN, reaches an AUC of 0.700 (95 % interval 0.6")
    assert "Ridge (central), on everybody’s pooled data, reaches 0.900: the federated method loses −0.200" in text[1]
    assert "with LocalGCN: the federated method gains +0.200" in text[2]


def test_a_difference_within_the_noise_is_not_called_one():
    answer = answer_of([FEDGCN, RIDGE, LOCAL], fedgcn=0.701, ridge_central=0.700, localgcn=0.699)
    pooled = answer.against(POOLED)
    assert not pooled.significant
    assert pooled.difference.low < 0 < pooled.difference.high
    assert verdict(answer) == (
        "Federation shows no significant gain over learning alone "
        "and does not differ significantly from pooling all data"
    )
    assert all("is not significant (p\u00a0=\u00a0" in sentence for sentence in sentences(answer)[1:])


def test_an_institution_alone_is_represented_by_its_strongest_model():
    answer = answer_of(
        [FEDGCN, RIDGE, RIDGE_LOCAL, LOCAL], fedgcn=0.7, ridge_central=0.9, ridge_local=0.8, localgcn=0.5
    )
    assert answer.against(ALONE).other == RIDGE_LOCAL
    assert answer.against(CONFIGURED).other == LOCAL
    assert verdict(answer).startswith("Federation loses to learning alone")
    said = sentences(answer)
    assert "reaches 0.800 with Ridge (local): the federated method loses −0.100" in said[2]
    assert len(said) == 3


def test_pooled_data_are_represented_by_their_strongest_model():
    """Above the reference and below another pooled model is no claim to beat pooled data."""
    answer = answer_of([FEDGCN, RIDGE, SVM], fedgcn=0.8, ridge_central=0.7, svm_central=0.9)
    assert answer.against(POOLED).other == SVM
    assert answer.against(REFERENCE).other == RIDGE
    assert verdict(answer) == "Federation falls short of pooling all data"
    assert sentences(answer)[1].startswith("Linear SVM (central), on everybody\u2019s pooled data, reaches 0.900")


def test_a_method_that_does_not_beat_guessing_without_imaging_is_told_so():
    level = answer_of([FEDGCN, RIDGE, MOTION], fedgcn=0.61, ridge_central=0.9, motion=0.60)
    assert verdict(level) == (
        "Federation falls short of pooling all data and is not significantly better than guessing without imaging"
    )
    assert sentences(level)[-1].startswith("Without imaging, Motion reaches 0.600: ")
    above = answer_of([FEDGCN, RIDGE, MOTION], fedgcn=0.8, ridge_central=0.9, motion=0.6)
    assert above.against(NO_IMAGING).significant
    assert verdict(above) == "Federation falls short of pooling all data"


def test_an_interval_without_zero_that_fails_the_correction_is_told_as_that():
    """Difference 0.04 [0.005, 0.075] in ten runs: p 0.028, and 0.056 for the better of two."""
    answer = answer_of([FEDGCN, QUIET, RIDGE], fedgcn=0.74, fedgcn_no_noise=0.70, ridge_central=0.70)
    pooled = answer.against(POOLED)
    assert pooled.difference.low > 0
    assert not pooled.significant
    assert "does not survive Holm\u2019s correction" in sentences(answer)[1]
    assert verdict(answer) == "Federation does not differ significantly from pooling all data"


def test_a_lone_comparison_with_no_imaging_is_the_answer():
    answer = answer_of([FEDGCN, MOTION], fedgcn=0.8, motion=0.5)
    assert verdict(answer) == "Federation beats guessing without imaging"


def test_three_clauses_are_a_list():
    answer = answer_of([FEDGCN, RIDGE, LOCAL, MOTION], fedgcn=0.6, ridge_central=0.9, localgcn=0.599, motion=0.8)
    assert verdict(answer) == (
        "Federation shows no significant gain over learning alone, falls short of pooling all data "
        "and does worse than guessing without imaging"
    )


def test_a_reference_that_is_federated_is_named():
    answer = found_in(runs_of(fedgcn=0.6, fedgcn_no_noise=0.8), [FEDGCN, QUIET], "fedgcn")
    assert verdict(answer) == "Federation beats FedGCN"
    assert found_in(runs_of(fedgcn=0.6), [FEDGCN], "fedgcn").comparisons == ()


def test_at_an_unseen_site_nobody_learns_alone():
    runs = runs_of(fedgcn=0.70, localgcn=0.50).query("repeat == 0")
    sites = runs.assign(scope="institution:site-" + runs["fold"].astype(str))
    variants = [FEDGCN, LOCAL]
    answer = found_in(pd.concat([runs, sites]), variants, "fedgcn")
    assert answer.unseen
    assert verdict(answer) == "Federation beats averaging the other sites\u2019 own models"
    assert "models, averaged, reach 0.500 with LocalGCN" in sentences(answer)[1]
    twice_tested = pd.concat([sites, sites.assign(scope="institution:site-0")])
    assert not found_in(pd.concat([runs, twice_tested]), variants, "fedgcn").unseen


def test_against_the_reference_holm_counts_what_the_test_table_counts():
    """The same difference stands in the answer and in the table, with one p."""
    few = answer_of([FEDGCN, RIDGE], fedgcn=0.70, ridge_central=0.72)
    runs = runs_of(fedgcn=0.70, ridge_central=0.72, localgcn=0.6)
    with_others = found_in(runs, [FEDGCN, RIDGE, LOCAL], "ridge-central").against(POOLED)
    table = compare(runs, "ridge-central", "auc", "institution", 0.25).set_index("variant")
    assert with_others.p == table.loc["fedgcn", "p_holm"]
    assert with_others.p >= few.against(POOLED).p


def test_against_others_holm_counts_the_federated_methods_and_nothing_else():
    """Here the reference is neither of the two."""
    reference = ShownVariant("majority", "majority", "Majority", "floor")
    base = {"fedgcn": 0.70, "ridge_central": 0.72, "majority": 0.5}
    variants = [FEDGCN, RIDGE, reference]
    few = found_in(runs_of(**base), variants, "majority")
    more = found_in(runs_of(**base, fedgcn_no_noise=0.60), [*variants, QUIET], "majority")
    with_others = found_in(runs_of(**base, localgcn=0.6), [*variants, LOCAL], "majority")
    assert few.against(POOLED).p == pytest.approx(with_others.against(POOLED).p, rel=1e-12)
    table = compare(
        runs_of(**base, fedgcn_no_noise=0.60).query("variant != 'majority'"),
        "ridge-central", "auc", "institution", 0.25,
    ).set_index("variant")  # fmt: skip
    assert more.against(POOLED).p == table.loc["fedgcn", "p_holm"]


def test_without_a_federated_method_there_is_no_answer():
    answer = answer_of([RIDGE, LOCAL], ridge_central=0.7, localgcn=0.6)
    assert answer.chosen is None
    assert verdict(answer) == "No federated method was run"
    assert len(sentences(answer)) == 1


def test_a_single_run_is_not_tested():
    runs = runs_of(fedgcn=0.7, ridge_central=0.8).query("repeat == 0 and fold == 0")
    answer = found_in(runs, [FEDGCN, RIDGE], "ridge-central")
    assert "from too few runs to be tested" in sentences(answer)[1]
    assert verdict(answer) == "Too few runs to tell whether federation pays"
    assert not answer.against(POOLED).significant


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
    [("fedgcn", "fedgcn", "FedGCN"), ("fedgcn-no-noise", "fedgcn", "FedGCN (no noise)"), ("mine", "fedgcn", "mine")],
)
def test_titles(name, method, title):
    assert ShownVariant(name, method, "FedGCN", "federated").title == title


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-0.0004, 3, "0.000"), (0.0, 3, "0.000"), (-0.25, 2, "\u22120.25"), (0.1, 3, "+0.100")],
)
def test_what_rounds_to_zero_has_no_sign(value, digits, text):
    assert signed(value, digits) == text


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
