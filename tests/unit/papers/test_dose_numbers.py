"""The dose-response figure: its numbers and its sentence from given scores."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation import RecoveredShare
from brainfed.papers._fedni_figures_of_nodes import dose_chart
from brainfed.papers._fedni_readings import by_cap, dose_finding, node_words, read_doses
from brainfed.reporting import Scored, read_experiment, read_scored
from support.reports.chart_rows import panel_of, rows_of
from support.reports.paper_experiments import DOSES, dose

AXIS = "simulate.group_agreement"


@pytest.fixture(scope="module")
def outline(tmp_path_factory):
    return read_experiment(dose(tmp_path_factory.mktemp("doses")))


@pytest.fixture(scope="module")
def scored(outline):
    return {member.cohort: read_scored(member) for member in outline.members}


def test_cohorts_come_in_the_order_of_their_doses(outline, scored):
    assert [found.value for found in read_doses(AXIS, outline.members, scored)] == list(DOSES)


def test_the_share_is_the_gain_over_the_cost_of_the_cut(outline, scored):
    """.62 between .60 and .70 is a fifth, .75 between .70 and .90 a quarter; without a gap there is no share."""
    none, half, full = read_doses(AXIS, outline.members, scored)
    assert not none.certain
    assert np.isnan(none.shares["fedni"].share)
    assert (half.certain, full.certain) == (True, True)
    assert half.gap.mean == pytest.approx(0.1)
    assert half.shares["fedni"].share == pytest.approx(0.2)
    assert full.shares["fedni"].share == pytest.approx(0.25)
    assert full.shares["fedni"].low < 0.25 < full.shares["fedni"].high
    assert full.shares["fedni-mean-nodes"].share == pytest.approx(0, abs=1e-9)
    assert full.shares["fedni-four-true"].share == pytest.approx(1)


def test_few_and_many_new_nodes_stand_apart(outline):
    few, many = by_cap(outline.variants)
    assert [variant.name for variant in few] == ["fedni", "fedni-mean-nodes"]
    assert [node_words(variant, many) for variant in many] == [
        "FedNI",
        "true missing neighbours (an oracle)",
        "FedSage+ (another classifier)",
    ]


def test_variants_of_one_kind_in_one_column_keep_their_titles(outline):
    few, _ = by_cap(outline.variants)
    twice = [*few, replace(few[0], name="fedni-parent-edges")]
    assert [node_words(variant, twice) for variant in twice] == ["FedNI", "institution means", "FedNI (parent edges)"]


def test_the_sentence_has_the_cost_of_the_cut_and_the_recovered_shares(outline, scored):
    doses = read_doses(AXIS, outline.members, scored)
    said = dose_finding("group agreement", doses, outline.variants)
    gap = doses[-1].gap
    bounds = f"[{gap.low:.2f}, {gap.high:.2f}]"
    assert said.startswith(
        f"At group agreement 1 CentralGCN on pooled data is 0.20 {bounds} of accuracy above FedGCN on cut graphs. "
        "Recovered of that, with at most 4 new nodes a subject (other methods: their own number): "
        "by true missing neighbours (an oracle) 100\u00a0%"
    )
    assert ", by FedNI 25\u00a0%" in said
    assert said.endswith(
        "; nothing certain by FedSage+ (another classifier). These intervals are not corrected for their number"
    )


def test_losing_variants_are_named_and_none_recovers_without_a_gain(outline, scored):
    full = read_doses(AXIS, outline.members, scored)[-1]
    shares = {name: RecoveredShare(-0.5, -0.6, -0.4) for name in full.shares}
    shares["fedni-four-nodes"] = RecoveredShare(0.1, -0.2, 0.4)
    said = dose_finding("group agreement", [replace(full, shares=shares)], outline.variants)
    assert said.endswith(
        ": nothing certain by FedNI; less than nothing by true missing neighbours (an oracle), FedSage+ (another "
        "classifier). These intervals are not corrected for their number"
    )


def test_a_sentence_without_a_certain_gap_claims_none(outline, scored):
    """Pooled data no better than the cut graph at any dose."""
    level = {
        cohort: Scored(held.runs[held.runs["variant"] != "centralgcn"], held.ratio) for cohort, held in scored.items()
    }
    level = {cohort: Scored(_with_pooled_as_cut(held.runs), held.ratio) for cohort, held in level.items()}
    doses = read_doses(AXIS, outline.members, level)
    said = dose_finding("group agreement", doses, outline.variants)
    assert said.startswith("At no group agreement is pooled data surely better than the cut graph (")
    assert "recover" in said


def test_an_uncertain_gap_has_no_share(outline, scored):
    """Pooled data are better by .05 on average and worse in every other run."""
    noisy = {}
    for cohort, held in scored.items():
        runs = held.runs.copy()
        pooled = runs["variant"] == "centralgcn"
        runs.loc[pooled, "value"] += np.where(np.arange(pooled.sum()) % 2, 0.6, -0.6)
        noisy[cohort] = Scored(runs, held.ratio)
    doses = read_doses(AXIS, outline.members, noisy)
    assert not any(dose.certain for dose in doses)
    assert dose_finding("group agreement", doses, outline.variants).startswith("At no group agreement")


def _with_pooled_as_cut(runs):
    cut = runs[runs["variant"] == "fedgcn"]
    return pd.concat([runs, cut.assign(variant="centralgcn", value=cut["value"] + 0.0)])


def test_the_lines_are_the_means_and_the_lower_row_has_certain_gaps_alone(outline, scored):
    above, below = dose_chart(AXIS, outline.members, scored).vconcat
    upper = rows_of(panel_of(above, 0), "series", "value", "mean")
    lines = [rows["mean"].to_list() for _, rows in upper.groupby("series", sort=False)]
    for place in (0, 1, 2):
        assert [pair[place] for pair in DOSES.values()] in lines
    lower = rows_of(panel_of(below, 0), "series", "value", "mean")
    assert lower.loc[lower["series"] == "FedNI", ["value", "mean"]].to_numpy().tolist() == [["0.5", 0.2], ["1", 0.25]]
    assert rows_of(panel_of(below, 0), "at", "words").to_numpy().tolist() == [[0, "no certain gap"]]
