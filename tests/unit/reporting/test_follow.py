"""A subject's way: what issues name, beside the cohort, with the scores of models that did not train on it."""

import base64
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from brainfed.cohort import class_words
from brainfed.reporting import ShownVariant
from brainfed.reporting.tables import Ways
from brainfed.reporting.tables._follow import SIDE, follow_subjects, thumbnail
from brainfed.runtime import write_arrays

WORDS = class_words("diagnosis")
ISSUES = pd.DataFrame(
    [("s2", "mean FD above 0.2 mm", "0.40 mm", "kept"), ("", "site of one class", "site b", "kept"),
     ("s4", "no usable series", "file absent", "left out"), ("s2", "short scan", "", "kept")],
    columns=["subject", "kind", "detail", "action"],
)  # fmt: skip


def people():
    return pd.DataFrame(
        {
            "subject": ["s1", "s2", "s3", "s4"], "site": ["a", "a", "b", "b"], "age": [10.0, 12.0, 14.0, np.nan],
            "sex": ["male", "female", "male", None], "diagnosis": pd.array([1, 0, 1, None], dtype="Int8"),
            "has_series": [True, True, True, False], "included": [True, True, True, False],
            "reason": ["", "", "", "no usable series"], "timepoints": [60.0, 60.0, 60.0, np.nan],
            "mean_fd": [0.1, 0.4, 0.2, np.nan], "kept_seconds": [120.0, 60.0, 120.0, np.nan], "tsnr": [np.nan] * 4,
            "silent_regions": [0.0, 0.0, 0.0, np.nan], "typicality": [0.5, 0.1, 0.6, np.nan],
        }
    )  # fmt: skip


def predictions():
    rows = [("s2", "fedgcn", repeat, score, "probability", 0) for repeat, score in enumerate((0.2, 0.6))]
    rows += [("s1", "fedgcn", 0, 0.9, "probability", 1), ("s2", "ridge", 0, -0.5, "margin", 0)]
    return pd.DataFrame(rows, columns=["subject", "variant", "repeat", "score", "kind", "label"])


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    path, random = tmp_path_factory.mktemp("series") / "shard.safetensors", np.random.default_rng(3)
    arrays = {name: random.standard_normal((60, 5)).astype(np.float32) for name in ("s1", "s2", "s3")}
    write_arrays(path, arrays, {"regions": list("abcde"), "atlas": "toy", "runs": {}})
    return [str(path)]


@pytest.fixture
def found(series):
    return follow_subjects(people(), ISSUES, series, predictions(), WORDS)


def test_only_subjects_that_an_issue_names_are_followed(found):
    assert [one["subject"] for one in found["subjects"]] == ["s2", "s4"]
    assert [issue["kind"] for issue in found["subjects"][0]["issues"]] == ["mean FD above 0.2 mm", "short scan"]


def test_a_measure_stands_beside_the_median_and_the_share_below(found):
    quality = {row["title"]: row for row in found["subjects"][0]["quality"]}
    motion = quality["mean framewise displacement (mm)"]
    assert (motion["value"], motion["median"], motion["below"]) == ("0.400", "0.200", "67\u00a0%")
    length = quality["scan length (min)"]
    assert (length["value"], length["median"], length["below"]) == ("1.00", "2.00", "0\u00a0%")
    assert "temporal signal-to-noise ratio" not in quality


def test_a_score_is_that_of_the_own_class_over_the_repeats_that_test_the_subject(found):
    """Probabilities of a patient of 0.2 and 0.6 give a control 0.8 and 0.4: right once of two."""
    rows = {row["variant"]: row for row in found["subjects"][0]["scores"]}
    assert rows["fedgcn"] == {
        "variant": "fedgcn", "score": "0.60", "kind": "probability", "of": "control", "right": 1, "tests": 2,
    }  # fmt: skip
    assert rows["ridge"]["score"] == "0.50" and rows["ridge"]["right"] == 1


def test_somebody_without_a_scan_has_a_reason_and_no_picture(found):
    missing = found["subjects"][1]
    assert (missing["reason"], missing["connectivity"], missing["scores"]) == ("no usable series", "", [])
    assert (missing["class"], missing["sex"], missing["age"]) == ("no label", "sex not known", "age not known")


def test_without_series_there_are_no_pictures():
    found = follow_subjects(people(), ISSUES, [], predictions(), WORDS)
    assert found["mean"] == "" and found["subjects"][0]["connectivity"] == ""


@pytest.mark.parametrize("regions", [5, 200])
def test_a_picture_has_the_colour_of_the_correlations(regions):
    matrix = np.where(np.arange(regions)[:, None] < regions // 2, 0.8, -0.8) * np.ones((1, regions))
    picture = Image.open(BytesIO(base64.b64decode(thumbnail(matrix)))).convert("RGB")
    assert picture.size == (min(regions, SIDE),) * 2
    red, _, blue = picture.getpixel((0, 0))
    assert red > blue
    red, _, blue = picture.getpixel((0, picture.size[1] - 1))
    assert blue > red


def test_an_anchor_leads_to_the_subject_and_only_shown_methods_have_a_row():
    ways = Ways("toy", "", [{"subject": "s2", "scores": [{"variant": "a"}, {"variant": "b"}]}])
    assert ways.anchor("s2") == "subject-toy-0" and ways.anchor("s9") == ""
    shown = [ShownVariant("b", "b", "B", "linear"), ShownVariant("c", "c", "C", "linear")]
    assert [row["variant"] for _, row in ways.scores(ways.subjects[0], shown)] == ["b"]
