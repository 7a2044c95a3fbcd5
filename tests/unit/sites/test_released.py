"""What a study releases of a site's subjects: how many sets are added up, and epsilon of all private trainings."""

from math import inf, sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from brainfed.configuration.layout import sets_added_up
from brainfed.configuration.layout._layout import INNER_FOLDS
from brainfed.federation import composed_epsilon, planned_steps
from brainfed.methods import METHODS
from brainfed.runtime import UserError, write_table
from brainfed.samples import _inner_folds as inner_folds
from brainfed.sites.released import Released, Stated, epsilon_of, released_by, require_accepted, sentence_of
from support.samples.method_inputs import method_inputs
from support.sites.study_config import planned


def study(*variants, folds=3, repeats=2, **of_study):
    return planned(
        {
            "experiments": {"methods": {"variants": list(variants), "reference": variants[0]}},
            "split": {"folds": folds, "repeats": repeats},
            "study": {"accept_reconstruction": False} | of_study,
        }
    )


def sets_of(plan):
    return sets_added_up(plan.experiments.values(), len(plan.project.study.sites))


def folds_of(plan, subjects):
    """Split and repeat -> fold of each subject, dealt in turn."""
    split = next(iter(plan.experiments.values()))
    return {
        (split.regime.split, repeat): np.arange(subjects) % split.split.folds for repeat in range(split.split.repeats)
    }


def test_sets_are_the_training_sets_and_inner_training_sets_that_a_method_deals():
    """Counted on the folds that a training really deals, as vectors of who is in a set."""
    inputs = method_inputs(120, 6, folds=3)
    own, found = inputs.institution == 0, set()
    for fold in range(inputs.folds):
        training = inputs.training(fold) & own
        inner = inner_folds.institution_folds(inputs, fold)
        found.add(training.tobytes())
        found |= {(training & (inner != each)).tobytes() for each in range(inner.max() + 1)}
    assert sets_of(study("ridge-federated", repeats=1)) == len(found) == 18


def test_the_number_of_inner_folds_is_that_of_the_samples():
    assert INNER_FOLDS == inner_folds.INNER_FOLDS


@pytest.mark.parametrize(
    ("variants", "sets"),
    [
        (["ridge-local"], 0),
        (["ridge-local", "fedmlp"], 6),
        (["fedmlp", "fedgcn"], 6),
        (["ridge-federated"], 36),
        (["ridge-federated", "fedtangent", "fedmlp"], 37),
        (["ridge-federated", "logistic-federated"], 66),
        (["logistic-fedavg"], 6),
        (["fglbc"], 0),
        (["fglbc", "fedmlp"], 6),
    ],
)
def test_sets_of_methods_that_train_alone_in_private_or_on_the_same_folds_are_not_counted_twice(variants, sets):
    plan = study(*variants)
    assert sets_of(plan) == sets


def test_a_site_that_is_left_out_in_turn_has_one_training_set():
    changes = {
        "experiments": {"methods": {"variants": ["fedmlp"], "reference": "fedmlp"}},
        "split": {"validation": "leave_one_site_out"},
        "study": {"sites": ["oslo", "berlin", "rome"], "secure_sums": False},
    }
    assert sets_of(planned(changes)) == 1


@pytest.mark.parametrize("subjects", [23, 97, pytest.param(40, marks=pytest.mark.full("Each number takes a second."))])
def test_epsilon_is_that_of_the_trainings_in_which_a_subject_takes_part(subjects):
    """Every subject by itself, from the steps of each of its trainings: none spends more than the bound."""
    plan = study("fglbc", folds=5, repeats=2)
    folds = folds_of(plan, subjects)
    settings = METHODS["fglbc"].settings()
    each = []
    for subject in range(subjects):
        steps = [
            planned_steps(settings, int((fold != other).sum()))
            for fold in folds.values()
            for other in range(5)
            if fold[subject] != other
        ]
        assert len(steps) == 8
        each.append(composed_epsilon(tuple(sorted(steps)), settings.delta))
    bound, delta = epsilon_of(plan, folds)
    assert delta == settings.delta
    assert max(each) <= bound <= max(each) + 0.1
    assert bound > 3 * settings.epsilon


def test_trainings_on_everybody_compose_as_one_with_less_noise():
    """k releases with noise s are one with noise s / sqrt(k) (Gaussian mechanism)."""
    multiplier, rate, steps = 3.0, 1.0, 7
    eight = composed_epsilon(((multiplier, rate, steps),) * 8, 1e-5)
    one = composed_epsilon(((multiplier / sqrt(8 * steps), rate, 1),), 1e-5)
    assert eight == pytest.approx(one, abs=0.05)
    assert composed_epsilon(((multiplier, rate, steps), (0.0, 1.0, 1)), 1e-5) == inf
    assert composed_epsilon(((multiplier, rate, 0),), 1e-5) == 0


