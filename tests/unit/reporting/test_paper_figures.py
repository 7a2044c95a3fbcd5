"""The paper's figures from made-up experiments: nothing clipped, words apart, numbers and findings right."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from brainfed.evaluation.experiment import compare_with_reference
from brainfed.reporting.figures.paper.ablation import ablation_finding
from brainfed.reporting.figures.paper.distribution import read_nodes
from brainfed.reporting.figures.paper.fidelity import fidelity_finding
from brainfed.reporting.figures.paper.gallery import KINDS, draw
from brainfed.reporting.figures.paper.surface import surface, surface_finding
from brainfed.reporting.figures.paper.sweep import sweep_finding
from brainfed.reporting.figures.paper.sweep_series import sweep_series
from brainfed.reporting.figures.style import drawing
from brainfed.reporting.outline import read_experiment
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.scored import read_scored
from brainfed.reporting.tables.fidelity import count_sentence, fidelity_rows, read_fidelity
from brainfed.reporting.tables.phase_costs import phase_costs
from brainfed.reporting.tables.printed import as_in_the_paper
from brainfed.runtime.errors import UserError
from report_experiments import GENERATED, SUBJECTS, experiment, some_readings, variant_outline, write_fidelity

KS = (3, 5, 10, 40)
WEIGHTS = (0.01, 1.0, 5.0)


def bars(folder):
    off = {"inpainting": {"discriminator": False}}
    rows = [
        (variant_outline(folder, "fedni", "fedni"), 0.66, 0.70),
        (variant_outline(folder, "fedni-no-edge", "fedni", fusing={"edges": "binary"}), 0.61, 0.70),
        (variant_outline(folder, "fedni-no-discriminator", "fedni", **off), 0.66, 0.69),
        (variant_outline(folder, "fedgcn", "fedgcn"), 0.655, 0.69),
    ]
    return experiment(folder, "bars", rows, name="fig2", paper="fig2")


def line(folder):
    rows = [
        (variant_outline(folder, f"{method}-k-k{k}", method, graph={"k": k}), 0.64 + shift + bump, 0.68 + shift + bump)
        for method, shift in (("fedni", 0.01), ("fedgcn", 0.0))
        for k, bump in zip(KS, (-0.05, 0.0, 0.01, 0.02), strict=True)
    ]
    rows.append((variant_outline(folder, "ridge-central", "ridge"), 0.68, 0.74))
    return experiment(folder, "line", rows, name="fig8", axes=["graph.k"], reference="fedni-k-k10")


def plane(folder):
    rows = [
        (
            variant_outline(folder, f"fedni-weights-alpha{a}-beta{b}", "fedni", inpainting={"alpha": a, "beta": b}),
            0.60 + 0.01 * row + 0.02 * column,
            0.7,
        )
        for row, a in enumerate(WEIGHTS)
        for column, b in enumerate(WEIGHTS)
    ]
    rows.append((variant_outline(folder, "fedsage-plus", "fedsage-plus"), 0.615, 0.66))
    axes = ["inpainting.alpha", "inpainting.beta"]
    return experiment(folder, "surface", rows, name="fig6", axes=axes, reference="fedsage-plus")


def rounds(folder):
    rows = [
        (
            variant_outline(folder, f"fedni-local-epochs{e}", "fedni", settings={"rounds": 30, "local_epochs": e}),
            0.65,
            0.7,
        )
        for e in (1, 5, 20)
    ]
    return experiment(folder, "rounds", rows, name="fig9", axes=["local_epochs"])


def distribution(folder):
    off = {"inpainting": {"discriminator": False}, "spread": 0.1}
    rows = [
        (variant_outline(folder, "fedni", "fedni", spread=0.5), 0.66, 0.7),
        (variant_outline(folder, "fedni-no-discriminator", "fedni", **off), 0.66, 0.7),
    ]
    return experiment(folder, "distribution", rows, name="fig5")


def clients(folder):
    members = [
        experiment(
            folder, "clients",
            [(variant_outline(folder, "fedni", "fedni"), 0.6 + 0.01 * count, 0.62 + 0.01 * count),
             (variant_outline(folder, "fedgcn", "fedgcn"), 0.6, 0.62)],
            name=f"fig7-count{count}", count=count,
        ) | {"group": "fig7"}
        for count in (2, 6, 10)
    ]  # fmt: skip
    return members[0] | {"name": "fig7", "members": members}


def cost(folder):
    rows = [(variant_outline(folder, name, name), 0.66, 0.7) for name in ("fedgcn", "fedsage-plus", "fedni")]
    return experiment(folder, "cost", rows, name="table6")


def fidelity(folder):
    rows = []
    for name, generated in (("fedni-cut", 0.12), ("fedni-cut-no-discriminator", 0.25)):
        outline = variant_outline(folder, name, "fedni", graph={"scope": "global_cut"})
        outline["fidelity"] = [write_fidelity(folder / f"{name}-{repeat}.json", generated) for repeat in range(2)]
        rows.append((outline, 0.66, 0.7))
    return experiment(folder, "fidelity", rows, name="fidelity")


DOSES = {0.0: (0.55, 0.55, 0.55), 0.5: (0.60, 0.70, 0.62), 1.0: (0.70, 0.90, 0.75)}
"""Dose -> accuracy on the cut graph, on pooled data, and with generated nodes."""


def dose(folder):
    members = []
    for value, (cut, pooled, generated) in DOSES.items():
        name = f"dose-{100 * value:.0f}"
        own = folder / name
        rows = [
            (variant_outline(own, "localgcn", "localgcn"), cut - 0.02, 0.6),
            (variant_outline(own, "centralgcn", "centralgcn"), pooled, 0.7),
            (variant_outline(own, "fedgcn", "fedgcn"), cut, 0.6),
            (variant_outline(own, "fedni", "fedni"), generated, 0.6),
            (variant_outline(own, "fedni-mean-nodes", "fedni", fusing={"nodes": "mean"}), cut, 0.6),
            (variant_outline(own, "fedni-four-nodes", "fedni", fusing={"cap": 4}), generated, 0.6),
            (variant_outline(own, "fedni-four-true", "fedni", fusing={"cap": 4, "nodes": "true"}), pooled, 0.7),
            (variant_outline(own, "fedsage-plus", "fedsage-plus"), cut, 0.6),
        ]
        axes = ["simulate.group_agreement"]
        outline = experiment(own, "dose", rows, name="dose", axes=axes, reference="fedgcn")
        members.append(outline | {"cohort": name, "simulate": {"group_agreement": value}})
    return members[0] | {"members": members[::-1]}


def readings(folder):
    return experiment(folder, "readings", some_readings(folder), name="readings", reference="fedgcn")


EXPERIMENTS = {"bars": bars, "line": line, "surface": plane, "rounds": rounds, "distribution": distribution,
               "clients": clients, "cost": cost, "fidelity": fidelity, "dose": dose, "readings": readings}  # fmt: skip


@pytest.fixture(scope="module")
def outlines(tmp_path_factory):
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in EXPERIMENTS.items()}


def test_every_kind_has_a_made_up_experiment():
    assert set(EXPERIMENTS) == set(KINDS)


def page_tests(outline):
    return PageTests(read_scored(outline), outline.variants, outline.reference)


def drawn(outline):
    """A figure and its renderer, after the layout has settled."""
    with drawing():
        figure = KINDS[outline["figure"]](read_experiment(outline))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return figure, canvas.get_renderer()


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_nothing_reaches_over_the_edge(kind, outlines):
    figure, renderer = drawn(outlines[kind])
    box = figure.get_tightbbox(renderer)
    width, height = figure.get_size_inches()
    assert box.x0 >= -0.02
    assert box.y0 >= -0.02
    assert box.x1 <= width + 0.02
    assert box.y1 <= height + 0.02


def shown_ticks(axes):
    """Labels of the ticks inside the axes: matplotlib keeps others that it does not draw."""
    labels = []
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = [tick for tick in axis.get_major_ticks() if min(limits) <= tick.get_loc() <= max(limits)]
        labels += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    return labels


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_words_and_numbers_keep_apart(kind, outlines):
    figure, renderer = drawn(outlines[kind])
    words = [figure._suptitle]
    for axes in figure.axes:
        words += [axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts, *shown_ticks(axes)]
    held = [(text.get_text(), text.get_window_extent(renderer)) for text in words if text.get_text()]
    assert len(held) > 10
    pairs = itertools.combinations(held, 2)
    assert [(one, other) for (one, box), (other, beside) in pairs if box.overlaps(beside)] == []


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_the_same_experiment_gives_the_same_bytes(kind, outlines, tmp_path):
    for name in ("first.svg", "second.svg"):
        draw(kind, outlines[kind], str(tmp_path / name))
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_an_unknown_kind_is_a_mistake(outlines, tmp_path):
    with pytest.raises(UserError, match=r"no figure of the kind 'pie'; it must be one of bars, line"):
        draw("pie", outlines["bars"], str(tmp_path / "pie.svg"))


def test_an_ablation_names_differences_that_survive_the_correction(outlines):
    """Without edges the accuracy is .05 lower, far beyond the wobble of .008; the AUC is the same."""
    outline = read_experiment(outlines["bars"])
    assert ablation_finding(outline, read_scored(outline)) == (
        "Accuracy: FedNI (no edge) significantly below FedNI; AUC: nothing differs significantly from FedNI"
    )


def test_hollow_diamonds_are_printed_numbers(outlines):
    """Fig. 2 and Table V on ABIDE: FedNI .667, without edges .650, without discriminator .660, FedGCN .644."""
    figure, _ = drawn(outlines["bars"])
    printed = [mark.get_xdata()[0] for mark in figure.axes[0].lines if mark.get_marker() == "D"]
    assert printed == [0.667, 0.650, 0.660, 0.644]
    assert not [mark for mark in figure.axes[1].lines if mark.get_marker() == "D"], (
        "the printed AUC is no AUC of scores"
    )
    assert [text.get_text() for text in figure.axes[0].texts][:2] == ["0.66", "0.61   \u22120.050 *"]


def test_a_sweep_has_a_line_a_method_and_a_level_for_the_rest(outlines):
    outline = read_experiment(outlines["line"])
    series = sweep_series(outline.variants, "graph.k")
    assert [one.title for one in series] == ["FedNI", "FedGCN", "Ridge (central)"]
    assert [one.values for one in series] == [KS, KS, (None,)]
    assert [one.swept for one in series] == [True, True, False]


def test_a_sweep_is_tested_against_the_paper_s_own_choice(outlines):
    outline = read_experiment(outlines["line"])
    (series, *_) = sweep_series(outline.variants, "graph.k")
    assert sweep_finding(series, page_tests(outline), "graph.k") == (
        "FedNI is most accurate at k = 40 (0.67); 1 of 3 values differs significantly from k = 10 "
        "(Holm-corrected over all 16 comparisons with FedNI (k = 10) in the tests below, methods, metrics and scopes)"
    )


def test_a_sweep_that_is_not_tested_against_the_reference_states_its_family(outlines):
    outline = read_experiment(outlines["line"])
    (series, *_) = sweep_series(outline.variants, "graph.k")
    found = sweep_finding(series, PageTests(read_scored(outline), outline.variants, "ridge-central"), "graph.k")
    assert re.search(r"from k = 10 \(Holm-corrected over the 3 comparisons with FedNI \(k = 10\) on this page", found)


def test_the_surface_counts_the_pairs_above_the_plane(outlines):
    """.60 + .01 row + .02 column beside .615: 0, 1, 2 in rows of .60 .62 .64, .61 .63 .65, .62 .64 .66."""
    outline = read_experiment(outlines["surface"])
    scored = read_scored(outline)
    grid = surface(outline, scored)
    assert grid.rows == grid.columns == WEIGHTS
    assert grid.mean == pytest.approx(np.array([[0.60, 0.62, 0.64], [0.61, 0.63, 0.65], [0.62, 0.64, 0.66]]))
    found = surface_finding(grid, outline.variant("fedsage-plus"), page_tests(outline))
    tests = compare_with_reference(scored.runs, "fedsage-plus", scored.ratio).query("metric == 'accuracy'")
    surely = int(((tests["p_holm"] < 0.05) & (tests["difference"] > 0)).sum())
    assert 0 < surely < 7
    assert found == (
        f"FedNI is above FedSage+ (0.62) at 7 of 9 pairs, {surely} of them significantly (Holm-corrected over "
        "all 18 comparisons with FedSage+ in the tests below, methods, metrics and scopes)"
    )


def test_curves_end_where_the_history_does(outlines):
    figure, _ = drawn(outlines["rounds"])
    losses = [line.get_ydata() for line in figure.axes[0].lines]
    assert [len(curve) for curve in losses] == [30, 30, 30]
    assert losses[0][-1] == pytest.approx(0.69 * np.exp(-0.012 * 30))
    read = read_experiment(outlines["rounds"])
    for line, variant in zip(figure.axes[2].lines, read.variants, strict=True):
        history = pd.read_parquet(variant.histories[0])
        assert line.get_ydata() == pytest.approx(history.groupby("round")["test_accuracy"].mean().to_numpy())
    ends = {variant.setting("local_epochs"): line.get_ydata()[-1]
            for line, variant in zip(figure.axes[2].lines, read.variants, strict=True)}  # fmt: skip
    best, worst = max(ends, key=ends.get), min(ends, key=ends.get)
    assert figure._suptitle.get_text().replace("\n", " ") == (
        f"After 30 rounds the accuracy is highest with E = {best} ({ends[best]:.2f}) "
        f"and lowest with E = {worst} ({ends[worst]:.2f}; not tested)"
    )


def test_the_spread_of_generated_nodes(outlines):
    """Generated are half as far from their mean as the first hundred real nodes from theirs."""
    variant = read_experiment(outlines["distribution"]).variant("fedni")
    nodes = read_nodes(variant)
    assert nodes.generated.shape == (GENERATED, 66)
    first = np.sqrt(nodes.real[:GENERATED].var(axis=0).sum() / nodes.real.var(axis=0).sum())
    assert nodes.spread == pytest.approx(0.5 * first, rel=1e-5)


def test_clients_are_on_the_axis_by_their_number(outlines):
    figure, _ = drawn(outlines["clients"])
    assert [int(tick) for tick in figure.axes[0].get_xticks()] == [2, 6, 10]
    said = figure._suptitle.get_text().replace("\n", " ")
    assert said.startswith("FedNI: accuracy 0.62 [")
    assert said.endswith("with 10 (not tested)")


def test_the_cost_of_both_phases(outlines):
    """200 subjects in 5 institutions and 100 generated nodes: 40 and 60 nodes; (300 + 320) / 2 s; 81 s in 10 folds."""
    outline = read_experiment(outlines["cost"])
    first, second = phase_costs(outline, outline.variant("fedni"))
    assert SUBJECTS == 200
    assert (first.operations, first.parameters, first.seconds) == (2 * 4_080_000 * 40, 5_030_000, 310)
    assert (second.operations, second.parameters) == (2 * 474_594 * 60, 474_594)
    assert second.seconds == pytest.approx(81 / 10)


def test_a_generator_of_every_fold_is_not_called_shared(outlines):
    """Two repeats: two trainings are one for all folds, ten are one a fold."""
    outline = read_experiment(outlines["cost"])
    own = outline.variant("fedni")
    files = {name: paths * 5 for name, paths in own.inpainting.items()}
    by_fold = replace(own, inpainting=files)
    said = {shared: drawn_words(replace(outline, variants=(variant,)), "cost")
            for shared, variant in ((True, own), (False, by_fold))}  # fmt: skip
    assert "inpainting, which all folds share" in said[True]
    assert "inpainting, anew in every fold" in said[False]


def drawn_words(outline, kind):
    with drawing():
        return KINDS[kind](outline)._suptitle.get_text().replace("\n", " ")


def diamonds(outline):
    with drawing():
        figure = KINDS[outline.figure](outline)
    return sum(line.get_marker() == "D" for axes in figure.axes for line in axes.lines)


ELSEWHERE = {
    "sites": {"split": {"validation": "folds", "institutions": "site_groups", "folds": 5, "count": 5}},
    "unseen": {"split": {"validation": "leave_one_site_out", "institutions": "random", "folds": 5, "count": 5}},
    "tenths": {"split": {"validation": "folds", "institutions": "random", "folds": 5, "count": 5, "share": 0.1}},
    "inductive": {"protocol": "inductive"},
    "permuted": {"labels": "permuted"},
}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_other_protocols_than_the_paper_s(elsewhere, outlines):
    outline = read_experiment(outlines["bars"])
    assert as_in_the_paper(outline)
    assert not as_in_the_paper(replace(outline, **ELSEWHERE[elsewhere]))


@pytest.mark.parametrize(("kind", "count"), [("bars", 4), ("line", 1), ("cost", 6)])
def test_the_paper_s_numbers_stand_beside_its_own_protocol_only(kind, count, outlines):
    outline = read_experiment(outlines[kind])
    assert diamonds(outline) == count
    assert diamonds(replace(outline, protocol="inductive")) == 0


def test_so_does_the_plane_of_the_paper(outlines):
    outline = read_experiment(outlines["surface"])

    def planes(shown):
        with drawing():
            lines = KINDS["surface"](shown).axes[1].lines
        return sum(list(line.get_ydata()) == [0.658, 0.658] for line in lines)

    assert planes(outline) == 1
    assert planes(replace(outline, labels="permuted")) == 0


def test_a_sweep_without_the_paper_s_own_settings_has_no_diamond(outlines):
    """All other settings must be the shipped ones too: with another gap of ages, k = 10 is not the paper's FedNI."""
    outline = read_experiment(outlines["line"])
    wider = tuple(
        replace(variant, stages=variant.stages | {"graph": variant.stages["graph"] | {"age_gap": 5.0}})
        if variant.stages["graph"] else variant
        for variant in outline.variants
    )  # fmt: skip
    assert diamonds(replace(outline, variants=wider)) == 0


