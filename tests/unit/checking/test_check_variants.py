"""`brainfed check` on variants that read connectomes or public subjects, on classes of graphs, and on studies."""

import random
from pathlib import Path
from types import SimpleNamespace

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
import yaml

from brainfed.checking import check_project
from brainfed.checking._people import Checked, Person
from brainfed.checking._split import SplitCheck
from brainfed.cohort.settings import SplitSettings
from brainfed.configuration import load_plan
from brainfed.configuration._loading import read_yaml
from brainfed.configuration.layout import split_file
from brainfed.runtime import UserError, write_table
from brainfed.sites.released import Released, Stated, released_by, require_accepted
from brainfed.sites.study import StudyPlace
from support.broken.broken_inputs import AFFINE, edit, image_cohort, labels
from support.broken.cases import cases
from support.samples import connectome_method, series_method

EXPERIMENTS = {"methods": {"variants": ["majority", "reader"], "reference": "majority"}}


@pytest.fixture
def reader(monkeypatch):
    """A method that reads connectomes."""
    connectome_method.register(monkeypatch)


@pytest.mark.parametrize(
    ("regions", "default", "severities"), [(1, True, ["stops"]), (1, False, ["notes"]), (0, True, []), (2, True, [])]
)
@pytest.mark.usefixtures("reader")
def test_connectomes_of_one_region_are_refused(regions, default, severities):
    methods = EXPERIMENTS["methods"] | {"default": default}
    content = {"project": "p", "cohorts": {"ours": {"source": "simulate"}}, "experiments": {"methods": methods}}
    experiments = [load_plan(content).experiments["methods"]]
    found = list(SplitCheck(Checked((), (), (), regions), experiments).connectomes())
    assert [finding.severity for finding in found] == severities
    assert all("methods: expected two regions or more" in finding.sentence for finding in found)
    others = {"methods": {"variants": ["majority"], "reference": "majority"}}
    experiments = [load_plan(content | {"experiments": others}).experiments["methods"]]
    assert not list(SplitCheck(Checked((), (), (), 1), experiments).connectomes())


@pytest.mark.usefixtures("reader")
def test_a_whole_cohort_passes(config):
    assert check_project(edit(config, experiments=EXPERIMENTS), config.parent / "results") == []


@pytest.mark.usefixtures("reader")
def test_a_parcellation_of_one_region_stops_the_run(tmp_path):
    cohort = image_cohort(tmp_path)
    nib.save(nib.Nifti1Image((labels() > 0).astype(np.int16), AFFINE), tmp_path / "atlas.nii.gz")
    (tmp_path / "atlas.tsv").write_text("index\tname\n1\tA\n")
    (found,) = check_project(edit(cohort.configure(), experiments=EXPERIMENTS), tmp_path / "results")
    assert (found.severity, found.place) == ("stops", "cohort c: connectomes")
    assert "expected two regions or more, between which there are connections, found 1" in found.sentence


@pytest.fixture
def found_for(config, monkeypatch):
    """A function: a ratio of public subjects and settings of the split -> findings."""
    series_method.register(monkeypatch)

    def found(ratio, default=True, **split):
        compared = {"variants": ["majority", "own"], "reference": "majority", "default": default}
        content = {
            "split": {"count": 2, "folds": 2, "repeats": 2} | split,
            "variants": {"own": {"method": "sharer", "public": {"ratio": ratio}}},
            "experiments": {"methods": compared},
        }
        return check_project(edit(config, **content), config.parent / "results")

    return found


@pytest.mark.parametrize(
    ("ratio", "default", "words"),
    [
        (0.2, True, "methods: public.ratio: expected public "),
        (0.2, False, "methods: public.ratio: expected public "),
        (0.9, True, "methods: public.ratio: expected private training subjects of institution "),
    ],
)
def test_a_ratio_that_takes_or_leaves_everything_is_found_before_the_run(found_for, ratio, default, words):
    (found,) = found_for(ratio, default)
    assert (found.severity, found.place) == ("stops" if default else "notes", "cohort c: institutions and folds")
    assert found.sentence.startswith(words)


def test_a_ratio_that_divides_everybody_passes(found_for):
    assert found_for(0.4, count=1) == []


def test_a_split_that_cannot_be_drawn_is_reported_once(found_for):
    assert [one.sentence.split(":")[0] for one in found_for(0.4, count=9)] == ["splits"]


@pytest.mark.parametrize(("target", "count"), [("class", 0), ("diagnosis", 1)])
def test_a_data_set_without_a_class_is_found_fine(target, count):
    labels = {"AIDS": [0, 1] * 10, "IMDB-MULTI": [0, 1, 2] * 10}
    people = tuple(
        Person(f"{site}-{number:02d}", site, label, f"{site}-{number:02d}", 0)
        for site, own in labels.items()
        for number, label in enumerate(own)
    )
    split = SplitSettings(institutions="sites", folds=5)
    asked = SimpleNamespace(regime=SimpleNamespace(split="sites"), split=split, default=True, group="mix")
    checked = Checked((), people, tuple(labels), 0)
    assert len([*SplitCheck(checked, [asked], 7, ("a", "b", "c"), target).splits()]) == count


