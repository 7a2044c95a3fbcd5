"""The record of a result, and whether the result is current."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from brainfed.runtime import UserError
from brainfed.runtime.records import Making, dated_ahead, record_of
from brainfed.runtime.records._made import (
    LARGE,
    Content,
    Contents,
    content,
    content_digest,
    parts_of,
    read,
    record_path,
    signature,
    write,
)
from brainfed.runtime.records._records import (
    CHANGED,
    NO_RECORD,
    OTHER_INPUT,
    OTHER_PARTS,
    OTHER_ROLES,
    OTHER_VERSIONS,
    verdict,
)

GIVEN = {"code": "abc", "seed": 1, "threads": 2, "settings": {"rounds": 3, "hidden": (64, 32)}}


@pytest.fixture
def made(tmp_path):
    """The record of a job that read two files and wrote two."""
    inputs = (("features", (str(tmp_path / "a"),)), ("graphs", (str(tmp_path / "b"),)))
    outputs = [str(tmp_path / "predictions"), str(tmp_path / "cost")]
    for name, text in (("a", "features"), ("b", "graph")):
        (tmp_path / name).write_text(text)
    making = Making(GIVEN, inputs, outputs)
    for path in outputs:
        Path(path).write_text(path)
    making.finish({"python": "3.11", "numpy": "2.4"})
    return inputs, outputs


def judged(made, tmp_path, *, given=GIVEN, inputs=None, deleted=None, versions=None):
    own, outputs = made
    memory = Contents(tmp_path / "memory.json")
    return verdict(read(outputs[0]), parts_of(given), inputs or own, outputs, memory, deleted or {}, versions or {})


def test_a_result_that_nothing_touched_is_current(made, tmp_path):
    assert judged(made, tmp_path) == ""


def test_two_parameters_that_trade_values_are_others(made, tmp_path):
    assert judged(made, tmp_path, given=GIVEN | {"seed": 2, "threads": 1}) == OTHER_PARTS


def test_the_order_of_parameters_does_not_count_that_inside_a_mapping_does(made, tmp_path):
    assert judged(made, tmp_path, given=dict(reversed(GIVEN.items()))) == ""
    settings = {"hidden": (64, 32), "rounds": 3}
    assert judged(made, tmp_path, given=GIVEN | {"settings": settings}) == OTHER_PARTS


def test_two_inputs_that_trade_roles_are_others(made, tmp_path):
    (first, one), (second, other) = made[0]
    assert judged(made, tmp_path, inputs=((first, other), (second, one))) == OTHER_ROLES


@pytest.mark.parametrize("name", ["a", "b"])
def test_an_input_of_other_content_counts_whatever_its_time(made, tmp_path, name):
    path = tmp_path / name
    before = path.stat()
    path.write_text("x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert judged(made, tmp_path) == OTHER_INPUT


def test_a_touched_input_does_not_count(made, tmp_path):
    os.utime(tmp_path / "a", (0, 0))
    assert judged(made, tmp_path) == ""


def test_an_input_that_was_deleted_after_use_has_the_content_that_its_own_record_names(made, tmp_path):
    path = tmp_path / "a"
    digest = content_digest(path)
    path.unlink()
    assert judged(made, tmp_path) == ""
    assert judged(made, tmp_path, deleted={str(path): digest}) == ""
    assert judged(made, tmp_path, deleted={str(path): "another"}) == OTHER_INPUT


def test_an_output_that_was_deleted_leaves_the_others_to_be_judged(made, tmp_path):
    Path(made[1][1]).unlink()
    assert judged(made, tmp_path) == ""
    assert judged(made, tmp_path, given=GIVEN | {"seed": 9}) == OTHER_PARTS
    Path(made[1][0]).write_text("edited")
    assert judged(made, tmp_path) == CHANGED


def test_an_output_that_was_edited_is_not_current(made, tmp_path):
    Path(made[1][1]).write_text("better numbers")
    assert judged(made, tmp_path) == CHANGED


def test_without_a_whole_record_nothing_is_current(made, tmp_path):
    path = record_path(made[1][0])
    text = path.read_text()
    for damage in (
        text[:20],
        "[]",
        '{"parts": 1}',
        text.replace('"outputs": {', '"outputs": {"other": ["", 1, 2, 3, 4], '),
    ):
        path.write_text(damage)
        assert judged(made, tmp_path) == NO_RECORD
    path.unlink()
    assert judged(made, tmp_path) == NO_RECORD


def test_other_versions_count_only_where_the_config_says_so(made, tmp_path):
    assert judged(made, tmp_path) == ""
    assert judged(made, tmp_path, versions={"numpy": "2.5", "python": "3.11"}) == OTHER_VERSIONS
    assert judged(made, tmp_path, versions={"numpy": "2.4", "python": "3.11", "torch": "2.13"}) == ""


def test_an_input_that_changes_while_the_job_runs_ends_it_without_a_record(tmp_path):
    source, result = tmp_path / "scan", tmp_path / "series"
    source.write_text("before")
    making = Making(GIVEN, (("scan", (str(source),)),), [str(result)])
    source.write_text("after the start")
    result.write_text("from before")
    with pytest.raises(UserError, match="scan: expected a file that does not change while a job reads it"):
        making.finish({})
    assert read(result) is None


def test_an_input_that_is_replaced_by_its_like_while_the_job_runs_is_another_at_the_next_start(tmp_path):
    source, result = tmp_path / "scan", tmp_path / "series"
    source.write_text("before")
    making = Making(GIVEN, (("scan", (str(source),)),), [str(result)])
    other = tmp_path / "other"
    other.write_text("after!")
    os.utime(other, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    other.rename(source)
    result.write_text("from before")
    making.finish({})
    assert judged(((("scan", (str(source),)),), [str(result)]), tmp_path) == OTHER_INPUT


@pytest.mark.parametrize("name", ["predictions", "cost"])
def test_an_input_that_is_no_more_what_its_job_wrote_ends_the_job_before_it_computes(made, tmp_path, name):
    path, table = tmp_path / name, tmp_path / "tables" / "scores"
    table.parent.mkdir()
    with path.open("r+b") as file:
        file.write(b"#")
    with pytest.raises(UserError, match=f"{name}: expected the content that its job wrote, found another"):
        Making(GIVEN, (("read", (str(path),)),), [str(table)])
    assert read(table) is None
    # What the disk did to the file, its times do not show: without a mark the next start would trust it again.
    assert judged(made, tmp_path) == CHANGED


def test_a_file_that_is_edited_while_a_job_reads_it_with_its_time_put_back_ends_the_job(tmp_path):
    source, result = tmp_path / "scan", tmp_path / "series"
    source.write_text("before")
    held = source.stat()
    making = Making(GIVEN, (("scan", (str(source),)),), [str(result)])
    source.write_text("after!")
    os.utime(source, ns=(held.st_atime_ns, held.st_mtime_ns))
    result.write_text("from which?")
    with pytest.raises(UserError, match="scan: expected a file that does not change while a job reads it"):
        making.finish({})


def test_an_input_is_read_once_and_one_that_cannot_be_read_is_left_to_the_job(tmp_path, monkeypatch):
    (tmp_path / "scan").write_text("voxels")
    (tmp_path / "series").write_text("values")
    read_now = []

    def digest(path):
        read_now.append(Path(path).name)
        if "locked" in str(path):
            raise PermissionError
        return "0" * 64

    (tmp_path / "locked").write_text("")
    roles = (("scan", (str(tmp_path / "scan"), str(tmp_path / "locked"), str(tmp_path / "none"))),)
    monkeypatch.setattr("brainfed.runtime.records._made.content_digest", digest)
    making = Making(GIVEN, roles, [str(tmp_path / "series")])
    assert read_now == ["scan", "locked"]
    making.finish({})
    assert read_now == ["scan", "locked", "series"]
    assert [held.digest for held in read(tmp_path / "series").contents.values()] == ["0" * 64, "", ""]


def test_a_doubted_file_is_read_whatever_its_times_say(made, tmp_path):
    outputs = made[1]
    known = read(outputs[0])
    flipped = {path: held._replace(digest="0" * 64) for path, held in known.outputs.items()}
    contents = Contents(tmp_path / "memory.json")
    write(replace(known, outputs=flipped))
    assert judged(made, tmp_path) == ""
    contents.doubted = frozenset(outputs[1:])
    parts = parts_of(GIVEN)
    assert verdict(read(outputs[0]), parts, made[0], outputs, contents, {}, {}) == CHANGED


@pytest.mark.parametrize("touch", [lambda path: path.chmod(0o600), lambda path: os.link(path, f"{path}-backup")])
def test_a_backup_of_an_input_while_the_job_runs_changes_nothing(tmp_path, touch):
    source, result = tmp_path / "scan", tmp_path / "series"
    source.write_text("voxels")
    roles = (("scan", (str(source),)),)
    making = Making(GIVEN, roles, [str(result)])
    touch(source)
    result.write_text("series")
    making.finish({})
    assert judged((roles, [str(result)]), tmp_path) == ""


def test_a_file_name_that_is_no_text_is_recorded(tmp_path):
    name = os.fsdecode(str(tmp_path).encode() + b"/series-\xff")
    Path(name).write_text("series")
    making = Making(GIVEN, (), [name])
    Path(name).write_text("series")
    making.finish({})
    assert read(name) is not None


def test_a_job_that_begins_takes_the_old_record_away(made, tmp_path):
    Making(GIVEN, *made)
    assert read(made[1][0]) is None


def test_every_output_finds_the_record_of_its_job(made, tmp_path):
    assert record_of(made[1][1]) == read(made[1][0])
    assert record_of(tmp_path / "a") is None


def test_a_record_keeps_all_its_values(made):
    held = replace(read(made[1][0]), adopted=True)
    write(held)
    assert read(made[1][0]) == held


def test_a_folder_has_the_content_of_its_files(tmp_path):
    folder = tmp_path / "bids"
    (folder / "sub-1").mkdir(parents=True)
    (folder / "sub-1" / "series.tsv").write_text("1\t2")
    first = content(folder)
    (folder / "sub-1" / "series.tsv").write_text("1\t3")
    assert content(folder).digest != first.digest
    (folder / "sub-1" / "series.tsv").rename(folder / "sub-1" / "other.tsv")
    assert content_digest(folder) not in (first.digest, "")
    assert signature(folder / "none") is None


def test_contents_are_read_once_and_cached_between_runs(tmp_path, monkeypatch):
    (tmp_path / "scan").write_text("voxels")
    memory, path = tmp_path / "memory.json", str(tmp_path / "scan")
    unknown = Content("", 0, 0, 0, 0)
    contents = Contents(memory)
    digest = contents.now(path, unknown).digest
    contents.save()
    monkeypatch.setattr("brainfed.runtime.records._made.content_digest", lambda path: pytest.fail("read again"))
    assert Contents(memory).now(path, unknown).digest == digest
    memory.write_text("damaged")
    monkeypatch.undo()
    assert Contents(memory).now(path, unknown).digest == digest


def test_a_large_file_that_is_dated_ahead_runs_its_readers_again_and_the_sentence_says_so(tmp_path):
    for name, size in (("small", 10), ("large", LARGE + 1)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
        os.utime(tmp_path / name, (time.time() + 3600,) * 2)
    small, both = (
        dated_ahead([str(tmp_path / "small")]),
        dated_ahead([str(tmp_path / "small"), str(tmp_path / "large")]),
    )
    assert small.startswith("1 file is dated after now")
    assert "Until then" not in small
    assert both.startswith("2 files are dated after now")
    assert both.endswith(
        f"`touch` them, or set this machine's clock. Until then every start runs the jobs again that "
        f"read {tmp_path}/large, of more than 1 GB."
    )
