"""The first screen: a question in the cohort's words, three AUCs in one sentence, and what stays uncertain."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.class_words import class_words
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.scored import Scored
from brainfed.reporting.text.answer import find_answer
from brainfed.reporting.text.first_screen import first_screen, question
from brainfed.reporting.text.tested_people import TestedPeople
from brainfed.reporting.variants import ShownVariant, Twin

ALONE = ShownVariant("tangent-local", "ridge", "Tangent", "linear", topology="local")
POOLED = ShownVariant("tangent-central", "ridge", "Tangent", "linear", topology="central")
TWINS = {"alone": Twin("tangent-local"), "pooled": Twin("tangent-central")}
FEDERATED = ShownVariant("fedtangent", "fedtangent", "FedTangent", "federated", topology="federated", twins=TWINS)
TESTED = TestedPeople((207, 207, 207), (41, 40, 42), 25)
WORDS = class_words("diagnosis")


def screen(variants=(FEDERATED, ALONE, POOLED), wobble=0.01, words=WORDS, **means):
    means = {"fedtangent": 0.78, "tangent-local": 0.70, "tangent-central": 0.79, **means}
    moved = wobble * np.random.default_rng(3).standard_normal((len(variants), 10))
    runs = pd.DataFrame(
        [
            (variant.name, run // 5, run % 5, "institution", "auc", means[variant.name] + moved[row, run])
            for row, variant in enumerate(variants)
            for run in range(10)
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )
    answer = find_answer(PageTests(Scored(runs, 0.25), list(variants), variants[-1].name))
    return first_screen(answer, words, "connectivity", 5, TESTED)


def test_the_answer_is_one_sentence_of_at_most_25_words_with_three_intervals():
    answer = screen().answer
    assert answer.startswith("FedTangent reaches an AUC of 0.7")
    assert answer.count("[") == 3
    assert " together; the same model reaches 0.7" in answer and answer.endswith("] alone.")
    assert " on pooled data and 0." in answer
    assert len(answer.split()) <= 25


def test_what_the_data_allow_stands_below_it():
    tested, pooled, alone = screen().sure
    assert (
        tested
        == "A fold tests 207 people, 41 (40 to 42) of them in one institution; the scores are means over 25 runs."
    )
    assert pooled.startswith("Together minus pooled: \u22120.0")
    assert "the data allow" in pooled
    assert alone.startswith("Together minus alone: +0.0") and "a gain of 0.0" in alone
    assert screen(wobble=0.0).sure[1].endswith("in every one of 10 runs.")


def test_a_method_that_was_chosen_among_several_is_said_to_be():
    other = replace(FEDERATED, name="fedtangent-lean")
    found = screen((FEDERATED, other, ALONE, POOLED), **{"fedtangent-lean": 0.6})
    assert found.sure[-1].startswith("FedTangent has the highest AUC of 2 federated methods")


def test_another_model_than_its_twin_has_its_own_name():
    found = screen((replace(FEDERATED, twins={}), ALONE, POOLED))
    assert "; Tangent space (central) reaches 0.7" in found.answer
    assert " and Tangent space (local) reaches 0." in found.answer
    near = {side: replace(twin, other_model="another network") for side, twin in TWINS.items()}
    assert "the same model" not in screen((replace(FEDERATED, twins=near), ALONE, POOLED)).answer


def test_public_subjects_alone_are_no_pooled_data():
    public = ShownVariant("recurrent-public", "r", "P", "linear", topology="central", stages={"public": {"ratio": 0.3}})
    found = screen((replace(FEDERATED, twins={}), ALONE, public), **{"recurrent-public": 0.9})
    assert "pooled" not in found.answer and len(found.sure) == 2


def test_without_a_federated_method_there_is_no_first_screen():
    assert screen((ALONE, POOLED)) is None


@pytest.mark.parametrize(
    ("target", "classes", "kind", "unseen", "expected"),
    [
        ("diagnosis", (), "connectivity", False,
         "Can five institutions predict a diagnosis from brain scans without sharing them?"),
        ("sex", (), "morphometry", False,
         "Can five institutions predict sex from measures of brain anatomy without sharing them?"),
        ("diagnosis", ("CN", "AD"), "connectivity", False,
         "Can five institutions predict the diagnosis (AD or CN) from brain scans without sharing them?"),
        ("diagnosis", ("CN", "MCI", "AD"), "connectivity", False,
         "Can five institutions predict the diagnosis (CN, MCI or AD) from brain scans without sharing them?"),
        ("class", ("A", "B", "C"), "graphs", False,
         "Can five data sets predict the class (A, B or C) from graphs without sharing them?"),
        ("diagnosis", (), "connectivity", True,
         "Can models of other sites predict a diagnosis from brain scans at a site that took no part?"),
    ],
)  # fmt: skip
def test_the_question_has_the_words_of_the_cohort(target, classes, kind, unseen, expected):
    assert question(class_words(target, classes), kind, 5, unseen=unseen) == expected


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ((), "Can five institutions predict ADHD from resting-state scans without sharing them?"),
        (
            ("control", "combined", "inattentive"),
            "Can five institutions predict the diagnosis of ADHD (control, combined or inattentive) from resting-state "
            "scans without sharing them?",
        ),
    ],
)
def test_the_question_names_the_condition_and_the_scans(classes, expected):
    words = replace(class_words("diagnosis", classes), condition="ADHD", modality="resting-state scans")
    assert question(words, "connectivity", 5, unseen=False) == expected
