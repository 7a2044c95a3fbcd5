"""FedNI's figures and the numbers that its paper prints in them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from brainfed.evaluation import compare_with_reference
from brainfed.papers._fedni_figures import surface, surface_finding
from brainfed.papers._fedni_figures_of_nodes import fidelity_finding, read_nodes
from brainfed.papers._fedni_nodes import count_sentence, fidelity_rows, read_fidelity
from brainfed.papers._fedni_numbers import as_in_the_paper, phase_costs
from brainfed.reporting import read_scored
from support.reports.chart_rows import panel_of, rows_of
from support.reports.paper_experiments import EXPERIMENTS, WEIGHTS, chart_of, diamonds, drawn_words, page_tests
from support.reports.report_experiments import GENERATED, SUBJECTS, experiment, read, variant_outline, write_fidelity


@pytest.fixture(scope="module")
def outlines(tmp_path_factory):
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in EXPERIMENTS.items()}


def test_hollow_diamonds_are_printed_numbers(outlines):
    """Fig. 2 and Table V on ABIDE: FedNI .667, without edges .650, without discriminator .660, FedGCN .644."""
    accuracy, auc = (panel_of(chart_of(read(outlines["bars"])), place) for place in (0, 1))
    rows = rows_of(accuracy, "method", "beside", "shown")
    assert rows["beside"].to_list() == [0.667, 0.650, 0.660, 0.644]
    assert "beside" not in rows_of(auc), "the printed AUC is no AUC of scores"
    assert rows["shown"].to_list()[:2] == ["0.66", "0.61  \u22120.050 *"]


def test_the_surface_counts_the_pairs_above_the_plane(outlines):
    """.60 + .01 row + .02 column beside .615: 0, 1, 2 in rows of .60 .62 .64, .61 .63 .65, .62 .64 .66."""
    outline = read(outlines["surface"])
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


def test_the_spread_of_generated_nodes(outlines):
    """Generated are half as far from their mean as the first hundred real nodes from theirs."""
    variant = read(outlines["distribution"]).variant("fedni")
    nodes = read_nodes(variant)
    assert nodes.generated.shape == (GENERATED, 66)
    first = np.sqrt(nodes.real[:GENERATED].var(axis=0).sum() / nodes.real.var(axis=0).sum())
    assert nodes.spread == pytest.approx(0.5 * first, rel=1e-5)


def test_the_cost_of_both_phases(outlines):
    """200 subjects in 5 institutions and 100 generated nodes: 40 and 60 nodes; (300 + 320) / 2 s; 81 s in 10 folds."""
    outline = read(outlines["cost"])
    first, second = phase_costs(outline, outline.variant("fedni"))
    assert SUBJECTS == 200
    assert (first.operations, first.parameters, first.seconds) == (2 * 4_080_000 * 40, 5_030_000, 310)
    assert (second.operations, second.parameters) == (2 * 474_594 * 60, 474_594)
    assert second.seconds == pytest.approx(81 / 10)


def test_a_generator_of_every_fold_is_not_called_shared(outlines):
    """Two repeats: two trainings are one for all folds, ten are one a fold."""
    outline = read(outlines["cost"])
    own = outline.variant("fedni")
    files = {name: paths * 5 for name, paths in own.inpainting.items()}
    by_fold = replace(own, inpainting=files)
    said = {shared: drawn_words(replace(outline, variants=(variant,)))
            for shared, variant in ((True, own), (False, by_fold))}  # fmt: skip
    assert "inpainting, which all folds share" in said[True]
    assert "inpainting, anew in every fold" in said[False]


ELSEWHERE = {
    "sites": {"split": {"validation": "folds", "institutions": "site_groups", "folds": 5, "count": 5}},
    "unseen": {"split": {"validation": "leave_one_site_out", "institutions": "random", "folds": 5, "count": 5}},
    "tenths": {"split": {"validation": "folds", "institutions": "random", "folds": 5, "count": 5, "share": 0.1}},
    "inductive": {"protocol": "inductive"},
    "permuted": {"labels": "permuted"},
}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_other_protocols_than_the_paper_s(elsewhere, outlines):
    outline = read(outlines["bars"])
    assert as_in_the_paper(outline)
    assert not as_in_the_paper(replace(outline, **ELSEWHERE[elsewhere]))


@pytest.mark.parametrize(("kind", "count"), [("bars", 4), ("line", 1), ("cost", 6)])
def test_the_paper_s_numbers_stand_beside_its_own_protocol_only(kind, count, outlines):
    outline = read(outlines[kind])
    assert diamonds(outline) == count
    assert diamonds(replace(outline, protocol="inductive")) == 0


def test_so_does_the_plane_of_the_paper(outlines):
    outline = read(outlines["surface"])

    def planes(shown):
        rows = rows_of(panel_of(chart_of(shown), 1), "series", "mean")
        return (rows.loc[rows["series"] == "FedSage+ in the paper", "mean"] == 0.658).sum() // 2

    assert planes(outline) == 1
    assert planes(replace(outline, labels="permuted")) == 0


def test_a_sweep_without_the_paper_s_own_settings_has_no_diamond(outlines):
    """All other settings must be the shipped ones too: with another gap of ages, k = 10 is not the paper's FedNI."""
    outline = read(outlines["line"])
    wider = tuple(
        replace(variant, stages=variant.stages | {"graph": variant.stages["graph"] | {"age_gap": 5.0}})
        if variant.stages["graph"] else variant
        for variant in outline.variants
    )  # fmt: skip
    assert diamonds(replace(outline, variants=wider)) == 0


