"""`brainfed check` on variants that read connectomes or public subjects, and on classes of graphs."""

from types import SimpleNamespace

import nibabel as nib
import numpy as np
import pytest
import yaml

from brainfed.checking.people import Checked, Person
from brainfed.checking.project import check_connectomes, check_project
from brainfed.checking.split import check_splits
from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.loading import load_plan
from support.broken.broken_inputs import AFFINE, image_cohort, labels, series_cohort
from support.samples import connectome_method, series_method

EXPERIMENTS = {"methods": {"variants": ["majority", "reader"], "reference": "majority"}}


@pytest.fixture
def reader(monkeypatch):
    """A method that reads connectomes."""
    connectome_method.register(monkeypatch)


def configured(cohort, experiments):
    config = cohort.configure()
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | {"experiments": experiments}))
    return config


@pytest.mark.parametrize(
    ("regions", "default", "severities"), [(1, True, ["stops"]), (1, False, ["notes"]), (0, True, []), (2, True, [])]
)
@pytest.mark.usefixtures("reader")
def test_connectomes_of_one_region_are_refused(regions, default, severities):
    methods = EXPERIMENTS["methods"] | {"default": default}
    content = {"project": "p", "cohorts": {"ours": {"source": "simulate"}}, "experiments": {"methods": methods}}
    experiments = [load_plan(content).experiments["methods"]]
    found = list(check_connectomes(regions, experiments, "here"))
    assert [finding.severity for finding in found] == severities
    assert all("methods: expected two regions or more" in finding.sentence for finding in found)
    others = {"methods": {"variants": ["majority"], "reference": "majority"}}
    assert not list(check_connectomes(1, [load_plan(content | {"experiments": others}).experiments["methods"]], ""))


@pytest.mark.usefixtures("reader")
def test_a_whole_cohort_passes(tmp_path):
    assert check_project(configured(series_cohort(tmp_path), EXPERIMENTS), tmp_path / "results") == []


@pytest.mark.usefixtures("reader")
def test_a_parcellation_of_one_region_stops_the_run(tmp_path):
    cohort = image_cohort(tmp_path)
    nib.save(nib.Nifti1Image((labels() > 0).astype(np.int16), AFFINE), tmp_path / "atlas.nii.gz")
    (tmp_path / "atlas.tsv").write_text("index\tname\n1\tA\n")
    (found,) = check_project(configured(cohort, EXPERIMENTS), tmp_path / "results")
    assert (found.severity, found.place) == ("stops", "cohort c: connectomes")
    assert "expected two regions or more, between which there are connections, found 1" in found.sentence


@pytest.fixture
def found_for(config, monkeypatch):
    """A function: a ratio of public subjects and settings of the split -> findings."""
    series_method.register(monkeypatch)

    def found(ratio, default=True, **split):
        content = yaml.safe_load(config.read_text())
        compared = {"variants": ["majority", "own"], "reference": "majority", "default": default}
        content |= {
            "split": {"count": 2, "folds": 2, "repeats": 2} | split,
            "variants": {"own": {"method": "sharer", "public": {"ratio": ratio}}},
            "experiments": {"methods": compared},
        }
        config.write_text(yaml.safe_dump(content))
        return check_project(config, config.parent / "results")

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
    assert len(check_splits(checked, [asked], 7, "cohort mix", ("a", "b", "c"), target)) == count