STUDY_OF_B = {"sites": ["a", "b"], "site": "b", "address": "hub.example.org:9092"}
STUDY = {"sites": ["oslo", "berlin"], "address": "hub.example.org:9092"}
BETWEEN_SITES = {
    "project": "study",
    "cohorts": {"rest": {"source": "timeseries", "regions": 200}},
    "split": {"institutions": "sites", "folds": 2, "repeats": 1},
    "experiments": {"methods": {"variants": ["ridge-local", "fedtangent"], "reference": "ridge-local"}},
    "study": STUDY,
}


def test_the_coordinator_s_config_needs_no_paths(tmp_path):
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(BETWEEN_SITES))
    (found,) = check_project(config)
    assert (found.severity, found.place) == ("notes", "cohort rest: files")
    assert "paths and files of the cohort are the sites' own" in found.sentence
    listed = check_project(edit(config, seed="seven"))
    assert [one.severity for one in listed] == ["stops", "notes"]
    assert "seed: expected a whole number" in listed[0].sentence


def test_a_site_s_config_needs_its_paths(tmp_path):
    config = tmp_path / "site.yaml"
    config.write_text(yaml.safe_dump(BETWEEN_SITES | {"study": {**STUDY, "site": "oslo"}}))
    listed = check_project(config)
    assert {one.severity for one in listed} == {"stops"}
    assert any("needs `phenotype`" in one.sentence for one in listed)


def test_a_table_with_subjects_of_another_site_is_found(cohort):
    config = edit(
        cohort.configure(),
        split={"institutions": "sites", "folds": 2, "repeats": 1},
        graph={"scope": "local"},
        experiments={"methods": {"variants": ["ridge-local"], "reference": "ridge-local"}},
        study={"sites": ["a", "b"], "site": "a", "address": "hub.example.org:9092"},
    )
    (found,) = [one for one in check_project(config) if one.severity == "stops"]
    assert "site 'a': expected subjects of this site alone, found those of 'b' in the table; set `ph" in found.sentence
    assert any("found those of 'b'" in one.sentence for one in check_project(edit(config, seed="seven")))
    edit(config, seed=1)
    header, *rows = cohort.table.read_text().splitlines()
    cohort.table.write_text("\n".join([header, *(row.replace(",b,", ",a,") for row in rows)]) + "\n")
    assert not [one for one in check_project(config) if one.severity == "stops"]
    (found,) = [one for one in check_project(edit(config, study=STUDY_OF_B)) if one.severity == "stops"]
    assert "site 'b': expected subjects of this site alone, found those of 'a' in the table; " in found.sentence


@pytest.mark.parametrize("seed", cases(first=5, usual=8))
def test_a_site_with_too_few_subjects_reads_in_the_check_what_join_would_refuse(cohort, tmp_path, monkeypatch, seed):
    """The sentence of `join` on the splits that the site's run writes, some subjects without a diagnosis."""
    draw = random.Random(seed)
    header, *rows = cohort.rows()
    unlabelled = {"s01", "s02"} if draw.random() < 0.5 else set()
    cohort.write_rows(
        [header, *([one, "a", age, sex, "" if one in unlabelled else it] for one, _, age, sex, it in rows)]
    )
    cohort.settings["unlabelled"] = draw.choice(["keep", "drop"])
    variants = draw.choice([["ridge-local"], ["fedmlp"], ["fedmlp", "fedtangent"], ["fglbc"], ["fglbc", "fedmlp"]])
    config = edit(
        cohort.configure(),
        graph={"scope": "local"},
        experiments={"methods": {"variants": variants, "reference": variants[0]}},
        split={"institutions": "sites", "folds": draw.choice([2, 3, 9]), "repeats": draw.choice([1, 2])},
        study=STUDY_OF_B
        | {"site": "a", "accept_reconstruction": draw.random() < 0.3, "epsilon": draw.choice([20, 900])},
    )
    stops = [one.sentence for one in check_project(config) if one.severity == "stops"]
    plan = load_plan(read_yaml(config), [config])
    (experiment,) = [each for each in plan.experiments.values() if each.default]
    labelled = 12 - len(unlabelled)
    if experiment.split.folds == 9:
        assert "needs at least 9 different" in stops.pop(0)
        released = Released(labelled)
    else:
        monkeypatch.chdir(tmp_path)
        fold = np.arange(labelled) % experiment.split.folds
        for repeat in range(experiment.repeats):
            path = Path(split_file("c", experiment.regime.split, repeat))
            path.parent.mkdir(parents=True, exist_ok=True)
            write_table(path, pd.DataFrame({"fold": [*fold, *([-1] * len(unlabelled))]}))
        released = released_by(StudyPlace(config, plan))
        assert released.subjects == labelled
    try:
        require_accepted("site 'a'", vars(Stated.of(plan)), released.words())
        expected = []
    except UserError as error:
        expected = [str(error)]
    assert stops == expected
