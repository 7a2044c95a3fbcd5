"""Charts that repeat a figure of a paper: the same bytes, findings as titles, right numbers, kinds of any method."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation import compare_with_reference
from brainfed.papers import FIGURES, PRINTINGS
from brainfed.reporting import PageTests, read_scored
from brainfed.reporting.charts import draw
from brainfed.reporting.charts._lines import MOST_POINTS
from brainfed.reporting.charts._of_papers import KINDS
from brainfed.reporting.charts._sweeps import ablation_finding, sweep_finding, sweep_series
from brainfed.runtime import UserError
from support.reports.chart_rows import panel_of, rows_of
from support.reports.paper_experiments import EXPERIMENTS, KS, chart_of, drawn_words, page_tests
from support.reports.report_experiments import experiment, read, variant_outline


@pytest.fixture(scope="module")
def outlines(tmp_path_factory):
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in EXPERIMENTS.items()}


def test_every_kind_has_a_made_up_experiment():
    assert set(EXPERIMENTS) == {*KINDS, *FIGURES}


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_words_are_text_and_the_finding_is_the_title(kind, outlines, tmp_path):
    draw(kind, read(outlines[kind]), str(tmp_path / "drawn.svg"), FIGURES, PRINTINGS)
    drawn = (tmp_path / "drawn.svg").read_text()
    (said,) = re.findall("<dc:title>(.*?)</dc:title>", drawn)
    assert "<text" in drawn and unescape(said) == drawn_words(read(outlines[kind]))


@pytest.mark.parametrize(
    "kind",
    ["bars", *(pytest.param(kind, marks=pytest.mark.full("The same code draws it.")) for kind in [*EXPERIMENTS][1:])],
)
def test_the_same_experiment_gives_the_same_bytes(kind, outlines, tmp_path):
    for name in ("first.svg", "second.svg"):
        draw(kind, read(outlines[kind]), str(tmp_path / name), FIGURES, PRINTINGS)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_an_unknown_kind_is_a_mistake(outlines, tmp_path):
    with pytest.raises(UserError, match=r"no figure of the kind 'pie'; it must be one of bars, line"):
        draw("pie", read(outlines["bars"]), str(tmp_path / "pie.svg"), FIGURES)


def test_an_ablation_names_differences_that_survive_the_correction(outlines):
    """Without edges the accuracy is .05 lower, far beyond the wobble of .008; the AUC is the same."""
    outline = read(outlines["bars"])
    assert ablation_finding(outline, read_scored(outline)) == (
        "Accuracy: FedNI (no edge) significantly below FedNI; AUC: nothing differs significantly from FedNI"
    )


def test_a_sweep_has_a_line_a_method_and_is_tested_against_the_paper_s_own_choice(outlines):
    outline = read(outlines["line"])
    series = sweep_series(outline.variants, "graph.k")
    assert [one.title for one in series] == ["FedNI", "FedGCN", "Ridge (central)"]
    assert [one.values for one in series] == [KS, KS, (None,)]
    assert [one.swept for one in series] == [True, True, False]
    (series, *_) = sweep_series(outline.variants, "graph.k")
    assert sweep_finding(series, page_tests(outline), "graph.k") == (
        "FedNI is most accurate at k = 40 (0.67); 1 of 3 values differs significantly from k = 10 "
        "(Holm-corrected over all 16 comparisons with FedNI (k = 10) in the tests below, methods, metrics and scopes)"
    )


def test_a_sweep_that_is_not_tested_against_the_reference_states_its_family(outlines):
    outline = read(outlines["line"])
    (series, *_) = sweep_series(outline.variants, "graph.k")
    found = sweep_finding(series, PageTests(read_scored(outline), outline.variants, "ridge-central"), "graph.k")
    assert re.search(r"from k = 10 \(Holm-corrected over the 3 comparisons with FedNI \(k = 10\) on this page", found)


def test_curves_end_where_the_history_does(outlines):
    outline = read(outlines["rounds"])
    losses, _, accuracy = (rows_of(panel_of(chart_of(outline), place), "series", "at", "mean") for place in range(3))
    assert losses.groupby("series")["at"].max().to_list() == [30, 30, 30]
    assert losses["mean"].iloc[29] == pytest.approx(0.69 * np.exp(-0.012 * 30), abs=1e-4)
    ends = {}
    for variant, (_, rows) in zip(outline.variants, accuracy.groupby("series", sort=False), strict=True):
        history = pd.read_parquet(variant.histories[0])
        assert rows["mean"].to_numpy() == pytest.approx(
            history.groupby("round")["test_accuracy"].mean().to_numpy(), abs=1e-4
        )
        ends[variant.setting("local_epochs")] = rows["mean"].iloc[-1]
    best, worst = max(ends, key=ends.get), min(ends, key=ends.get)
    assert drawn_words(outline) == (
        f"After 30 rounds the accuracy is highest with E = {best} ({ends[best]:.2f}) "
        f"and lowest with E = {worst} ({ends[worst]:.2f}; not tested)"
    )


def test_long_training_is_drawn_at_chosen_rounds_and_its_last(outlines):
    outline = read(outlines["rounds"])
    rows = rows_of(panel_of(chart_of(outline), 0), "series", "at")
    assert len(rows) <= 3 * MOST_POINTS and rows["at"].max() == 30


def test_clients_are_on_the_axis_by_their_number(outlines):
    outline = read(outlines["clients"])
    rows = rows_of(panel_of(chart_of(outline), 0), "series", "value", "mean")
    assert list(dict.fromkeys(rows["value"])) == ["2", "6", "10"]
    assert rows.loc[rows["series"] == "FedNI", "mean"].to_list() == pytest.approx([0.62, 0.66, 0.70])
    said = drawn_words(outline)
    assert said.startswith("FedNI: accuracy 0.62 [") and said.endswith("with 10 (not tested)")


def test_points_of_two_lines_stand_side_by_side_and_level_lines_cross_the_panel(outlines):
    rows = rows_of(panel_of(chart_of(read(outlines["line"])), 0), "series", "at", "value")
    apart = rows[rows["value"] == "10"].groupby("series")["at"].first()
    assert 0 < apart["FedGCN"] - apart["FedNI"] < 1
    assert rows.loc[rows["series"] == "Ridge (central)", "at"].to_list() == [min(KS), max(KS)]


def test_a_sweep_around_the_reference_has_the_family_of_the_test_table(outlines):
    outline = read(outlines["line"])
    scored = read_scored(outline)
    others = ["fedni-k-k3", "fedni-k-k5", "fedni-k-k40"]
    tests = compare_with_reference(scored.runs, "fedni-k-k10", scored.ratio).query("metric == 'accuracy'")
    table = tests.set_index("variant")["p_holm"]
    found = page_tests(outline).differences("fedni-k-k10", others, "accuracy")
    assert {name: p for name, (_, p) in found.items()} == table[others].to_dict()


def test_a_figure_without_its_contents_has_a_note(tmp_path):
    only = [(variant_outline(tmp_path, "fedgcn", "fedgcn"), 0.6, 0.65)]
    expected = {
        "line": (["graph.k"], "no variant of this experiment sweeps k"),
        "surface": (["inpainting.alpha", "inpainting.beta"], "no variant of this experiment sweeps both settings"),
        "cost": ([], "no method of this experiment generates nodes"),
        "distribution": ([], "no method of this experiment generates nodes"),
        "fidelity": ([], "fidelity is known under `graph.scope: global_cut` alone"),
        "readings": ([], "no two readings of the paper's methods"),
    }
    for kind, (axes, words) in expected.items():
        chart = chart_of(read(experiment(tmp_path, kind, only, axes=axes)))
        assert rows_of(chart, "words")["words"].to_list() == [words]
