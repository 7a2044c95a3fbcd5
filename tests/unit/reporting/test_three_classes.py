"""Three diagnoses from artefacts to the page: assembled, learnt, predicted, scored, drawn."""

import html
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.methods.baselines.declaration import MajoritySettings
from brainfed.methods.baselines.train import majority
from brainfed.methods.linear.declaration import RidgeSettings
from brainfed.methods.linear.train import train_ridge as ridge
from brainfed.runtime import Streams, read_arrays, write_arrays
from brainfed.runtime.jobs import Run
from brainfed.samples import assemble, check, predictions_table
from support.reports import report_project
from support.reports.report_project import METHODS, draw_project, page_of, use_few_methods

CLASSES = ("CN", "MCI", "AD")
PENALTY = {name: 10.0 ** (number - 4) for number, name in enumerate(METHODS)}


def predict(name, repeat, cohort):
    """Predictions of majority, and of a ridge classifier with a penalty of its own for every other variant."""
    features = cohort / "features.safetensors"
    if not features.exists():
        _write_features(cohort, features)
    inputs, truth = assemble(
        split=cohort / f"split-{repeat}.parquet",
        participants=cohort / "participants.parquet",
        features=[] if name == "majority" else [features],
        graphs=[],
        labels="true",
        streams=Streams(1, repeat),
        classes=len(CLASSES),
    )
    if name == "majority":
        outcome = majority(inputs, MajoritySettings(), Run())
    else:
        outcome = ridge(inputs, RidgeSettings(alphas=(PENALTY[name],)), Run())
    check(inputs, outcome)
    return predictions_table(inputs, outcome, truth, CLASSES)


def _write_features(cohort, path):
    people = pd.read_parquet(cohort / "participants.parquet")
    label = people["diagnosis"].to_numpy(np.int64)
    noise = np.random.default_rng(8).standard_normal((len(people), 12))
    noise[np.arange(len(people)), label] += 2.5
    write_arrays(path, {"features": noise.astype(np.float32)}, {"subjects": list(people["subject"])})
    assert read_arrays(path, ["features"]).subjects


DRAWN = pytest.param(True, marks=pytest.mark.full("Figures take seconds to draw, those of classes among them."))


@pytest.fixture(scope="module", params=[False, DRAWN], ids=["page", "drawn"])
def outline(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    with pytest.MonkeyPatch.context() as patch:
        use_few_methods(patch)
        patch.setattr(report_project, "REPEATS", 1)
        return draw_project(folder, sites=4, classes=CLASSES, predict=predict, pictures=request.param)


@pytest.fixture(scope="module")
def tables(outline):
    return outline["cohorts"][0]["experiments"][0]["tables"]


@pytest.fixture(scope="module")
def page(outline):
    return html.unescape(page_of(outline))


def test_predictions_hold_one_score_a_class(tables):
    methods = Path(tables["summary"]).parent / "methods"
    table = pd.read_parquet(methods / "ridge-central" / "repeat-0" / "predictions.parquet")
    scores = ["score-CN", "score-MCI", "score-AD"]
    assert list(table.columns) == ["subject", "institution", "fold", *scores, "kind", "label"]
    assert (table[scores].to_numpy().argmax(axis=1) == table["label"]).mean() > 0.6


def test_the_table_has_means_over_classes_and_a_row_a_class(tables):
    table = pd.read_csv(tables["summary"], sep="\t")
    values = table[(table["scope"] == "pooled")].set_index(["variant", "metric"])["mean"]
    own = values["ridge-central"]
    assert own["recall"] == pytest.approx(np.mean([own[f"recall:{name}"] for name in CLASSES]))
    assert own["balanced_accuracy"] == pytest.approx(own["recall"]) and own["auc"] > 0.75
    assert values["majority"]["balanced_accuracy"] == pytest.approx(1 / 3, abs=0.01)
    assert np.isnan(values["majority"]["precision"])


def test_the_confusion_matrix_counts_every_prediction(tables):
    table = pd.read_csv(tables["confusion"], sep="\t")
    own = table[table["variant"] == "ridge-central"]
    assert own["predictions"].sum() == 46
    assert set(own["label"]) == set(own["predicted"]) == set(CLASSES)
    assert own.groupby("label")["share"].sum().tolist() == pytest.approx([1, 1, 1])


def test_the_page_speaks_of_the_classes(page):
    assert "15 CN subjects, 16 MCI subjects, 15 AD subjects" in page
    assert "CN, MCI and AD subjects end to end" in page and "between AD subjects and all others" in page
    assert "means over the 3 classes, each against the rest" in page
    assert "mm in MCI subjects and" in page


def test_the_page_names_no_patients_as_a_class(page):
    visible = page[page.index("<body") :]
    for words in ("patients and controls", "patients minus controls", "in patients", "Patients are the positive class"):
        assert words not in visible
