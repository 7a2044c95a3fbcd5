"""A site that is started again after its leave."""

import json

import pytest

from brainfed.deployment.attendance.past_leave import PastLeave


def left(folder, study="a"):
    files = [folder / name for name in ("one.parquet", "two.parquet")]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))
    past = PastLeave(folder / "left.json", study, tuple(map(str, files)))
    past.write()
    return past, files


def test_a_site_that_has_left_knows_when(tmp_path):
    past, _ = left(tmp_path)
    assert past.time().isoformat() == json.loads(past.path.read_text())["time"]


def test_without_a_leave_there_is_none(tmp_path):
    past, _ = left(tmp_path)
    past.remove()
    past.remove()
    assert past.time() is None


def test_another_study_was_not_left(tmp_path):
    past, _ = left(tmp_path)
    assert PastLeave(past.path, "b", past.files).time() is None


def test_other_results_or_fewer_were_not_left_with(tmp_path):
    past, (one, two) = left(tmp_path)
    one.write_bytes(b"other")
    assert past.time() is None
    one.write_bytes(bytes([0]))
    assert past.time() is not None
    two.unlink()
    assert past.time() is None


@pytest.mark.parametrize("note", ["", "[]", '{"study": "a"}'])
def test_a_damaged_note_is_none(tmp_path, note):
    past, _ = left(tmp_path)
    past.path.write_text(note)
    assert past.time() is None
