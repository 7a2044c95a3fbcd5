"""Charts: valid Vega-Lite, the same bytes for the same input, every method in them, a filter that filters."""

import json
import re
import tempfile
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import vl_convert

from brainfed.cohort import DIAGNOSIS_WORDS, class_words
from brainfed.evaluation import score_runs
from brainfed.evaluation._pooled import SUBGROUP_COLUMNS
from brainfed.reporting import PageTests, Scored, ShownVariant
from brainfed.reporting._pictures import inline
from brainfed.reporting._variants import Counterpart
from brainfed.reporting.charts import VERSION, config, save_chart
from brainfed.reporting.charts._curves import calibration_chart, confusion_chart, roc_chart
from brainfed.reporting.charts._gallery import traffic_chart
from brainfed.reporting.charts._lines import MOST_POINTS, learning_chart
from brainfed.reporting.charts._scores import (
    differences_chart,
    forest_chart,
    gain_chart,
    headline_chart,
    operating_chart,
    subgroups_chart,
)
from brainfed.reporting.charts._style import HIDDEN
from brainfed.reporting.text import find_answer
from support.reports.chart_rows import panel_of, rows_of

VARIANTS = [
    ShownVariant("majority", "majority", "Majority class", "baseline"),
    ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"}, topology="central"),
    ShownVariant("localgcn", "localgcn", "LocalGCN", "graph", {"curve_every": 10}, topology="local"),
    ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated", {"rounds": 4}, topology="federated",
                 counterparts={"alone": Counterpart("localgcn")}),
]  # fmt: skip
NAMES = [variant.name for variant in VARIANTS]
TITLES = {variant.title for variant in VARIANTS}
FRONT = [VARIANTS[3], VARIANTS[1], VARIANTS[2]]
THREE = class_words("diagnosis", ("control", "mild", "severe"))


@cache
def runs():
    random = np.random.default_rng(4)
    return pd.DataFrame(
        [(name, repeat, fold, scope, metric, 0.5 + 0.08 * rank + 0.03 * random.standard_normal())
         for rank, name in enumerate(NAMES) for repeat in range(2) for fold in range(5)
         for scope in ("institution", "pooled") for metric in ("accuracy", "auc")],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )  # fmt: skip


@cache
def predictions(classes=2):
    random, count = np.random.default_rng(5), 120
    label = np.arange(count) // 3 % classes
    parts = []
    for name in NAMES:
        chances = random.dirichlet(np.ones(classes), count) + 0.5 * np.eye(classes)[label]
        chances /= chances.sum(axis=1, keepdims=True)
        scores = {"score": chances[:, 1]} if classes == 2 else {
            f"score-{THREE.short[code]}": chances[:, code] for code in THREE.shown
        }  # fmt: skip
        kind = "margin" if name == "ridge-central" and classes == 2 else "probability"
        parts.append(pd.DataFrame({"variant": name, "repeat": 0, "fold": np.arange(count) % 3, **scores, "kind": kind,
                                   "label": label, "subject": [f"s{number}" for number in range(count)],
                                   "institution": [f"i{number // 40}" for number in range(count)]}))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def comparisons():
    return pd.DataFrame(
        [(name, metric, "institution", -0.1, -0.4, 0.2, 0.04 if name == "majority" else 1.0)
         for name in NAMES if name != "ridge-central" for metric in ("accuracy", "auc")],
        columns=["variant", "metric", "scope", "difference", "ci_low", "ci_high", "p_holm"],
    )  # fmt: skip


def groups():
    rows = [
        (variant.name, title, name, 40, 20, 0.6 + 0.1 * rank, 0.5, 0.9)
        for rank, variant in enumerate(FRONT)
        for title, name in (("sex", "female"), ("sex", "male"), ("site", "NYU"))
    ]
    return pd.DataFrame(rows, columns=list(SUBGROUP_COLUMNS))


def gain():
    return pd.DataFrame(
        [("fedgcn", side, "localgcn", f"institution-{number}", metric, 0.05 * number - 0.1, 0.1, 10)
         for side in ("alone", "pooled") for number in range(5) for metric in ("accuracy", "auc")],
        columns=["variant", "against", "twin", "institution", "metric", "mean", "sd", "runs"],
    )  # fmt: skip


def history(rounds=4):
    return pd.DataFrame(
        [(name, 0, fold, number, 1 / number, 0.7 + 0.1 * number + 0.01 * fold, 0.5 + 0.02 * number)
         for name in ("localgcn", "fedgcn") for fold in range(3) for number in range(1, rounds + 1)],
        columns=["variant", "repeat", "fold", "round", "training_loss", "test_loss", "test_accuracy"],
    )  # fmt: skip


@cache
def scored(classes=2):
    return Scored(runs() if classes == 2 else score_runs(predictions(classes)), 0.25)


