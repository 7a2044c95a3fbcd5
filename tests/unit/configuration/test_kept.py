"""Models to keep: which variants, from which experiment, and why no others."""

import pytest

from brainfed.configuration import load_plan
from brainfed.runtime import UserError

COHORT = {
    "source": "timeseries",
    "phenotype": "people.csv",
    "series": "{file}.csv",
    "freesurfer": {"tables": ["thickness.tsv"]},
}


def planned(models, variants=None, experiments=None, names=("ridge-central", "fedmlp", "mine")):
    held = {"mine": {"method": "fedtangent"}} | (variants or {})
    usual = {"methods": {"variants": list(names), "reference": names[0]}}
    return load_plan(
        {
            "project": "p",
            "cohorts": {"one": COHORT, "two": COHORT},
            "variants": held,
            "experiments": experiments or usual,
            "models": models,
        }
    )


def test_nothing_is_kept_unless_asked_for():
    assert planned([]).models == ()


def test_a_variant_is_kept_on_every_cohort_from_the_first_experiment_with_true_labels():
    compared = {"variants": ["ridge-central", "mine"], "reference": "ridge-central"}
    plan = planned(
        ["mine"],
        experiments={
            "null": compared | {"labels": "permuted"},
            "first": compared | {"cohorts": ["one"]},
            "second": compared | {"split": {"folds": 3}},
        },
    )
    found = {model.cohort: model.regime for model in plan.models}
    assert found == {"one": plan.experiments["first"].regime.name, "two": plan.experiments["second"].regime.name}


REFUSED = {
    "fedgcn": ({"method": "fedgcn"}, "whose method 'fedgcn' compares a patient with training subjects in a graph"),
    "majority": ({"method": "majority"}, "whose method 'majority' keeps no model"),
    "choosing": ({"method": "fedmlp", "choose": "inner"}, "which keeps no model under `choose: inner`"),
    "harmonised": ({"method": "ridge", "features": {"harmonise": "combat"}}, "whose features have `harmonise: combat`"),
    "selected": ({"method": "ridge", "features": {"selection": "rfe"}}, "whose features have `selection: rfe`"),
    "measured": ({"method": "ridge", "features": {"kind": "morphometry"}}, "whose features have `kind: morphometry`"),
    "seen": ({"method": "ridge", "features": {"views": {"c": {}, "d": {"fisher_z": True}}}}, "have several views"),
}


@pytest.mark.parametrize(("definition", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_variant_that_scores_no_patient_alone_is_refused(definition, reason):
    with pytest.raises(
        UserError, match="config: models: expected a variant that scores a patient alone, found 'it'"
    ) as found:
        planned(["it"], {"it": definition}, names=("ridge-central", "it"))
    assert reason in str(found.value)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(
        UserError, match=r"a variant of an experiment with true labels, found 'fedmpl'; did you mean 'fedmlp'"
    ):
        planned(["fedmpl"])


def test_an_experiment_may_not_take_the_name_of_the_target():
    with pytest.raises(UserError, match="`snakemake models` is another target"):
        planned([], experiments={"models": {"variants": ["ridge-central"], "reference": "ridge-central"}})
