"""Subjects as region series: joined by id, unlabelled ones left out, test labels hidden, bad ones named."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.runtime import Streams, UserError, write_arrays
from brainfed.samples import assemble_series
from support.files.series_files import drawn_series, write_joined, write_people

LENGTHS = (9, 2, 30, 5, 12, 7)
SUBJECTS = tuple(f"s{number}" for number in range(6))
FOLD = np.array([0, 1, 0, -1, 1, -1])
DIAGNOSIS = [1, 0, 0, 1, 1, None]


@pytest.fixture
def held(tmp_path):
    """Series of six subjects; the fourth trains in all folds, the last has no label."""
    write_people(tmp_path, SUBJECTS, list("ababab"), FOLD, DIAGNOSIS)
    series = dict(zip(SUBJECTS, drawn_series(LENGTHS), strict=True))
    write_joined(tmp_path / "all.safetensors", series)
    return series


def assembled(folder, labels="true"):
    return assemble_series(
        split=folder / "split.parquet",
        participants=folder / "participants.parquet",
        series=folder / "all.safetensors",
        labels=labels,
        streams=Streams(1),
    )


def test_labelled_subjects_have_their_series(tmp_path, held):
    inputs, truth = assembled(tmp_path)
    assert inputs.subjects == SUBJECTS[:5]
    assert truth.tolist() == DIAGNOSIS[:5]
    assert inputs.institutions == ("a", "b") and inputs.institution.tolist() == [0, 1, 0, 1, 0]
    assert inputs.regions == 4
    assert inputs.lengths.tolist() == list(LENGTHS[:5])
    for position, subject in enumerate(inputs.subjects):
        np.testing.assert_array_equal(inputs.subject(position), held[subject])
        assert np.shares_memory(inputs.subject(position), inputs.series)


def test_series_are_joined_by_id_in_whatever_order_the_file_has_them(tmp_path, held):
    write_joined(tmp_path / "all.safetensors", {subject: held[subject] for subject in reversed(SUBJECTS)})
    inputs, _ = assembled(tmp_path)
    for position, subject in enumerate(inputs.subjects):
        np.testing.assert_array_equal(inputs.subject(position), held[subject])


def test_a_file_with_exactly_these_subjects_is_not_copied(tmp_path, held):
    write_joined(tmp_path / "all.safetensors", {subject: held[subject] for subject in SUBJECTS[:5]})
    inputs, _ = assembled(tmp_path)
    assert isinstance(inputs.series.base, np.memmap)


@pytest.mark.parametrize("labels", ["true", "permuted"])
def test_labels_are_hidden_where_their_subjects_are_tested(tmp_path, held, labels):
    inputs, truth = assembled(tmp_path, labels)
    tested = np.arange(2)[:, None] == FOLD[:5]
    np.testing.assert_array_equal(inputs.labels, np.where(tested, -1, truth))
    with pytest.raises(ValueError, match="must not have the label"):
        replace(inputs, labels=np.ones_like(inputs.labels))


def test_a_subject_of_the_split_without_a_series_is_named(tmp_path, held):
    write_joined(tmp_path / "all.safetensors", {subject: held[subject] for subject in SUBJECTS if subject != "s2"})
    with pytest.raises(UserError, match=r"all\.safetensors: expected the series of every .* none of 's2' \(1 of 5"):
        assembled(tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named_by_subject_and_time_point(tmp_path, held, value):
    held["s2"][17, 3] = value
    write_joined(tmp_path / "all.safetensors", held)
    with pytest.raises(UserError, match=r"Subject s2: expected a series of finite values.*at time point 17; delete"):
        assembled(tmp_path)


@pytest.mark.parametrize("length", [0, 1])
def test_a_series_of_fewer_than_two_time_points_is_refused(tmp_path, held, length):
    held["s1"] = held["s1"][:length]
    write_joined(tmp_path / "all.safetensors", held)
    with pytest.raises(UserError, match=f"Subject s1: expected a series of at least 2 time points, found {length};"):
        assembled(tmp_path)


def test_arrays_that_do_not_fit_together_are_refused(tmp_path, held):
    inputs, _ = assembled(tmp_path)
    for start, series in (
        (inputs.start[:-1], inputs.series),
        (inputs.start + 1, inputs.series),
        (inputs.start, inputs.series[:-1]),
        (inputs.start, inputs.series.astype(np.float64)),
        (inputs.start, inputs.series[:, :0]),
        (inputs.start, inputs.series[:, 0]),
        (inputs.start[[0, 2, 1, 3, 4, 5]], inputs.series),
    ):
        with pytest.raises(ValueError, match="expected the series of 5 subjects, found"):
            replace(inputs, start=start, series=series)
    metadata = {"subjects": list(SUBJECTS), "crossings": []}
    write_arrays(tmp_path / "all.safetensors", {"start": inputs.start, "series": inputs.series}, metadata)
    with pytest.raises(UserError, match=r"expected series of 6 subjects, found start .*; delete it and run again"):
        assembled(tmp_path)