def test_a_sweep_around_the_reference_has_the_family_of_the_test_table(outlines):
    outline = read_experiment(outlines["line"])
    scored = read_scored(outline)
    others = ["fedni-k-k3", "fedni-k-k5", "fedni-k-k40"]
    tests = compare_with_reference(scored.runs, "fedni-k-k10", scored.ratio).query("metric == 'accuracy'")
    table = tests.set_index("variant")["p_holm"]
    found = page_tests(outline).differences("fedni-k-k10", others, "accuracy")
    assert {name: p for name, (_, p) in found.items()} == table[others].to_dict()


@pytest.mark.parametrize(
    ("generated", "said"),
    [(0.21, "not shown to be closer to"), (0.19, "not shown to be closer to"), (0.23, "are closer to"),
     (0.17, "are further from")],
)  # fmt: skip
def test_an_interval_that_holds_zero_shows_nothing(generated, said, tmp_path):
    """The baseline is 0.20, the interval 0.0196 to either side."""
    outline = variant_outline(tmp_path, "fedni-cut", "fedni", graph={"scope": "global_cut"})
    outline["fidelity"] = [write_fidelity(tmp_path / "one.json", generated)]
    (found,) = read_fidelity(read_experiment(experiment(tmp_path, "fidelity", [(outline, 0.6, 0.6)])).variants)
    assert said in fidelity_finding(found)
    assert "no closer" not in fidelity_finding(found)


