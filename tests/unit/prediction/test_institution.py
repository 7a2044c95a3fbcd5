"""`--institution`: asked for where institutions are scaled apart, and refused in a sentence where it cannot work."""

import numpy as np
import pytest

from brainfed.prediction.command import guesses, predictions
from brainfed.prediction.model_file import EVERYBODY, KeptFile, Part
from brainfed.runtime.errors import UserError
from brainfed.samples.kept.fitted_model import FittedModel

NONE = FittedModel({})
APART = FittedModel({}, {"mean": np.zeros((2, 3))})


def model(own, drawn="sites", institutions=("oslo", "paris")):
    about = {"drawn": drawn, "institutions": list(institutions), "folds": 2}
    return KeptFile(about, {EVERYBODY: Part(APART if own else NONE, NONE)})


def test_a_site_of_a_model_that_scales_sites_apart_is_taken():
    assert predictions(model(own=True), [], institution="oslo").empty
    assert predictions(model(own=False), []).empty


@pytest.mark.parametrize("name", [None, "rome"])
def test_a_site_that_is_missing_or_unknown_is_refused_with_those_that_exist(name):
    with pytest.raises(UserError, match=rf"found {'none' if name is None else repr(name)}; known: oslo, paris\.$"):
        predictions(model(own=True), [], institution=name)


@pytest.mark.parametrize("name", ["oslo", "rome"])
def test_it_is_refused_where_all_institutions_are_scaled_alike(name):
    with pytest.raises(UserError, match=f"--institution: expected none, .* alike, found '{name}'; leave it out"):
        predictions(model(own=False), [], institution=name)


@pytest.mark.parametrize("name", [None, "oslo"])
@pytest.mark.parametrize("drawn", ["random", "consecutive"])
def test_institutions_that_were_drawn_are_said_to_be_those_of_no_patient(drawn, name):
    made_up = model(True, drawn, ("institution-1", "institution-2"))
    with pytest.raises(UserError) as refused:
        predictions(made_up, [], institution=name)
    assert f"`split: {{institutions: {drawn}}}` made them up" in str(refused.value)
    assert "train this one with `split: {institutions: sites}`" in str(refused.value)
    assert predictions(made_up, [], institution="institution-2").empty


@pytest.mark.parametrize(("auc", "said"), [(0.61, True), (0.63, False), (float("nan"), True)])
def test_a_model_that_is_no_better_than_guessing_is_named(auc, said):
    kept = KeptFile({"held_out": {"auc": auc, "guessing": 0.62}}, {})
    assert ("its scores say nothing" in guesses(kept)) == said
    assert guesses(KeptFile({"held_out": None}, {})) == guesses(KeptFile({}, {})) == ""