def with_ledgers():
    """FedGCN sends weights, pooled ridge sends features of every subject, the others nothing."""
    folder, rows = Path(tempfile.mkdtemp()), {"fedgcn": "rows x columns", "ridge-central": "subjects x features"}
    found = []
    for variant in VARIANTS:
        row = {"stage": "classifier", "name": "weight", "direction": "upload", "to": "server", "shape": "2 x 3",
               "tensors": 1, "bytes": 2_000_000, "axes": rows.get(variant.name)}  # fmt: skip
        path = folder / f"{variant.name}.json"
        path.write_text(json.dumps({"crossings": [row] if variant.name in rows else []}), encoding="utf-8")
        found.append(replace(variant, costs=(str(path),)))
    return found


def answer():
    return find_answer(PageTests(scored(), VARIANTS, "ridge-central"))


def scores():
    return {name: scored().interval(name, "auc") for name in NAMES}


CHARTS = {
    "headline": lambda: headline_chart(answer()),
    "forest": lambda: forest_chart(scored(), VARIANTS, "ridge-central"),
    "differences": lambda: differences_chart(comparisons(), VARIANTS, 10),
    "roc": lambda: roc_chart(predictions(), VARIANTS, FRONT, scored()),
    "roc-of-three": lambda: roc_chart(predictions(3), VARIANTS, FRONT, scored(3), THREE),
    "calibration": lambda: calibration_chart(predictions(), VARIANTS, FRONT),
    "calibration-of-three": lambda: calibration_chart(predictions(3), VARIANTS, FRONT, THREE),
    "confusion": lambda: confusion_chart(predictions(), VARIANTS),
    "confusion-of-three": lambda: confusion_chart(predictions(3), VARIANTS, THREE),
    "operating": lambda: operating_chart(predictions(), VARIANTS, 0.5),
    "subgroups": lambda: subgroups_chart(groups(), FRONT),
    "traffic": lambda: traffic_chart(with_ledgers(), scores()),
    "gain": lambda: gain_chart(gain(), VARIANTS, scored()),
    "learning": lambda: learning_chart(history(), VARIANTS, FRONT),
}


@cache
def chart(name):
    """A chart, made once for all tests."""
    return CHARTS[name]()


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_made_the_same_twice_holds_its_specification_and_filters_methods(name, tmp_path):
    """A hidden method's marks and name leave: fewer marks and other words are drawn."""
    save_chart(chart(name), tmp_path / "chart.svg", "A finding")
    head, drawn = (tmp_path / "chart.svg").read_text().split("</metadata>", 1)
    assert "<dc:title>A finding</dc:title>" in head
    held = json.loads(unescape(re.search(r"<dc:source>(.*?)</dc:source>", head, re.DOTALL)[1]))
    specification = {"params": [{"name": HIDDEN, "value": []}], **CHARTS[name]().to_dict()}
    assert held == {key: value for key, value in specification.items() if key not in {"$schema", "config"}}
    if name == "roc-of-three":
        again = vl_convert.vegalite_to_svg({**held, "config": config()}, vl_version=VERSION)
        assert again.split(">", 1)[1] == drawn
    (filtered,) = [parameter for parameter in held["params"] if parameter["name"] == HIDDEN]
    filtered["value"] = ["fedgcn" if name == "gain" else "localgcn"]
    without = vl_convert.vegalite_to_svg({**held, "config": config()}, vl_version=VERSION).split(">", 1)[1]
    assert without.count("<path") < drawn.count("<path") and len(without) < len(drawn)
    if name in ("roc", "calibration", "learning"):
        assert "federated: FedGCN, " in drawn and "alone: LocalGCN, " in drawn


def test_every_method_has_a_row():
    for name in ("forest", "operating"):
        assert set(rows_of(chart(name))["method"]) == TITLES
    assert set(rows_of(chart("confusion"), "truth", "share")["method"]) == TITLES
    assert set(rows_of(chart("roc"), "fpr", "tpr")["method"]) == TITLES


@pytest.mark.parametrize("classes", [2, 3])
def test_the_legend_of_the_roc_curves_has_the_auc_of_the_tables(classes):
    held = scored(classes)
    words = DIAGNOSIS_WORDS if classes == 2 else THREE
    found = rows_of(roc_chart(predictions(classes), VARIANTS, FRONT, held, words), "fpr", "tpr")
    for variant in VARIANTS:
        (shown,) = set(found.loc[found["variant"] == variant.name, "score"])
        assert shown == f"AUC {held.interval(variant.name, 'auc').text}"
    assert set(rows_of(chart("traffic"))["method"]) == TITLES


def test_a_hollow_mark_is_of_entries_of_single_subjects():
    table = rows_of(chart("traffic").hconcat[1], "shown", "leaves").set_index("variant")
    columns = ["shown", "leaves", "hollow"]
    assert table.loc["majority", columns].to_list() == ["nothing", "nothing", False]
    assert table.loc["fedgcn", columns].to_list() == ["2.0 MB", "models or sums", False]
    assert table.loc["ridge-central", columns[1:]].to_list() == ["entries of single subjects", True]


def test_gains_are_those_of_institutions_and_a_missing_counterpart_is_named():
    dots = rows_of(chart("gain"), "institution", "gain")
    assert dots["gain"].tolist() == [-0.1, -0.05, 0.0, 0.05, 0.1]
    alone, pooled = (rows_of(panel_of(chart("gain"), place), "gained", "share").iloc[0] for place in (0, 1))
    assert (alone["share"], alone["better off"]) == ("2/5", "2 of 5 institutions")
    assert alone["mean"] == pytest.approx(scored().difference("fedgcn", "localgcn", "auc").mean, abs=1e-4)
    assert (pooled["gained"], pooled["share"]) == ("no counterpart", "")


