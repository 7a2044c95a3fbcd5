"""Region series with public subjects: joined by id, and refused where a fold tests one of them."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime import Streams, UserError, write_table
from brainfed.samples import PublicSeriesInputs, SeriesInputs, assemble_series
from support.files.series_files import drawn_series, write_joined, write_people

SUBJECTS = tuple(f"s{number}" for number in range(8))
INSTITUTION = list("abababab")
FOLD = np.array([0, 1, 0, -1, 1, 0, 1, -1])
DIAGNOSIS = [1, 0, 0, 1, 1, 0, 0, None]
PUBLIC = [("s6", 0), ("s1", 0), ("s3", 1), ("s2", 1), ("s0", 1)]


@pytest.fixture
def folder(tmp_path):
    """Series of eight subjects; the fourth trains in all folds, the last has no label."""
    write_people(tmp_path, SUBJECTS, INSTITUTION, FOLD, DIAGNOSIS)
    write_joined(tmp_path / "all.safetensors", dict(zip(SUBJECTS, drawn_series([9] * 8), strict=True)))
    write_public(tmp_path, PUBLIC)
    return tmp_path


def write_public(folder, rows):
    write_table(folder / "public.parquet", pd.DataFrame(rows, columns=["subject", "fold"]))


def assembled(folder, public=True, labels="true"):
    return assemble_series(
        split=folder / "split.parquet",
        participants=folder / "participants.parquet",
        series=folder / "all.safetensors",
        labels=labels,
        streams=Streams(1),
        public=folder / "public.parquet" if public else None,
    )[0]


@pytest.mark.parametrize("labels", ["true", "permuted"])
def test_training_subjects_are_public_or_an_institution_s_own(folder, labels):
    inputs = assembled(folder, labels=labels)
    assert isinstance(inputs, PublicSeriesInputs)
    assert [inputs.public_training(fold).tolist() for fold in (0, 1)] == [[1, 6], [0, 2, 3]]
    private = [[inputs.private_training(fold, code).tolist() for code in (0, 1)] for fold in (0, 1)]
    assert private == [[[4], [3]], [[], [5]]]
    for fold in (0, 1):
        parts = np.concatenate(
            [inputs.public_training(fold), *(inputs.private_training(fold, code) for code in (0, 1))]
        )
        assert sorted(parts) == np.flatnonzero(inputs.training(fold)).tolist()


def test_nothing_else_differs_from_inputs_without_public_subjects(folder):
    plain, inputs = assembled(folder, public=False), assembled(folder)
    assert type(plain) is SeriesInputs
    for field in fields(SeriesInputs):
        np.testing.assert_array_equal(getattr(inputs, field.name), getattr(plain, field.name))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*PUBLIC, ("s4", 1)], "expected training subjects alone, found 's4', which fold 1 tests"),
        ([*PUBLIC, ("s4", 2)], "expected folds 0 to 1, found 2"),
        ([*PUBLIC, ("s4", -1)], "expected folds 0 to 1, found -1"),
        ([*PUBLIC, ("s4", 0.5)], "expected folds as whole numbers, found float64"),
        ([*PUBLIC, ("s9", 0)], "expected labelled subjects of the split, found 's9'"),
        ([*PUBLIC, ("s7", 0)], "expected labelled subjects of the split, found 's7'"),
        ([*PUBLIC, ("s3", 1)], "expected one row a subject and fold, found 's3' twice"),
        (PUBLIC[:2], "expected public subjects in every fold, found none in fold 1"),
    ],
)
def test_a_damaged_table_is_refused(folder, rows, words):
    write_public(folder, rows)
    with pytest.raises(UserError, match=rf"public\.parquet: {words}; delete it and run again\."):
        assembled(folder)


def test_no_inputs_exist_with_a_public_subject_that_does_not_train(folder):
    inputs = assembled(folder)
    for fold, subject in ((0, 0), (1, 4)):
        public = inputs.public.copy()
        public[fold, subject] = True
        with pytest.raises(ValueError, match=f"found 's{subject}' in fold {fold}, which tests it"):
            replace(inputs, public=public)
    for public in (inputs.public[:1], inputs.public.astype(np.int64)):
        with pytest.raises(ValueError, match="expected public as booleans"):
            replace(inputs, public=public)
