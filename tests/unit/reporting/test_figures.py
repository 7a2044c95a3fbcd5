"""Figures: the same bytes for the same input, words as text, nothing clipped, numbers right."""

import itertools
from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from brainfed.cohort.quality.measures import MEASURES
from brainfed.graphs.population import PopulationGraph
from brainfed.reporting.figures.brains import _kept_apart, brain_figure, chord_figure
from brainfed.reporting.figures.cohort import (
    ages_figure,
    flow_figure,
    motion_figure,
    quality_figure,
    series_figure,
    sites_figure,
)
from brainfed.reporting.figures.connectivity import compare_groups, effects_figure, means_figure, networks
from brainfed.reporting.figures.graphs import degrees_figure, graph_figure, homophily_figure
from brainfed.reporting.figures.leakage import leakage_figure
from brainfed.reporting.figures.style import FAINT, HALF, INK, drawing, save_svg
from brainfed.reporting.pictures import inline
from brainfed.reporting.tables.homophily import ShownGraph, distinct_titles, homophily_table, site_trace_table
from brainfed.reporting.tables.robustness import Leak
from brainfed.reporting.variants import PLACES, ShownVariant, Twin

TWINS = {"alone": Twin("localgcn"), "pooled": Twin("ridge-central")}
VARIANTS = [
    ShownVariant("majority", "majority", "Majority class", "baseline"),
    ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"}, topology="central"),
    ShownVariant("localgcn", "localgcn", "LocalGCN", "graph", {"curve_every": 10}, topology="local"),
    ShownVariant(
        "logistic-federated-no-noise-with-a-very-long-name", "logistic-federated", "Logistic, federated", "federated",
        {"rounds": 4, "local_epochs": 10}, twins=TWINS,
    ),
    ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated", {"rounds": 4, "local_epochs": 10}, twins=TWINS),
]  # fmt: skip
NAMES = [variant.name for variant in VARIANTS]


def people(sites=20):
    random = np.random.default_rng(0)
    count = 4 * sites + 30
    frame = pd.DataFrame(
        {
            "subject": [f"s{number:03d}" for number in range(count)],
            "site": [f"A_LONG_SITE_NAME_{number % sites:02d}" for number in range(count)],
            "age": random.uniform(6, 60, count),
            "sex": random.choice(["male", "female"], count),
            "diagnosis": pd.array(random.integers(0, 2, count), dtype="Int8"),
            "mean_fd": random.lognormal(-2, 0.6, count),
            "has_series": True,
            "included": True,
            "timepoints": random.integers(80, 300, count),
            "tr": 2.0,
            "silent_regions": np.where(np.arange(count) < 5, 3.0, 0.0),
            "tsnr": random.uniform(20, 90, count),
            "mean_fc": random.normal(0.1, 0.03, count),
            "typicality": random.beta(8, 4, count),
        }
    ).assign(
        twin_group=lambda frame: frame["subject"],
        reason="",
        volumes=lambda frame: frame["timepoints"] + 5,
        kept_seconds=lambda frame: frame["timepoints"] * frame["tr"],
        typicality_z=lambda frame: 6 * (frame["typicality"] - 0.7) / 0.2,
    )
    frame.loc[:1, ["included", "reason"]] = [[False, "no series"], [False, "Subject s001: damaged file"]]
    return frame


def coverage():
    regions = [f"region-{number:03d}" for number in range(60)]
    return pd.DataFrame([(s, r, 0.5 if r.endswith("7") else 1.0) for s in ("s010", "s011") for r in regions],
                        columns=["subject", "region", "coverage"])  # fmt: skip


def connections():
    r = np.random.default_rng(5).normal(0.05, 0.12, 500)
    return pd.DataFrame({"r": r, "p": 0.5})


def with_reasons(count):
    """The first subjects left out, each for a reason of its own."""
    reasons = [
        "series file absent", "Subject s: damaged", "diagnosis missing", "118 regions without signal",
        "mean FD above 0.5 mm (0.7)", "number of regions without signal above 5 (9)", "kept length below 240 s (90)",
        "mean coverage of regions below 90 % (40)",
    ]  # fmt: skip
    frame = people().assign(included=True, reason="")
    frame.loc[: count - 1, "reason"] = reasons[:count]
    return frame.assign(included=frame["reason"] == "")


def unmeasured():
    return people().assign(**dict.fromkeys([*MEASURES], np.nan))


def groups(names=None, effect=1.2):
    random = np.random.default_rng(3)
    regions = names or tuple(
        f"{network}-{number}" for network in ("Visual", "Limbic", "Default") for number in range(8)
    )
    series = {f"s{number:02d}": random.standard_normal((80, len(regions))).astype(np.float32) for number in range(30)}
    for number, values in enumerate(series.values()):
        if number % 2:
            values[:, 5] += effect * values[:, 2]
    return compare_groups(series, {subject: number % 2 for number, subject in enumerate(series)}, regions)


