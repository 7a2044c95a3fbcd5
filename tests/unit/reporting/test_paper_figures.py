"""Figures that repeat one of a paper: nothing clipped, words apart, the same bytes; and the kinds of any method."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation.experiment import compare_with_reference
from brainfed.papers.figures import FIGURES, PRINTINGS
from brainfed.reporting.figures.of_papers import KINDS, draw
from brainfed.reporting.figures.sweeps import ablation_finding, sweep_finding, sweep_series
from brainfed.reporting.scored import PageTests, read_scored
from brainfed.runtime.errors import UserError
from support.reports.paper_experiments import EXPERIMENTS, KS, drawn, page_tests
from support.reports.report_experiments import experiment, read, variant_outline


@pytest.fixture(scope="module")
def outlines(tmp_path_factory):
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in EXPERIMENTS.items()}


def test_every_kind_has_a_made_up_experiment():
    assert set(EXPERIMENTS) == {*KINDS, *FIGURES}


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_nothing_reaches_over_the_edge_and_words_keep_apart(kind, outlines):
    figure, renderer = drawn(outlines[kind])
    box = figure.get_tightbbox(renderer)
    width, height = figure.get_size_inches()
    assert box.x0 >= -0.02 and box.y0 >= -0.02 and box.x1 <= width + 0.02 and box.y1 <= height + 0.02
    words = [figure._suptitle]
    for axes in figure.axes:
        words += [axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts, *shown_ticks(axes)]
    held = [(text.get_text(), text.get_window_extent(renderer)) for text in words if text.get_text()]
    assert len(held) > 10
    pairs = itertools.combinations(held, 2)
    assert [(one, other) for (one, box), (other, beside) in pairs if box.overlaps(beside)] == []


def shown_ticks(axes):
    """Labels of the ticks inside the axes: matplotlib keeps others that it does not draw."""
    labels = []
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = [tick for tick in axis.get_major_ticks() if min(limits) <= tick.get_loc() <= max(limits)]
        labels += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    return labels


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
    figure, _ = drawn(outlines["rounds"])
    losses = [line.get_ydata() for line in figure.axes[0].lines]
    assert [len(curve) for curve in losses] == [30, 30, 30]
    assert losses[0][-1] == pytest.approx(0.69 * np.exp(-0.012 * 30))
    outline = read(outlines["rounds"])
    for line, variant in zip(figure.axes[2].lines, outline.variants, strict=True):
        history = pd.read_parquet(variant.histories[0])
        assert line.get_ydata() == pytest.approx(history.groupby("round")["test_accuracy"].mean().to_numpy())
    ends = {variant.setting("local_epochs"): line.get_ydata()[-1]
            for line, variant in zip(figure.axes[2].lines, outline.variants, strict=True)}  # fmt: skip
    best, worst = max(ends, key=ends.get), min(ends, key=ends.get)
    assert figure._suptitle.get_text().replace("\n", " ") == (
        f"After 30 rounds the accuracy is highest with E = {best} ({ends[best]:.2f}) "
        f"and lowest with E = {worst} ({ends[worst]:.2f}; not tested)"
    )


def test_clients_are_on_the_axis_by_their_number(outlines):
    figure, _ = drawn(outlines["clients"])
    assert [int(tick) for tick in figure.axes[0].get_xticks()] == [2, 6, 10]
    said = figure._suptitle.get_text().replace("\n", " ")
    assert said.startswith("FedNI: accuracy 0.62 [") and said.endswith("with 10 (not tested)")


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
        figure, _ = drawn(experiment(tmp_path, kind, only, axes=axes))
        (said,) = figure.texts
        assert said.get_text() == words