def test_variants_compose_and_one_without_privacy_has_no_bound():
    once, twice = (epsilon_of(plan, folds_of(plan, 60))[0] for plan in (study("fglbc"), study("fglbc", "fedavg-dp")))
    assert twice > 1.3 * once
    mixed = study("fglbc", "fedmlp")
    assert epsilon_of(mixed, folds_of(mixed, 60))[0] == inf
    assert epsilon_of(study("fedmlp"), folds_of(study("fedmlp"), 60)) == (0.0, 0.0)


def words(plan, subjects):
    released = Released(subjects, *epsilon_of(plan, folds_of(plan, subjects)))
    return vars(Stated.of(plan)), released.words()


def test_a_study_that_lets_the_coordinator_solve_for_subjects_is_refused_unless_it_is_accepted():
    plan = study("ridge-federated")
    with pytest.raises(UserError, match=r"site 'oslo': expected 144 subjects or more, .* of 36 different .* found 143"):
        require_accepted("site 'oslo'", *words(plan, 143))
    require_accepted("site 'oslo'", *words(plan, 144))
    require_accepted("site 'oslo'", *words(study("ridge-federated", accept_reconstruction=True), 20))


@pytest.mark.parametrize(("sets", "subjects"), [(1, 3), (2, 5), (9, 7), (2, 7)])
def test_nothing_is_advised_that_cannot_help_so_few_subjects(sets, subjects):
    with pytest.raises(UserError) as refused:
        require_accepted("here", {"sets": sets, "accept_reconstruction": False, "epsilon": 0.0}, {"subjects": subjects})
    assert "lower" not in str(refused.value)
    assert "; bring more subjects, or set study.accept_reconstruction: true" in str(refused.value)


def test_an_absurd_epsilon_is_a_short_number():
    stated, found = {"sets": 0, "accept_reconstruction": False, "epsilon": 10.0}, {"subjects": 9, "delta": 1e-5}
    with pytest.raises(UserError, match=r"found 1\.23e\+299 over"):
        require_accepted("here", stated, found | {"epsilon": 1.23e299})


def test_a_study_that_spends_more_than_its_file_states_is_refused():
    plan = study("fglbc", folds=5)
    with pytest.raises(UserError, match=r"epsilon 10 or less .* found 3\d\.\d over folds, repeats and variants toget"):
        require_accepted("here", *words(plan, 100))
    with pytest.raises(UserError, match="epsilon 30 or less"):
        require_accepted("here", *words(study("fglbc", folds=5, epsilon=30.0), 100))
    require_accepted("here", *words(study("fglbc", folds=5, epsilon=40.0), 100))
    with pytest.raises(UserError, match="expected private variants alone, as epsilon 40 is stated"):
        require_accepted("here", *words(study("fglbc", "fedmlp", epsilon=40.0), 100))
    require_accepted("here", *words(study("fglbc", "fedmlp", accept_reconstruction=True), 100))


def test_a_site_reads_what_the_study_releases_before_it_joins():
    plan = study("ridge-federated")
    said = sentence_of(Stated.of(plan), Released(40))
    assert said.startswith("the study adds up numbers of 36 different sets of this site's 40 subjects, enough for the")
    said = sentence_of(Stated.of(study("fglbc", epsilon=40.0)), Released(100, 36.4, 1e-5))
    assert said.endswith("spend epsilon 36.4 at most for one subject (delta 1e-05), of 40 that its file states")


def test_the_subjects_and_their_folds_are_those_of_the_sites_splits(tmp_path, monkeypatch):
    """Subjects without a label, whose fold is -1, train in none and hide nobody."""
    monkeypatch.chdir(tmp_path)
    plan = study("fglbc", folds=5)
    for (split, repeat), fold in folds_of(plan, 50).items():
        path = tmp_path / "results" / "rest" / "splits" / split / f"repeat-{repeat}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        fold = np.append(fold, [-1] * 30)
        write_table(path, pd.DataFrame({"subject": [f"s{each}" for each in range(80)], "fold": fold}))
    found = released_by(SimpleNamespace(plan=plan, cohort="rest"))
    assert found == Released(50, *epsilon_of(plan, folds_of(plan, 50)))


def test_an_epsilon_that_is_no_number_is_above_every_bound():
    stated = {"sets": 0, "accept_reconstruction": False, "epsilon": 10.0}
    with pytest.raises(UserError, match="found nan over"):
        require_accepted("here", stated, {"subjects": 40, "epsilon": float("nan"), "delta": 1e-5})


def test_sums_of_features_count_where_every_method_trains_alone():
    features = {"connectivity": "tangent", "reference": "training"}
    changes = {
        "variants": {"alone": {"method": "ridge", "training": "local", "features": features}},
        "experiments": {"methods": {"variants": ["alone"], "reference": "alone"}},
    }
    assert sets_of(planned(changes)) == 6
