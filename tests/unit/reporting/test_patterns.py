"""What drives the prediction: the figure, its rows, and the sentences on planted connections."""

import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from brainfed.cohort import class_words
from brainfed.cohort._classes import CLASS_WORDS
from brainfed.evaluation import PLANTED_COLUMNS, no_rows, planted_table, strongest_table
from brainfed.evaluation._patterns import Patterns
from brainfed.reporting import ShownVariant
from brainfed.reporting.figures._patterns import patterns_figure
from brainfed.reporting.figures._style import drawing, save_svg
from brainfed.reporting.tables import end_name, planted_sentences, read_strongest, shown_patterns
from brainfed.runtime import write_tsv

WORDS = class_words("diagnosis")
RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear")
FEDERATED = ShownVariant("ridge-federated", "ridge-federated", "Ridge, federated", "federated")
REGIONS = [f"A_long_network_of_an_atlas-{number:02d}" for number in range(9)]
PLACES = {name: np.array([60.0 * (-1) ** n, 10.0 * n - 50, 5.0 * n]) for n, name in enumerate(REGIONS)}


def patterns(*, diagonal=False, classes=(), seed=0):
    """Patterns of six runs; the diagonal is stronger than any connection."""
    pairs = [pair for pair in itertools.combinations_with_replacement(REGIONS, 2) if diagonal or pair[0] != pair[1]]
    features = np.array([["", *pair] for pair in pairs])
    random = np.random.default_rng(seed)
    mean = random.standard_normal((len(classes) or 1, len(features)))
    mean[:, features[:, 1] == features[:, 2]] += 10
    return Patterns(mean + 0.1 * random.standard_normal((6, *mean.shape)), features, tuple(classes))


def table_of(places=PLACES, variants=(RIDGE,), **options):
    found = [strongest_table(variant.name, patterns(seed=n, **options), places) for n, variant in enumerate(variants)]
    return pd.concat(found, ignore_index=True)


def texts(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def draw(table, variants=(RIDGE,), words=WORDS):
    with drawing():
        return patterns_figure(table, variants, words)


def test_ten_raised_and_ten_lowered_the_strongest_first():
    (shown,) = shown_patterns(table_of(), [RIDGE], WORDS)
    mean = shown.rows["mean"].tolist()
    everything = strongest_table("x", patterns(), {})["mean"]
    assert mean[:10] == sorted(everything[everything > 0], reverse=True)[:10]
    assert mean[10:] == sorted(everything[everything < 0])[:10]
    assert (shown.connections, shown.within, shown.located) == (True, 0, True)
    assert (shown.k, shown.features, shown.runs) == (20, 36, 6)


def test_regions_with_themselves_are_counted_and_not_drawn():
    (shown,) = shown_patterns(table_of(diagonal=True), [RIDGE], WORDS)
    assert (shown.rows["from"] != shown.rows["to"]).all() and shown.within == 9
    assert shown.itself.startswith("Of the 20 strongest tangent features 9 are regions with themselves")


def test_the_table_on_disk_gives_the_same_rows(tmp_path):
    places = PLACES | {REGIONS[0]: np.full(3, np.nan)}
    table = table_of(places)
    table["from"] = table["from"].replace({REGIONS[1]: "NA", REGIONS[2]: "007"})
    write_tsv(tmp_path / "table.tsv", table)
    read = read_strongest(tmp_path / "table.tsv")
    pd.testing.assert_frame_equal(read, table, check_dtype=False)
    assert {"NA", "007"} <= set(read["from"])
    (shown,) = shown_patterns(read, [RIDGE], WORDS)
    assert not shown.located and all(row.place == "" for row in shown.printed if REGIONS[0] in row.name)


@pytest.mark.parametrize(("scale", "digits"), [(0.001, 5), (0.1, 3), (100.0, 3)])
def test_small_changes_keep_three_digits(scale, digits):
    found = patterns()
    found = Patterns(found.values * scale, found.features, ())
    (shown,) = shown_patterns(strongest_table(RIDGE.name, found, {}), [RIDGE], WORDS)
    assert {len(row.mean.partition(".")[2]) for row in shown.printed} == {digits}
    assert shown.printed[0].mean.startswith("+") and float(shown.printed[0].mean) == pytest.approx(
        shown.rows["mean"].iloc[0], abs=0.5 * 10.0**-digits
    )


def test_sides_of_the_brain():
    assert [end_name("V", x) for x in (-40.0, 40.0, -1.0, np.nan)] == ["V (L)", "V (R)", "V (M)", "V"]
    assert end_name("Precuneus", -12.0) == "Precuneus (L)"
    assert end_name("Precuneus", np.nan) == "Precuneus"
    assert end_name("Frontal_Inferior_Orbital_Part", 30.0, 11) == "Front\u2026_Part (R)"


def test_left_and_right_are_marked_on_every_brain():
    found = texts(draw(table_of()))
    assert (found.count("left"), found.count("right")) == (2, 2)
    assert {"raised in patients", "lowered in patients"} <= set(found)


@pytest.mark.parametrize(("sign", "word"), [(-1, "left"), (1, "right")])
def test_the_mark_of_a_side_is_on_that_side(sign, word):
    figure = draw(table_of({name: np.array([sign * 40.0, *place[1:]]) for name, place in PLACES.items()}))
    FigureCanvasAgg(figure).draw()
    marks = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text() in ("left", "right")]
    places = {text.get_text(): text.get_window_extent(figure.canvas.get_renderer()) for text in marks}
    middle = (places["left"].x1 + places["right"].x0) / 2
    nodes = [
        x
        for drawn in figure.findobj(matplotlib.collections.PathCollection)
        for x, _ in drawn.get_offset_transform().transform(drawn.get_offsets())
    ]
    assert len(nodes) > 30 and {x > middle for x in nodes} == {places[word].x0 > middle} == {sign > 0}


