"""Readings of the paper: which settings belong together, and how far their accuracies lie from the printed ones."""

from dataclasses import replace

import pytest

from brainfed.papers._fedni_readings import distance_to, find_readings
from brainfed.reporting import read_experiment, read_scored
from support.reports.report_experiments import experiment, some_readings, variant_outline


def found_in(folder, rows, **given):
    outline = read_experiment({**experiment(folder, "readings", rows, reference="fedgcn"), **given})
    return find_readings(outline, read_scored(outline))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readings")
    return found_in(folder, some_readings(folder))


def row(found, title):
    return next(reading for reading in found.rows if reading.title == title)


def test_the_distance_is_the_mean_of_the_absolute_differences():
    assert distance_to({"a": 0.62, "b": 0.64}, {"a": 0.60, "b": 0.67, "c": 0.1}) == pytest.approx(0.025)


def test_readings_are_in_order_of_their_distance_to_table_5(found):
    # Printed: .600, .655, .630, .644.
    assert [(reading.title, reading.distance) for reading in found.rows] == [
        ("dropout", pytest.approx((0.000 + 0.010 + 0.030 + 0.010) / 4)),
        ("correlation", pytest.approx((0.010 + 0.000 + 0.050 + 0.020) / 4)),
        ("as shipped", pytest.approx((0.020 + 0.020 + 0.050 + 0.000) / 4)),
        ("as Parisot et al.", pytest.approx((0.030 + 0.030 + 0.030 + 0.030) / 4)),
    ]  # fmt: skip
    assert [reading.nearest for reading in found.rows] == [True, False, False, False]
    assert found.compared == ("localgcn", "centralgcn", "fedmlp", "fedgcn")
    assert found.printed == {"localgcn": 0.600, "centralgcn": 0.655, "fedmlp": 0.630, "fedgcn": 0.644}


def test_a_method_without_the_settings_keeps_its_score(found):
    assert row(found, "correlation").scores["fedmlp"].mean == pytest.approx(0.68)
    assert row(found, "correlation").unread == {"fedmlp"}
    assert row(found, "dropout").unread == row(found, "as shipped").unread == frozenset()


def test_a_part_of_a_larger_reading_has_no_row_of_its_own(found):
    """FedMLP has the selected features of the last reading and not its graph."""
    assert len(found.rows) == 4
    assert row(found, "as Parisot et al.").scores["fedmlp"].mean == pytest.approx(0.66)
    assert row(found, "as Parisot et al.").unread == frozenset()
    assert row(found, "as Parisot et al.").settings == "selection = rfe, distance = correlation, embedding = none"


def test_a_part_that_another_method_has_alone_is_a_reading(tmp_path):
    rows = some_readings(tmp_path)
    rows.append((variant_outline(tmp_path, "fedgcn-rfe", "fedgcn", features={"selection": "rfe"}), 0.6, 0.7))
    assert row(found_in(tmp_path, rows), "RFE").scores.keys() == {"fedgcn", "fedmlp"}


def test_methods_that_a_reading_lacks_are_in_no_distance(tmp_path):
    rows = [entry for entry in some_readings(tmp_path) if entry[0]["name"] != "localgcn-dropout"]
    rows.append((variant_outline(tmp_path, "fedni", "fedni"), 0.61, 0.7))
    found = found_in(tmp_path, rows)
    assert list(found.titles.values()) == ["LocalGCN", "CentralGCN", "FedMLP", "FedGCN", "FedNI"]
    assert found.compared == ("centralgcn", "fedmlp", "fedgcn")
    assert row(found, "dropout").distance == pytest.approx((0.010 + 0.030 + 0.010) / 3)
    assert row(found, "as shipped").scores["fedni"].mean == pytest.approx(0.61)


def test_one_sentence_says_which_is_nearest(found):
    assert found.finding == (
        "Nearest to the paper\u2019s accuracies of LocalGCN, CentralGCN, FedMLP and FedGCN: dropout, mean distance "
        ".013; as shipped .023; farthest: as Parisot et al., .030"
    )
    assert found.sentences.startswith(f"{found.finding}. A single accuracy here has a 95 % interval of about \u00b1 ")


def test_another_protocol_has_no_readings(tmp_path):
    assert found_in(tmp_path, some_readings(tmp_path), protocol="inductive") is None


def test_one_reading_is_none(tmp_path):
    assert found_in(tmp_path, some_readings(tmp_path)[:4]) is None


def test_adni_is_compared_with_its_own_numbers(tmp_path):
    rows = some_readings(tmp_path)
    outline = read_experiment(experiment(tmp_path, "readings", rows, reference="fedgcn"))
    found = find_readings(replace(outline, cohort="adni"), read_scored(outline))
    assert found.printed["fedgcn"] == 0.742