def test_few_parents_show_nothing(tmp_path):
    outline = variant_outline(tmp_path, "fedni-cut", "fedni", graph={"scope": "global_cut"})
    path = write_fidelity(tmp_path / "one.json", 0.23)
    written = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps(written | {"parents": 4}))
    outline["fidelity"] = [path]
    (found,) = read_fidelity(read_experiment(experiment(tmp_path, "fidelity", [(outline, 0.6, 0.6)])).variants)
    assert fidelity_finding(found).endswith("only 4 of the subjects got generated neighbours, too few to judge")


def test_how_many_are_missing_predicted_and_generated(outlines):
    poor, _ = read_fidelity(read_experiment(outlines["fidelity"]).variants)
    assert count_sentence(poor) == (
        "FedNI (cut): of 9.50 missing neighbours a subject 1.20 are predicted (ratio 0.13) and 0.50 generated, after "
        "rounding and cap (ratio 0.05)."
    )


def test_a_generator_below_the_mean_neighbour_is_reported(outlines):
    poor, good = read_fidelity(read_experiment(outlines["fidelity"]).variants)
    assert poor.gain.mean == pytest.approx(0.12 - 0.20)
    assert poor.gain.reach == pytest.approx(1.96 * 0.01)
    assert fidelity_finding(poor) == (
        "FedNI (cut): generated features are further from the true missing neighbours than the mean of the visible "
        "ones (centred cosine \u22120.080 [\u22120.100, \u22120.060], 60 subjects)"
    )
    assert "are closer to the true missing neighbours" in fidelity_finding(good)


def test_every_measure_of_fidelity_stands_beside_its_baselines(outlines):
    rows = fidelity_rows(read_fidelity(read_experiment(outlines["fidelity"]).variants))
    found = {(row.measure, row.variant.name): row for row in rows}
    assert len(rows) == len(found) == 12
    centred = found["features: centred cosine", "fedni-cut"]
    assert centred.baselines == {"mean of the visible neighbours": 0.20, "the subject itself": 0.09}
    assert centred.verdict == "no better than: mean of the visible neighbours"
    verdicts = {
        ("features: centred cosine", "fedni-cut-no-discriminator"): "above every baseline",
        ("number missing: rank correlation", "fedni-cut"): "no better than: number of visible neighbours",
        ("recovered edges: F1", "fedni-cut"): "no better than: the visible neighbours",
        ("sex that agrees (share)", "fedni-cut"): "no better than: the subject itself",
    }
    assert {key: found[key].verdict for key in verdicts} == verdicts
    assert replace(centred, generated=float("nan")).verdict == "\u2013"
    assert replace(centred, baselines={}).verdict == "\u2013"


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
