"""`brainfed check` on variants with public subjects: a ratio that leaves a class or an institution without any."""

import pytest
import yaml

from brainfed.checking.project import check_project
from support.broken.broken_inputs import series_cohort
from support.samples.series_method import register


@pytest.fixture(autouse=True)
def sharer(monkeypatch):
    """A method that reads public subjects."""
    register(monkeypatch)


def found_for(folder, ratio, default=True, **split):
    config = series_cohort(folder).configure()
    content = yaml.safe_load(config.read_text())
    compared = {"variants": ["majority", "own"], "reference": "majority", "default": default}
    content |= {
        "split": {"count": 2, "folds": 2, "repeats": 2} | split,
        "variants": {"own": {"method": "sharer", "public": {"ratio": ratio}}},
        "experiments": {"methods": compared},
    }
    config.write_text(yaml.safe_dump(content))
    return check_project(config, folder / "results")


@pytest.mark.parametrize(
    ("ratio", "default", "words"),
    [
        (0.2, True, "methods: public.ratio: expected public "),
        (0.2, False, "methods: public.ratio: expected public "),
        (0.9, True, "methods: public.ratio: expected private training subjects of institution "),
    ],
)
def test_a_ratio_that_takes_or_leaves_everything_is_found_before_the_run(tmp_path, ratio, default, words):
    (found,) = found_for(tmp_path, ratio, default)
    assert (found.severity, found.place) == ("stops" if default else "notes", "cohort c: institutions and folds")
    assert found.sentence.startswith(words)


def test_a_ratio_that_divides_everybody_passes(tmp_path):
    assert found_for(tmp_path, 0.4, count=1) == []


def test_a_split_that_cannot_be_drawn_is_reported_once(tmp_path):
    assert [one.sentence.split(":")[0] for one in found_for(tmp_path, 0.4, count=9)] == ["splits"]
