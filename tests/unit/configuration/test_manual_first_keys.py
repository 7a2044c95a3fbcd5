"""The ten first keys: each is in the model with the default that the page prints, and the examples make a study."""

import yaml

from brainfed.configuration import load_plan
from brainfed.configuration.manual import FIRST_KEYS, first_keys, manual, setting_at

DEFAULTS = {
    "project": "required",
    "cohorts.NAME.source": "required",
    "cohorts.NAME.phenotype": None,
    "cohorts.NAME.series": None,
    "split.institutions": "random",
    "split.count": 5,
    "split.repeats": 5,
    "features.connectivity": "pearson",
    "variants": {},
    "experiments.NAME.variants": [],
}
"""What a study has without these keys."""


def printed():
    """Key -> the default in the table, read as YAML."""
    cells = [line.split(" | ") for line in first_keys().splitlines() if line.startswith("| [")]
    return {key.split("`")[1]: yaml.safe_load(default.strip("`")) for key, default, *_ in cells}


def study():
    """The examples of the table, laid at their paths of one config."""
    config = {}
    for key in FIRST_KEYS:
        *parents, last = key.path.split(".")
        here = config
        for part in parents:
            here = here.setdefault("mine" if part == "NAME" else part, {})
        here[last] = yaml.safe_load(key.example)
    return config


def test_there_are_ten_each_with_the_default_of_a_study_without_it():
    assert printed() == {path: "none" if value is None else value for path, value in DEFAULTS.items()}
    assert len(FIRST_KEYS) == 10


def test_a_study_without_them_has_these_defaults():
    project = load_plan({"project": "p", "cohorts": {"c": {"source": "simulate"}}}).project
    cohort, experiment = project.cohorts["c"], project.experiments["methods"]
    found = {
        "cohorts.NAME.phenotype": cohort.phenotype,
        "cohorts.NAME.series": cohort.series,
        "split.institutions": project.split.institutions,
        "split.count": project.split.count,
        "split.repeats": project.split.repeats,
        "features.connectivity": project.features.connectivity,
        "variants": project.variants,
        "experiments.NAME.variants": list(experiment.variants),
    }
    assert found == {path: value for path, value in DEFAULTS.items() if value != "required"}


def test_the_examples_together_are_a_study_that_loads():
    config = study()
    config["cohorts"]["mine"]["regions"] = 200
    plan = load_plan(config)
    assert [variant.name for variant in plan.experiments["mine"].variants] == ["ridge-central", "fedgcn", "wide"]
    assert plan.project.split.repeats == 10


def test_each_links_to_the_section_that_lists_it():
    sections = {section.partition("\n")[0]: section for section in manual().split("\n## ")[1:]}
    for key in FIRST_KEYS:
        assert f"| `{setting_at(key.path).name}` |" in sections[key.section], key.path
