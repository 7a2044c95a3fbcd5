"""Charts of a cohort and its graphs: the same bytes for the same input, words as text, numbers right."""

import re
from dataclasses import replace

import numpy as np
import pytest

from brainfed.cohort import class_words
from brainfed.reporting import group_effects
from brainfed.reporting._pictures import inline
from brainfed.reporting.charts import degrees_chart, effects_chart, homophily_chart, save_chart
from brainfed.reporting.charts._cohort import (
    ages_chart,
    flow_chart,
    motion_chart,
    quality_chart,
    series_chart,
    sites_chart,
)
from brainfed.reporting.charts._effects import measures_chart
from brainfed.reporting.charts._graphs import Sizes, sizes_chart
from brainfed.reporting.tables import distinct_titles, homophily_table, site_trace_table
from support.reports.chart_rows import panel_of, rows_of
from support.reports.made_up_cohort import (
    connections,
    coverage,
    people,
    shown_graph,
    swept_graphs,
    unmeasured,
    with_reasons,
)

REGIONS = ("insula", "cuneus", "fusiform", "lingual")
MEASURES = tuple(
    f"{side}_{region}_{kind}" for side in ("lh", "rh") for region in REGIONS for kind in ("volume", "thickness", "area")
)


def effects(shift=0.0):
    """Sixty subjects, every other one a patient, whose first measure is shifted."""
    values = np.random.default_rng(3).normal(size=(60, len(MEASURES)))
    values[::2, 0] += shift
    return group_effects(values, np.arange(60) % 2 == 0)


def sizes():
    random = np.random.default_rng(2)
    names, labels = np.array(["A", "B"] * 50, dtype=object), np.array([0, 1, 1, 0] * 25)
    return Sizes(names, labels, random.integers(5, 60, 100), random.uniform(2, 5, 100))


CHARTS = {
    "flow": lambda: flow_chart(people()),
    "sites": lambda: sites_chart(people()),
    "one-site": lambda: sites_chart(people(1)),
    "ages": lambda: ages_chart(people()),
    "series": lambda: series_chart(people()),
    "series-without-tr": lambda: series_chart(people().assign(tr=np.nan)),
    "series-unmeasured": lambda: series_chart(unmeasured()),
    "quality": lambda: quality_chart(people(), coverage(), 3.5),
    "quality-of-series": lambda: quality_chart(people().assign(tsnr=np.nan, silent_regions=0.0), coverage(), 3.5),
    "quality-unmeasured": lambda: quality_chart(unmeasured(), coverage().iloc[:0], 3.5),
    "motion": lambda: motion_chart(people(), connections(), 0.2),
    "motion-unrelated": lambda: motion_chart(people(), connections().iloc[:0], 0.2),
    "motion-unmeasured": lambda: motion_chart(unmeasured(), connections().iloc[:0], 0.2),
    "effects": lambda: effects_chart([effects()]),
    "measures": lambda: measures_chart([effects(), effects(1)], MEASURES),
    "homophily": lambda: homophily_chart(homophily_table([shown_graph()])),
    "homophily-of-a-sweep": lambda: homophily_chart(homophily_table(swept_graphs())),
    "degrees": lambda: degrees_chart(swept_graphs()),
    "sizes": lambda: sizes_chart(sizes(), class_words("class", ("0", "1"))),
}
PAIRS = ("flow", "sites", "ages", "effects", "homophily", "degrees")
"""Charts of half a page."""


