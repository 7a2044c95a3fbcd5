"""The first screen: a question in the cohort's words, three AUCs in one sentence, and what stays uncertain."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort import class_words
from brainfed.evaluation import sd_of_chance
from brainfed.reporting import PageTests, Scored, ShownVariant
from brainfed.reporting._variants import Counterpart
from brainfed.reporting.text import Situation, TestedPeople, find_answer, first_screen, question

ALONE = ShownVariant("tangent-local", "ridge", "Tangent", "linear", topology="local")
POOLED = ShownVariant("tangent-central", "ridge", "Tangent", "linear", topology="central")
COUNTERPARTS = {"alone": Counterpart("tangent-local"), "pooled": Counterpart("tangent-central")}
FEDERATED = ShownVariant(
    "fedtangent", "fedtangent", "FedTangent", "federated", topology="federated", counterparts=COUNTERPARTS
)
TESTED = TestedPeople((207, 207, 207), (41, 40, 42), 25, repeats=5)
SITUATION = Situation("connectivity", 5, "random", "1,035 people of 20 sites (505 patients, 530 controls)", TESTED)
WORDS = class_words("diagnosis")


def screen(variants=(FEDERATED, ALONE, POOLED), wobble=0.01, words=WORDS, situation=SITUATION, **means):
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
    return first_screen(answer, words, situation)


def fact(found, title):
    return next(one.text for one in found.facts if one.title == title)


def test_the_answer_is_one_sentence_of_at_most_25_words_with_three_intervals():
    answer = screen().answer
    assert answer.startswith("Without sharing them (federated), FedTangent reaches an AUC of 0.7")
    assert answer.count("[") == 3
    assert "]; pooled data 0." in answer and ", each institution alone 0." in answer and answer.endswith("].")
    assert len(answer.split()) <= 25


def test_the_facts_say_on_whom():
    assert fact(screen(), "On whom") == (
        "1,035 people of 20 sites (505 patients, 530 controls), dealt at random into 5 made-up institutions, which are "
        "alike; real ones differ more. Everybody is tested 5 times, by a model that did not train on them: "
        "25 tests of 207 people, 40 to 42 in each institution."
    )
    sites = fact(screen(situation=replace(SITUATION, drawn="sites")), "On whom")
    assert "; every site is an institution." in sites and "made-up" not in sites


def test_at_one_site_of_a_study_the_site_is_named_in_place_of_each_institution():
    found = screen(situation=replace(SITUATION, institutions=1, drawn="sites", site="oslo"))
    assert ", oslo alone 0." in found.answer and "each institution" not in found.answer
    assert "; the site is oslo. " in fact(found, "On whom") and "is an institution" not in fact(found, "On whom")


def test_the_facts_say_how_sure():
    sure = fact(screen(), "How sure")
    assert sure.startswith("Brackets hold 95 % intervals. Federated minus alone: +0.0")
    assert " Federated minus pooled: \u22120.0" in sure and sure.count("[") == 2
    equal = fact(screen(wobble=0.0, fedtangent=1.0, **{"tangent-central": 1.0}), "How sure")
    assert "Federated minus pooled: equal in all 10 tests." in equal
    assert equal.endswith("An AUC of 1.000 in every test has no interval, and is no certainty.")


def test_what_leaves_an_institution_is_no_unshared_scan():
    found = screen(situation=replace(SITUATION, leaves=("features",)))
    assert found.answer.startswith("Federated, FedTangent reaches an AUC of 0.7")
    assert fact(found, "How private") == "Data of single subjects leave their institution: features."


def test_one_institution_and_one_test_are_singular():
    found = screen(situation=replace(SITUATION, institutions=1))
    assert found.question == "Can one institution predict a diagnosis from brain scans?"
    assert ", in one institution." in fact(found, "On whom")


def test_an_attack_that_few_subjects_bear_is_not_said_to_be_near_chance():
    private = fact(screen(situation=replace(SITUATION, leak=(0.7, 0.45, 0.95))), "How private")
    assert private.startswith("Too few subjects show what an attack finds")


def test_the_facts_say_how_useful_the_method_is():
    assert not any(one.title == "How useful" for one in screen().facts)
    motion = ShownVariant("motion", "motion", "Motion", "baseline", topology="central")
    found = screen((FEDERATED, ALONE, POOLED, motion), situation=replace(SITUATION, shares=(0.664, 0.78)), motion=0.61)
    useful = fact(found, "How useful")
    assert useful.startswith(
        "At its usual cut-off it recognises 66\u00a0% of the patients and 78\u00a0% of the controls."
    )
    assert " The baseline Motion, which reads no imaging, reaches an AUC of 0.6" in useful


@pytest.mark.parametrize(
    ("leak", "guaranteed", "said", "end"),
    [
        ((0.96, 0.95, 0.97), False, "The trained model gives its training subjects away", "guarantee."),
        ((0.52, 0.49, 0.55), False, "An attack that asks who was in the training data is near chance", "guarantee."),
        ((0.52, 0.49, 0.55), True, "near chance", "with an AUC of 0.52 [0.49, 0.55]."),
    ],
)  # fmt: skip
def test_the_facts_say_how_private_the_model_is(leak, guaranteed, said, end):
    private = fact(screen(situation=replace(SITUATION, leak=leak, guaranteed=guaranteed)), "How private")
    assert said in private and private.endswith(end)
    assert not any(one.title == "How private" for one in screen().facts)


def test_a_method_that_was_chosen_among_several_is_said_to_be():
    other = replace(FEDERATED, name="fedtangent-lean")
    found = screen((FEDERATED, other, ALONE, POOLED), **{"fedtangent-lean": 0.6})
    assert fact(found, "How sure").endswith(
        "FedTangent scored highest of 2 federated methods on the same tests, so its AUC is a little too high."
    )


def test_another_model_than_its_counterpart_has_its_own_name():
    found = screen((replace(FEDERATED, counterparts={}), ALONE, POOLED))
    assert "; pooled data Tangent space (central) 0.7" in found.answer
    assert ", each institution alone Tangent space (local) 0." in found.answer
    near = {side: replace(counterpart, other_model="another network") for side, counterpart in COUNTERPARTS.items()}
    found = screen((replace(FEDERATED, counterparts=near), ALONE, POOLED))
    assert "; pooled data Tangent space (central) 0.7" in found.answer


def test_public_subjects_alone_are_no_pooled_data():
    public = ShownVariant("recurrent-public", "r", "P", "linear", topology="central", stages={"public": {"ratio": 0.3}})
    found = screen((replace(FEDERATED, counterparts={}), ALONE, public), **{"recurrent-public": 0.9})
    assert "pooled" not in found.answer and "pooled" not in fact(found, "How sure")


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


def test_methods_that_need_a_graph_over_institutions_are_named():
    private = fact(screen(situation=replace(SITUATION, shared_graph=("FedGCN", "FedNI"))), "How private")
    assert private.startswith(
        "FedGCN and FedNI need a graph that joins subjects of several institutions: here one place"
    )
    assert private.endswith("so these are federated in the training alone.")
    one = fact(screen(situation=replace(SITUATION, shared_graph=("FedNI",))), "How private")
    assert one.startswith("FedNI needs a graph") and one.endswith("so it is federated in the training alone.")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (
            (4, 4),
            " guessing alone gives AUCs from 0.08 to 0.92 on as many, so nothing here tells a good method from a ",
        ),
        ((30, 30), " guessing alone gives AUCs from 0.35 to 0.65 on as many."),
        ((50, 50), ""),
    ],
)
def test_few_people_are_said_with_what_guessing_gives(counts, said):
    """4 and 4: the sum of ranks has the variance 4 * 4 * 9 / 12, the AUC 9 / 192."""
    sure = fact(screen(situation=replace(SITUATION, counts=counts)), "How sure")
    assert said in sure and ("These are few people:" in sure) == bool(said)


def test_the_reach_of_guessing_is_that_of_random_scores():
    random = np.random.default_rng(0)
    controls, patients = random.random((20000, 5, 1)), random.random((20000, 1, 7))
    assert sd_of_chance(5, 7) == pytest.approx((patients > controls).mean(axis=(1, 2)).std(), rel=0.02)