def shown_graph():
    """Two institutions of ten; in each, a ring of men and a ring of women."""
    row, column = [], []
    for start in (0, 5, 10, 15):
        for number in range(5):
            pair = (start + number, start + (number + 1) % 5)
            row += pair
            column += pair[::-1]
    frame = pd.DataFrame(
        {
            "subject": [f"s{number:02d}" for number in range(20)],
            "institution": ["a"] * 10 + ["b"] * 10,
            "sex": (["male"] * 5 + ["female"] * 5) * 2,
            "diagnosis": pd.array([0, 1] * 10, dtype="Int8"),
            "site": ["X"] * 20,
            "age": np.linspace(10, 40, 20),
        }
    )
    weight = np.ones(len(row), dtype=np.float32)
    graph = PopulationGraph(np.array(row), np.array(column), weight, np.zeros((20, 2), dtype=np.float32), (1.0,))
    return ShownGraph("local-k2", graph, frame, "local", False)


def swept_graphs():
    """Two repeats of each k, and the shuffled control of one of them."""
    graphs = [
        replace(shown_graph(), name=f"local-k{k}", settings={"k": k, "age_gap": 2.0}) for k in (5, 10) for _ in range(2)
    ]
    return [*graphs, replace(graphs[0], name="control", shuffled=True)]


def leaks(count=30):
    """Methods in a crowd, every third of which sends nothing, and one far from it."""
    random = np.random.default_rng(9)
    return [
        Leak(
            replace(VARIANTS[number % 5], name=f"{NAMES[number % 5]}-number-{number}"),
            *(0.72 + 0.02 * random.standard_normal(), auc := 0.6 + 0.03 * random.standard_normal()),
            *(auc - 0.03, auc + 0.03, 0 if number % 3 == 0 else 10 ** (number % 9)),
        )
        for number in range(count - 1)
    ] + [Leak(VARIANTS[0], 0.5, 1.0, 1.0, 1.0, 10**9)]


FIGURES = {
    "flow": lambda: flow_figure(people()),
    "flow-of-everybody": lambda: flow_figure(people().assign(included=True, reason="")),
    "flow-with-eight-reasons": lambda: flow_figure(with_reasons(8)),
    "sites": lambda: sites_figure(people()),
    "one-site": lambda: sites_figure(people(1)),
    "ages": lambda: ages_figure(people()),
    "series": lambda: series_figure(people()),
    "series-without-tr": lambda: series_figure(people().assign(tr=np.nan)),
    "quality": lambda: quality_figure(people(), coverage(), 3.5),
    "quality-of-series": lambda: quality_figure(people().assign(tsnr=np.nan, silent_regions=0.0), coverage(), 3.5),
    "quality-unmeasured": lambda: quality_figure(unmeasured(), coverage().iloc[:0], 3.5),
    "series-unmeasured": lambda: series_figure(unmeasured()),
    "motion": lambda: motion_figure(people(), connections(), 0.2),
    "motion-unmeasured": lambda: motion_figure(unmeasured(), connections().iloc[:0], 0.2),
    "means": lambda: means_figure([groups()]),
    "means-without-networks": lambda: means_figure([groups(tuple(str(number) for number in range(24)))]),
    "effects": lambda: effects_figure([groups()]),
    "chord": lambda: chord_figure([groups(tuple(f"#20{number:02d}" for number in range(24)))]),
    "brain": lambda: brain_figure([groups()], np.random.default_rng(6).uniform(-50, 50, (24, 3))),
    "graph": lambda: graph_figure(shown_graph()),
    "homophily": lambda: homophily_figure(homophily_table([shown_graph()])),
    "degrees": lambda: degrees_figure([shown_graph()]),
    "homophily-of-a-sweep": lambda: homophily_figure(homophily_table(swept_graphs())),
    "degrees-of-a-sweep": lambda: degrees_figure(swept_graphs()),
    "leakage": lambda: leakage_figure(leaks()),
    "leakage-of-one": lambda: leakage_figure(leaks(1)),
    "leakage-unknown": lambda: leakage_figure([]),
}


