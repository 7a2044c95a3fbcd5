"""The message on an unusable table of confounds names its cause."""

import pytest

from bids_dataset import VOLUMES, Derivative
from brainfed.cohort.settings.bids import ConfoundSettings
from brainfed.imaging.extraction.fmriprep_confounds import load_regressors
from brainfed.runtime.errors import UserError


def rewrite(old, new):
    return lambda table: table.write_bytes(table.read_bytes().replace(old, new))


def in_a_cell(table):
    header, first, second, *rest = table.read_text().splitlines()
    table.write_text("\n".join([header, first, "still" + second[second.index("\t") :], *rest]))


def of_json(text):
    return lambda table: table.with_suffix(".json").write_text(text)


@pytest.mark.parametrize(
    ("change", "strategy", "found"),
    [
        (in_a_cell, "simple", "text in place of a number"),
        (rewrite(b"trans_x\t", "f\u00fcr\t".encode("latin-1")), "simple", "a table that is not UTF-8"),
        (rewrite(b"\t", b","), "simple", "a table without tabs"),
        (rewrite(b"trans_", b"shift_"), "simple", "a table or a json without them"),
        (lambda table: table.write_text(""), "simple", "an empty table"),
        (lambda table: table.unlink(), "simple", "no table, or several"),
        (lambda table: table.with_suffix(".json").unlink(), "compcor", "no json beside the table"),
        (of_json("{"), "compcor", "a damaged json beside the table"),
        (of_json("[]"), "compcor", "a table or a json without them"),
    ],
)
def test_the_cause_is_named(tmp_path, change, strategy, found):
    image = Derivative(tmp_path).write_run("01")
    change(image.parent / "sub-01_task-rest_desc-confounds_timeseries.tsv")
    with pytest.raises(UserError) as caught:
        load_regressors("01", str(image), VOLUMES, ConfoundSettings(strategy))
    assert str(caught.value).startswith(f"Subject 01, confounds of {image}: expected the columns of strategy")
    assert f"found {found} (" in str(caught.value)
