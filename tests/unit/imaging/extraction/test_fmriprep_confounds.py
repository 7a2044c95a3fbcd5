"""The message on an unusable table of confounds names its cause."""

from pathlib import Path

import numpy as np
import pytest
from nilearn.interfaces.fmriprep import load_confounds_strategy

from brainfed.cohort.settings.bids import ConfoundSettings
from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.imaging.extraction.fmriprep_confounds import load_regressors
from brainfed.runtime.errors import UserError
from support.files.bids_dataset import VOLUMES, Derivative


def rewrite(old, new):
    return lambda table: table.write_bytes(table.read_bytes().replace(old, new))


def in_a_cell(table):
    header, first, second, *rest = table.read_text().splitlines()
    table.write_text("\n".join([header, first, "still" + second[second.index("\t") :], *rest]))


def without_header(table):
    _, *rows = table.read_text().splitlines()
    table.write_text("\n".join([rows[0].replace("n/a", "0"), *rows[1:]]) + "\n")


def lines(table):
    return table.read_text().splitlines()


def longer_row(table):
    table.write_text("\n".join([*lines(table)[:-1], lines(table)[-1] + "\t1"]))


def run_of(image):
    table = image.parent / "sub-01_task-rest_desc-confounds_timeseries.tsv"
    return BidsRun("run", str(image), str(table), components=str(table.with_suffix(".json")))


def of_json(text):
    return lambda table: table.with_suffix(".json").write_text(text)


@pytest.mark.parametrize(
    ("change", "strategy", "found"),
    [
        (in_a_cell, "simple", "columns of strategy 'simple', found text in place of a number ("),
        (
            rewrite(b"trans_x\t", "f\u00fcr\t".encode("latin-1")),
            "simple",
            "table of confounds, found an unreadable one",
        ),
        (
            rewrite(b"trans_", b"shift_"),
            "simple",
            "columns of strategy 'simple', found a table or a json without them (",
        ),
        (lambda table: table.write_text(""), "simple", "one row a volume, found an empty table"),
        (lambda table: table.unlink(), "simple", "table of confounds, found an unreadable one"),
        (without_header, "simple", "the header of fMRIPrep's table, found numbers"),
        (longer_row, "simple", "cells as in line 1, found"),
        (lambda table: table.with_suffix(".json").unlink(), "compcor", "found a file that does not open ("),
        (of_json("{"), "compcor", "found a damaged json beside the table ("),
        (of_json("[]"), "compcor", "found a table or a json without them ("),
        (rewrite(b"_comp_cor_", b"_other_"), "compcor", "found a table or a json without them ("),
    ],
)
def test_the_cause_is_named(tmp_path, change, strategy, found):
    run = run_of(Derivative(tmp_path).write_run("01"))
    change(Path(run.confounds))
    with pytest.raises(UserError) as caught:
        load_regressors("01", run, VOLUMES, ConfoundSettings(strategy))
    assert str(caught.value).startswith(f"Subject 01, confounds of {run.image}")
    assert found in str(caught.value)
    assert "[]" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        rewrite(b"\t", b","),
        rewrite(b"\n", b"\r\n"),
        rewrite(b"\n", b"\t\n"),
        lambda table: table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes()),
        lambda table: table.write_bytes(table.read_text().encode("utf-16")),
        lambda table: table.write_text(
            "".join(line + "\t\n" * (at > 0) + "\n" for at, line in enumerate(lines(table)))
        ),
    ],
)
def test_a_table_that_another_program_saved_is_read_as_it_was(tmp_path, change):
    run = run_of(Derivative(tmp_path).write_run("01"))
    options = ConfoundSettings("compcor", n_compcor=3)
    before = load_regressors("01", run, VOLUMES, options)
    change(Path(run.confounds))
    after = load_regressors("01", run, VOLUMES, options)
    assert after.names == before.names
    assert np.array_equal(after.values, before.values)


@pytest.mark.parametrize("part", ["fmriprep_tsv", "a.tsv", "desc-preproc_bold.nii.gz", "space-x"])
def test_the_path_of_a_table_is_of_no_importance(tmp_path, part):
    run = run_of(Derivative(tmp_path / part).write_run("01"))
    expected, _ = load_confounds_strategy(
        str(Derivative(tmp_path / "plain").write_run("01")), denoise_strategy="compcor", n_compcor=3
    )
    found = load_regressors("01", run, VOLUMES, ConfoundSettings("compcor", n_compcor=3))
    assert np.array_equal(found.values, expected.to_numpy())