LIKE_OTHERS = (
    "series-without-tr",
    "quality-of-series",
    "series-unmeasured",
    "means-without-networks",
    "leakage-of-one",
)
"""Variants of a figure that reach no further than the others of its kind."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full("A variant of a drawn figure.")] if name in LIKE_OTHERS else [])
        for name in FIGURES
    ],
)
def test_nothing_reaches_over_the_edge_and_half_a_page_fits_on_a_phone(name, tmp_path):
    with drawing():
        figure = FIGURES[name]()
        save_svg(figure, tmp_path / "drawn.svg")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        box = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    assert box.x0 >= -0.02 and box.y0 >= -0.02 and box.x1 <= width + 0.02 and box.y1 <= height + 0.02
    shown = inline((tmp_path / "drawn.svg").read_text(), "one", "")
    assert ("min-width:0" in shown) == (width <= HALF)
    assert "min-width:0" in shown or not name.startswith(("flow", "sites", "ages"))
    if name in ("ages", "means", "graph", "brain", "leakage"):
        first = (tmp_path / "drawn.svg").read_bytes()
        with drawing():
            save_svg(FIGURES[name](), tmp_path / "again.svg")
        assert first == (tmp_path / "again.svg").read_bytes()
        assert b"<dc:date>" not in first and b"<text" in first


def test_drawing_leaves_the_settings_of_others_alone():
    before = dict(matplotlib.rcParams)
    with drawing():
        assert matplotlib.rcParams["svg.hashsalt"] == "brainfed"
    assert dict(matplotlib.rcParams) == before


def test_the_planted_connection_is_the_strongest():
    """Region 5 follows region 2 in patients: r = 1.2 / sqrt(1 + 1.44) = 0.768 there, 0 in controls."""
    found = groups()
    row, column = found.ends()
    strongest = found.strongest(1)[0]
    assert (row[strongest], column[strongest]) == (2, 5)
    assert found.patients[strongest] == pytest.approx(0.768, abs=0.03)
    assert found.controls[strongest] == pytest.approx(0, abs=0.06) and found.effect[strongest] > 5
    assert found.counts == (15, 15) and found.discoveries >= 1


def test_without_an_effect_d_spreads_as_chance_says():
    found = groups(effect=0.0)
    assert found.effect.std() == pytest.approx(found.chance_sd, rel=0.15) and found.discoveries == 0


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("Visual-01", "Visual-02", "Default-01", "Default-02"), [("Visual", 0, 2), ("Default", 2, 4)]),
        (("1", "2", "3", "4"), []),
        (("a-1", "b-1", "c-1", "d-1"), []),
        (("Visual-01", "Visual-02"), []),
    ],
)
def test_networks_come_from_the_names_of_regions(names, found):
    assert networks(names) == found


def test_homophily_of_two_rings():
    """Every edge joins the same sex (chance 4/9 in ten); diagnoses alternate, but a ring of five has one equal pair."""
    table = homophily_table([shown_graph()]).set_index("label")
    assert table.loc["sex", "found"] == 1.0 and table.loc["sex", "chance"] == pytest.approx(4 / 9)
    assert table.loc["diagnosis", "found"] == pytest.approx(1 / 5)
    assert table.loc["site", "found"] == table.loc["site", "chance"] == 1.0


def test_labels_on_a_circle_keep_their_distance():
    moved = _kept_apart(np.array([1.0, 0.99, 0.98, 0.2]), 0.1)
    assert np.all(moved[:-1] - moved[1:] >= 0.1 - 1e-9) and moved[3] == 0.2


def test_the_graphs_of_a_sweep_are_drawn_apart():
    titles = ["inside institutions, k = 5", "inside institutions, k = 10", "inside institutions, shuffled control"]
    assert list(dict.fromkeys(distinct_titles(swept_graphs()))) == titles
    assert list(dict.fromkeys(homophily_table(swept_graphs())["title"])) == titles
    with drawing():
        (axes,) = degrees_figure(swept_graphs()).axes
    assert len(axes.lines) == 3
    assert {text.get_text() for text in axes.texts} == {f"{title}: median 2" for title in titles}


def test_graphs_of_different_features_are_distinct_by_name_and_a_shared_embedding_is_traced_once():
    graphs = [replace(shown_graph(), name=name, settings={"k": 5}) for name in ("local-k5-a", "local-k5-b")]
    assert distinct_titles(graphs) == ["inside institutions, local-k5-a", "inside institutions, local-k5-b"]
    assert site_trace_table(swept_graphs()[::2])["graph"].unique().tolist() == ["local-k5"]


@pytest.mark.parametrize("name", ["graph", "degrees", "degrees-of-a-sweep", "homophily-of-a-sweep"])
def test_words_of_a_key_keep_apart_and_off_the_curves(name):
    with drawing():
        figure = FIGURES[name]()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        shown = [text for axes in figure.axes for text in axes.texts]
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in shown]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    if name.startswith("degrees"):
        assert all(box.y0 >= figure.axes[0].get_window_extent().y1 for box in boxes)


@pytest.mark.parametrize("affected", [1, 2])
def test_affected_subjects_are_whole_numbers(affected):
    frame = people().assign(silent_regions=0.0, tsnr=np.nan)
    frame.loc[10 : 9 + affected, "silent_regions"] = 1
    with drawing():
        silent = quality_figure(frame, coverage(), 3.5).axes[2]
        ticks = [tick for axis in (silent.xaxis, silent.yaxis) for tick in axis.get_ticklocs()]
    assert ticks and all(float(tick).is_integer() for tick in ticks)


@pytest.mark.parametrize("count", range(9))
def test_the_flow_chart_counts_every_reason(count):
    with drawing():
        texts = [text.get_text() for text in flow_figure(with_reasons(count)).axes[0].texts]
    numbers = [int(text) for text in texts if text.isdigit()]
    assert (numbers[0], numbers[-1]) == (len(people()), len(people()) - count)
    left_out = [int(text.split()[0]) for text in texts if text.endswith(" left out") and text[0].isdigit()]
    assert (sum(left_out), "nobody was left out" in texts) == (count, count == 0)


def luminance(colour):
    """Relative luminance of `#rrggbb` (WCAG 2.2)."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("colour", [*(colour for _, colour in PLACES.values()), FAINT, INK])
def test_a_colour_of_words_stands_out_from_white(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5
