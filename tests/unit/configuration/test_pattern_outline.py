"""The variants with a shown pattern follow from the config, from no score and no name of a method."""

import pytest

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.configuration.loading import load_plan
from brainfed.configuration.outline.patterns import (
    explained_experiments,
    explained_files,
    explained_variants,
    truth_file,
)

VARIANTS = {f"federated-{number}": {"method": "ridge-federated", "rounds": number + 5} for number in range(4)}


def plan_of(variants, **settings):
    return load_plan(
        {
            "project": "study",
            "cohorts": {"ours": {"source": "simulate", "simulate": {"subjects": 12}}},
            "split": {"count": 2, "folds": 2, "repeats": 2},
            "variants": VARIANTS,
            "experiments": {"methods": {"variants": variants, **settings}},
        }
    )


def shown(variants, **settings):
    return [variant.name for variant in explained_variants(plan_of(variants, **settings).experiments["methods"])]


@pytest.mark.parametrize(
    ("variants", "reference", "expected"),
    [
        (["majority", "svm-central", "ridge-central"], "ridge-central", ["ridge-central"]),
        (["federated-0", "fedgcn", "ridge-central"], "ridge-central", ["ridge-central", "federated-0"]),
        (["federated-0", "ridge-central"], "federated-0", ["federated-0"]),
        (["ridge-central", *VARIANTS], "ridge-central", ["ridge-central", "federated-0", "federated-1"]),
        (["fedgcn", "ridge-local", "svm-central", "ridge-central"], "fedgcn", ["svm-central"]),
        (["majority", "ridge-local", "svm-local"], "majority", ["ridge-local"]),
        (["majority", "fedgcn"], "majority", []),
    ],
)
def test_the_reference_and_the_federated_linear_models_are_shown(variants, reference, expected):
    assert shown(variants, reference=reference) == expected


def test_shuffled_diagnoses_have_no_pattern_to_show():
    assert shown(["ridge-central"], reference="ridge-central", labels="permuted") == []
    plan = plan_of(["ridge-central"], reference="ridge-central", labels="permuted")
    assert explained_experiments(plan) == []


def test_files_are_in_the_order_of_variants_and_repeats():
    experiment = plan_of(["federated-0", "ridge-central"]).experiments["methods"]
    parts = [path.split("/")[4:6] for path in explained_files("ours", experiment)]
    names = [(variant, f"repeat-{repeat}") for variant in ("ridge-central", "federated-0") for repeat in (0, 1)]
    assert [tuple(part) for part in parts] == names


def test_only_a_simulation_of_patients_and_controls_has_a_truth():
    assert truth_file("ours", CohortSettings(source="simulate")) == "results/ours/simulated/truth.json"
    assert truth_file("ours", CohortSettings(source="timeseries", series="a", phenotype="b")) == []
