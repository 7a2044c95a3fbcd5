"""Figures of matplotlib: the same bytes for the same input, words as text, nothing clipped, numbers right."""

import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from brainfed.reporting import FAINT, INK, PLACES, compare_groups, networks
from brainfed.reporting.figures._connectivity import _kept_apart, brain_figure, chord_figure, means_figure
from brainfed.reporting.figures._graphs import graph_figure
from brainfed.reporting.figures._style import drawing, save_svg
from support.reports.made_up_cohort import shown_graph


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


FIGURES = {
    "means": lambda: means_figure([groups()]),
    "means-without-networks": lambda: means_figure([groups(tuple(str(number) for number in range(24)))]),
    "chord": lambda: chord_figure([groups(tuple(f"#20{number:02d}" for number in range(24)))]),
    "brain": lambda: brain_figure([groups()], np.random.default_rng(6).uniform(-50, 50, (24, 3))),
    "graph": lambda: graph_figure(shown_graph()),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_reaches_over_the_edge_and_a_figure_is_drawn_the_same_twice(name, tmp_path):
    with drawing():
        figure = FIGURES[name]()
        save_svg(figure, tmp_path / "drawn.svg")
        save_svg(FIGURES[name](), tmp_path / "again.svg")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        box = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    assert box.x0 >= -0.02 and box.y0 >= -0.02 and box.x1 <= width + 0.02 and box.y1 <= height + 0.02
    first = (tmp_path / "drawn.svg").read_bytes()
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


def test_labels_on_a_circle_keep_their_distance():
    moved = _kept_apart(np.array([1.0, 0.99, 0.98, 0.2]), 0.1)
    assert np.all(moved[:-1] - moved[1:] >= 0.1 - 1e-9) and moved[3] == 0.2


def test_words_below_the_panels_of_a_graph_keep_apart():
    with drawing():
        figure = FIGURES["graph"]()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        shown = [text for axes in figure.axes for text in axes.texts]
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in shown]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def luminance(colour):
    """Relative luminance of `#rrggbb` (WCAG 2.2)."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("colour", [*(colour for _, colour in PLACES.values()), FAINT, INK])
def test_a_colour_of_words_stands_out_from_white(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5