@pytest.mark.parametrize(
    ("generated", "said"),
    [(0.21, "not shown to be closer to"), (0.19, "not shown to be closer to"), (0.23, "are closer to"),
     (0.17, "are further from")],
)  # fmt: skip
def test_an_interval_that_holds_zero_shows_nothing(generated, said, tmp_path):
    """The baseline is 0.20, the interval 0.0196 to either side."""
    outline = variant_outline(tmp_path, "fedni-cut", "fedni", graph={"scope": "global_cut"})
    outline["fidelity"] = [write_fidelity(tmp_path / "one.json", generated)]
    (found,) = read_fidelity(read(experiment(tmp_path, "fidelity", [(outline, 0.6, 0.6)])).variants)
    assert said in fidelity_finding(found)
    assert "no closer" not in fidelity_finding(found)


def test_few_parents_show_nothing(tmp_path):
    outline = variant_outline(tmp_path, "fedni-cut", "fedni", graph={"scope": "global_cut"})
    path = write_fidelity(tmp_path / "one.json", 0.23)
    written = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps(written | {"parents": 4}))
    outline["fidelity"] = [path]
    (found,) = read_fidelity(read(experiment(tmp_path, "fidelity", [(outline, 0.6, 0.6)])).variants)
    assert fidelity_finding(found).endswith("only 4 of the subjects got generated neighbours, too few to judge")


def test_how_many_are_missing_predicted_and_generated(outlines):
    poor, _ = read_fidelity(read(outlines["fidelity"]).variants)
    assert count_sentence(poor) == (
        "FedNI (cut): of 9.50 missing neighbours a subject 1.20 are predicted (ratio 0.13) and 0.50 generated, after "
        "rounding and cap (ratio 0.05)."
    )


def test_a_generator_below_the_mean_neighbour_is_reported(outlines):
    poor, good = read_fidelity(read(outlines["fidelity"]).variants)
    assert poor.gain.mean == pytest.approx(0.12 - 0.20)
    assert (poor.gain.high - poor.gain.low) / 2 == pytest.approx(1.96 * 0.01)
    assert fidelity_finding(poor) == (
        "FedNI (cut): generated features are further from the true missing neighbours than the mean of the visible "
        "ones (centred cosine \u22120.080 [\u22120.100, \u22120.060], 60 subjects)"
    )
    assert "are closer to the true missing neighbours" in fidelity_finding(good)


def test_every_measure_of_fidelity_stands_beside_its_baselines(outlines):
    rows = fidelity_rows(read_fidelity(read(outlines["fidelity"]).variants))
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