LIKE_OTHERS = (
    "one-site",
    "series-without-tr",
    "series-unmeasured",
    "motion-unrelated",
    "quality-of-series",
    "homophily",
)
"""Variants of a chart that show no more than the others of its kind."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full("A variant of a drawn chart.")] if name in LIKE_OTHERS else [])
        for name in CHARTS
    ],
)
def test_a_chart_is_drawn_the_same_twice_with_words_as_text(name, tmp_path):
    for file in ("first.svg", "second.svg"):
        save_chart(CHARTS[name](), tmp_path / file)
    drawn = (tmp_path / "first.svg").read_text()
    assert drawn == (tmp_path / "second.svg").read_text() and "<text" in drawn
    (width,) = re.findall(r"max-width:([\d.]+)px", inline(drawn, "one", ""))
    assert float(width) < (520 if name in PAIRS else 1150)


def test_sites_add_up_to_the_analysed_subjects():
    rows = rows_of(sites_chart(people()), "site", "class", "subjects")
    assert rows["subjects"].sum() == people()["included"].sum()
    assert rows.groupby("site")["end"].max().sum() == rows["subjects"].sum()


def test_boxes_of_ages_are_quartiles():
    kept = people()[people()["included"]]
    ages = kept.loc[(kept["diagnosis"] == 1) & (kept["sex"] == "male"), "age"]
    row = (
        rows_of(ages_chart(people()), "group", "low", "middle", "high")
        .set_index("group")
        .loc[f"male patients (n = {len(ages)})"]
    )
    assert [row["low"], row["middle"], row["high"]] == pytest.approx(np.quantile(ages, [0.25, 0.5, 0.75]), abs=1e-4)


def test_a_site_has_the_median_and_the_range_of_its_scans():
    kept = people()[people()["included"]]
    volumes = kept.loc[kept["site"] == "A_LONG_SITE_NAME_03", "timepoints"]
    row = (
        rows_of(panel_of(series_chart(people()), 0), "site", "mean")
        .set_index("site")
        .loc[f"A_LONG_SITE_NAME_03 (n = {len(volumes)})"]
    )
    assert (row["low"], row["mean"], row["high"]) == (volumes.min(), volumes.median(), volumes.max())


def test_motion_counts_who_is_above_the_limit():
    kept = people()[people()["included"]]
    words = panel_of(motion_chart(people(), connections(), 0.2), 0).to_dict()["title"]["subtitle"]
    assert words == [f"{(kept['mean_fd'] > 0.2).sum()} of {len(kept)} above 0.2 mm"]
    counts = rows_of(panel_of(motion_chart(people(), connections(), 0.2), 2), "start", "count")
    assert counts["count"].sum() == len(connections())


@pytest.mark.parametrize("affected", [1, 2])
def test_affected_subjects_are_counted(affected):
    frame = people().assign(silent_regions=0.0, tsnr=np.nan)
    frame.loc[10 : 9 + affected, "silent_regions"] = 1
    rows = rows_of(panel_of(quality_chart(frame, coverage(), 3.5), 2), "subject", "regions")
    assert rows.to_numpy().tolist() == [[number + 1, 1] for number in range(affected)]


@pytest.mark.parametrize("count", range(9))
def test_the_flow_chart_counts_every_reason(count):
    tables = flow_chart(with_reasons(count)).to_dict()["datasets"].values()
    rows = [row for table in tables for row in table if "words" in row]
    texts = [row["words"] for row in sorted(rows, key=lambda row: (row["y"], row["x"]))]
    numbers = [int(text) for text in texts if text.isdigit()]
    assert (numbers[0], numbers[-1]) == (len(people()), len(people()) - count)
    left_out = [int(text.split()[0]) for text in texts if text.endswith(" left out") and text[0].isdigit()]
    assert (sum(left_out), "nobody was left out" in texts) == (count, count == 0)


def test_the_strongest_measure_is_first_and_all_effects_are_drawn():
    left, right = (panel_of(measures_chart([effects(2)], MEASURES), place) for place in (0, 1))
    strongest = rows_of(left, "measure", "mean", "shown")
    assert strongest["measure"].iloc[0] == MEASURES[0] and strongest["mean"].iloc[0] > 1
    assert sorted(rows_of(right, "measure", "d")["measure"]) == sorted(MEASURES)


def test_boxes_of_sizes_reach_from_5_to_95_of_100():
    held = sizes()
    nodes = held.nodes[(held.data_set == "A") & (held.label == 1)]
    row = (
        rows_of(panel_of(sizes_chart(held, class_words("class", ("0", "1"))), 0), "group", "least")
        .set_index("group")
        .loc["A: 1"]
    )
    assert [row["least"], row["middle"], row["most"]] == pytest.approx(np.percentile(nodes, [5, 50, 95]), abs=1e-4)


def test_homophily_of_two_rings():
    """Every edge joins the same sex (chance 4/9 in ten); diagnoses alternate, but a ring of five has one equal pair."""
    table = homophily_table([shown_graph()]).set_index("label")
    assert table.loc["sex", "found"] == 1.0 and table.loc["sex", "chance"] == pytest.approx(4 / 9)
    assert table.loc["diagnosis", "found"] == pytest.approx(1 / 5)
    assert table.loc["site", "found"] == table.loc["site", "chance"] == 1.0


def test_homophily_is_drawn_beside_chance():
    table = homophily_table([shown_graph()]).set_index("label")
    rows = rows_of(homophily_chart(homophily_table([shown_graph()])), "label", "mean", "beside").set_index("label")
    assert rows["mean"].to_dict() == pytest.approx(table["found"].to_dict(), abs=1e-4)
    assert rows["beside"].to_dict() == pytest.approx(table["chance"].to_dict(), abs=1e-4)
    assert rows.loc["sex", "shown"] == "1.00 (+0.56)"


def test_the_graphs_of_a_sweep_are_drawn_apart():
    titles = ["inside institutions, k = 5", "inside institutions, k = 10", "inside institutions, shuffled control"]
    assert list(dict.fromkeys(distinct_titles(swept_graphs()))) == titles
    assert list(dict.fromkeys(homophily_table(swept_graphs())["title"])) == titles
    rows = rows_of(degrees_chart(swept_graphs()), "series", "neighbours", "share")
    assert list(dict.fromkeys(rows["series"])) == [f"{title}: median 2" for title in titles]
    assert rows.groupby("series")["share"].sum().to_list() == [100, 100, 100]


def test_graphs_of_different_features_are_distinct_by_name_and_a_shared_embedding_is_traced_once():
    graphs = [replace(shown_graph(), name=name, settings={"k": 5}) for name in ("local-k5-a", "local-k5-b")]
    assert distinct_titles(graphs) == ["inside institutions, local-k5-a", "inside institutions, local-k5-b"]
    assert site_trace_table(swept_graphs()[::2])["graph"].unique().tolist() == ["local-k5"]