def test_a_method_that_equals_its_counterpart_in_all_runs_is_equal_in_the_chart_as_in_the_table():
    own = runs().query("variant == 'fedgcn'")
    rounded = own.assign(variant="localgcn", value=own["value"] - 1e-16)
    equal = gain_chart(gain().assign(mean=1e-16), VARIANTS, Scored(pd.concat([own, rounded]), 0.25))
    alone = rows_of(panel_of(equal, 0), "gained", "share").iloc[0]
    assert (alone["share"], alone["better off"]) == ("equal", "equal in all runs")


def test_learning_curves_are_means_over_runs_in_local_epochs():
    table = rows_of(chart("learning"), "epochs", "test_loss").set_index(["variant", "epochs"])
    assert table.loc[("localgcn", 20), "test_loss"] == pytest.approx(0.7 + 0.2 + 0.01)
    assert (table.loc[("fedgcn", 4), "test accuracy"], len(table)) == ("0.58 (sd 0.00)", 8)


def test_long_training_is_drawn_at_chosen_rounds_and_its_last():
    table = rows_of(learning_chart(history(500), VARIANTS, FRONT), "epochs", "test_loss")
    epochs = table.loc[table["variant"] == "fedgcn", "epochs"]
    assert len(epochs) == MOST_POINTS and epochs.iloc[[0, -1]].tolist() == [1, 500]


def test_margins_have_no_calibration():
    assert "Ridge (central)" not in set(rows_of(chart("calibration"), "share", "Brier")["method"])


def test_a_confusion_row_adds_up():
    table = rows_of(chart("confusion-of-three"), "truth", "part")
    assert np.allclose(table.groupby(["variant", "truth"])["part"].sum(), 1, atol=1e-3)
    assert set(table["true"]) == {"control", "mild", "severe"}


def test_the_matrix_of_two_classes_has_patients_where_it_says_so():
    """30 patients and 90 controls, all of them predicted right but ten patients."""
    label = np.repeat([1, 0], [30, 90])
    score = np.where(label == 1, 0.9, 0.1)
    score[:10] = 0.2
    table = pd.DataFrame(
        {"variant": "fedgcn", "repeat": 0, "fold": 0, "score": score, "kind": "probability", "label": label}
    )
    cells = rows_of(confusion_chart(table, VARIANTS), "truth", "part").set_index(["truth", "predicted"])
    assert cells.loc[("truly patients", "patients"), "people"] == "20 a repeat"
    assert cells.loc[("truly patients", "controls"), "people"] == "10 a repeat"
    assert cells.loc[("truly controls", "controls"), ["people", "share"]].tolist() == ["90 a repeat", "100 %"]


def test_a_filled_dot_is_significant():
    table = rows_of(chart("differences")).set_index("variant")
    assert not table.loc["majority", "hollow"] and table.loc["majority", "shown"].endswith("*")
    assert table.loc["fedgcn", "hollow"]


def test_few_runs_have_no_interval():
    assert set(rows_of(differences_chart(comparisons(), VARIANTS, 4))["95 % interval"]) == {"unknown"}
    assert "unknown" not in set(rows_of(differences_chart(comparisons(), VARIANTS, 5))["95 % interval"])


def test_what_has_no_data_has_no_chart():
    one_class = predictions().assign(label=1)
    assert roc_chart(one_class, VARIANTS, FRONT, scored()) is None
    assert operating_chart(one_class, VARIANTS, 0.5) is None
    assert calibration_chart(predictions().assign(kind="margin"), VARIANTS, FRONT) is None
    assert subgroups_chart(groups().head(0), FRONT) is None
    assert differences_chart(comparisons().head(0), VARIANTS, 10) is None
    assert gain_chart(gain().head(0), VARIANTS, scored()) is None
    assert learning_chart(history().head(0), VARIANTS, FRONT) is None


def test_ids_of_two_figures_stay_apart():
    svg = (
        '<?xml version="1.0"?><!-- made --><svg width="10pt" height="5pt" viewBox="0 0 10 5"><metadata>x</metadata>'
        '<defs><style type="text/css">*{stroke-linejoin: round}</style><clipPath id="p1"><rect/></clipPath></defs>'
        '<g id="axes_1" clip-path="url(#p1)"><use xlink:href="#p1"/><path d="M 1.2345 2&#10;L 3 4.5678"/></g></svg>'
    )
    found = inline(svg, "one", 'A "quoted" finding')
    assert 'id="one-p1"' in found
    assert 'clip-path="url(#one-p1)"' in found
    assert 'xlink:href="#one-p1"' in found
    assert "axes_1" not in found and "<style" not in found and "metadata" not in found
    assert 'role="img" aria-label="A &quot;quoted&quot; finding"' in found
    assert "stroke-linejoin: round" in found and "M 1.23 2" in found