def test_without_places_the_figure_has_no_brain():
    figure = draw(table_of({}))
    assert len(figure.axes) == 1 and "left" not in texts(figure)


def test_every_variant_has_a_row_and_no_words_leave_the_figure():
    variants = [RIDGE, FEDERATED]
    figure = draw(table_of(variants=variants), variants)
    assert len([text for text in texts(figure) if "change most with the score" in text]) == 2
    FigureCanvasAgg(figure).draw()
    box, size = figure.get_tightbbox(figure.canvas.get_renderer()), figure.get_size_inches()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= size[0] and box.y1 <= size[1]


def test_of_three_classes_the_first_variant_has_a_row_each():
    names, words = ("CN", "MCI", "AD"), class_words("diagnosis", ("CN", "MCI", "AD"))
    variants = [RIDGE, FEDERATED]
    figure = draw(table_of(variants=variants, classes=names), variants, words)
    titles = [text for text in texts(figure) if "change most with the score" in text]
    assert [title.partition("score for ")[2] for title in titles] == ["CN subjects", "MCI subjects", "AD subjects"]
    assert all(title.startswith("Ridge (central):") for title in titles)
    shown = shown_patterns(table_of(variants=variants, classes=names), variants, words)
    assert [pattern.title for pattern in shown][:3] == [
        "Ridge (central), CN",
        "Ridge (central), MCI",
        "Ridge (central), AD",
    ]


def test_sexes_have_their_own_words():
    assert "raised in males" in texts(draw(table_of(), words=CLASS_WORDS["sex"]))


@pytest.mark.full("test_figures draws a brain twice, too.")
def test_the_same_table_gives_the_same_picture(tmp_path):
    for name in ("one", "two"):
        with drawing():
            save_svg(patterns_figure(table_of(), [RIDGE], WORDS), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_pattern_without_change_has_no_figure():
    flat = patterns()
    table = strongest_table("ridge-central", Patterns(0 * flat.values, flat.features, ()), PLACES)
    assert shown_patterns(table, [RIDGE], WORDS) == []
    assert patterns_figure(table, [RIDGE], WORDS) is None


def test_the_sentence_on_planted_connections(tmp_path):
    found = strongest_table("x", patterns(), {})
    sign = {(row["from"], row["to"]): int(np.sign(row["mean"])) for row in found.head(3).to_dict("records")}
    planted = dict(zip(sign, [*list(sign.values())[:2], -list(sign.values())[2]], strict=True))
    write_tsv(tmp_path / "planted.tsv", planted_table("ridge-central", patterns(), planted))
    assert planted_sentences(tmp_path / "planted.tsv", [RIDGE, FEDERATED], WORDS) == [
        "The simulation changes 3 of 36 connections with the diagnosis, so a random order of connections has a "
        "precision of .08.",
        "Ridge (central): 3 of the 3 strongest connections are planted (precision 1.00), 2 of them with the planted "
        "sign; 3 of the 20 strongest connections are planted (precision .15), 2 of them with the planted sign.",
    ]


@pytest.mark.parametrize("variants", [[], [RIDGE]])
def test_without_a_simulation_nothing_is_planted(tmp_path, variants):
    write_tsv(tmp_path / "planted.tsv", no_rows(PLANTED_COLUMNS))
    assert planted_sentences(tmp_path / "planted.tsv", variants, WORDS) == []
