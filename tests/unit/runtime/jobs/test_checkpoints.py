"""States that a job keeps, and what it says of its progress."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from brainfed.runtime import PROGRESS, Progress, part_of
from brainfed.runtime.jobs import Checkpoint, inputs_digest
from brainfed.runtime.jobs._checkpoints import checkpoint_path
from brainfed.scripting._job import job_name


@pytest.fixture
def output(tmp_path):
    return tmp_path / "predictions.parquet"


def checkpoint(output, digest="0123456789abcdef"):
    return Checkpoint(checkpoint_path(output, digest), digest)


def hidden(output):
    return sorted(path.name for path in output.parent.iterdir())


def test_the_state_comes_back_to_the_bit(output):
    weights = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    steps = np.array([3, 4])
    checkpoint(output).save(7, {"weights": weights, "steps": steps}, {"best": 0.5, "order": [2, 0, 1]})
    kept = checkpoint(output).load()
    round_, arrays, metadata = kept
    assert (round_, metadata) == (7, {"best": 0.5, "order": [2, 0, 1]})
    assert arrays["weights"].tobytes() == weights.tobytes()
    np.testing.assert_array_equal(arrays["steps"], steps)


def test_the_last_round_is_kept(output):
    for round_ in range(3):
        checkpoint(output).save(round_, {"w": np.full(2, round_)}, {})
    kept = checkpoint(output).load()
    assert kept[0] == 2
    assert kept[1]["w"].tolist() == [2, 2]
    assert hidden(output) == [".predictions.parquet.0123456789abcdef.checkpoint"]


def test_nothing_kept_is_nothing_loaded(output):
    assert checkpoint(output).load() is None


def test_without_a_path_nothing_is_kept(tmp_path):
    nowhere = Checkpoint(None, "key")
    nowhere.save(1, {"w": np.ones(1)}, {})
    nowhere.remove()
    assert nowhere.load() is None


def test_the_time_of_a_jobs_states_is_that_of_the_longest(output):
    assert checkpoint(output).spent() == 0
    now = [0.0]
    mine = replace(checkpoint(output), seconds=lambda: now[0])
    for now[0], part in ((7.5, mine.part("folds-0-2")), (11.0, mine.part("folds-3-4")), (2.0, mine.part("folds-5"))):
        part.save(1, {"w": np.ones(1)}, {})
    assert mine.spent() == 11.0
    damaged = mine.part("folds-3-4").path
    damaged.write_bytes(b"half")
    assert mine.spent() == 7.5
    assert checkpoint(output, "aaaa").spent() == 0


def test_another_key_in_the_same_file_is_ignored(output, caplog):
    mine = checkpoint(output)
    mine.save(1, {"w": np.ones(1)}, {})
    assert Checkpoint(mine.path, "another").load() is None
    assert "other settings" in caplog.text


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.9])
def test_a_damaged_file_is_ignored_and_replaced(output, keep, caplog):
    mine = checkpoint(output)
    mine.save(1, {"w": np.ones(100)}, {})
    whole = mine.path.read_bytes()
    mine.path.write_bytes(whole[: int(len(whole) * keep)])
    assert mine.load() is None
    assert "ignored" in caplog.text
    mine.save(2, {"w": np.ones(100)}, {})
    kept = mine.load()
    assert kept[0] == 2


def test_saving_deletes_states_that_no_job_can_resume(output):
    checkpoint(output, "aaaa").save(5, {"w": np.ones(1)}, {})
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    part = part_of(checkpoint_path(output, "aaaa")).name.replace(f".{os.getpid()}.", f".{gone.pid}.")
    (output.parent / part).write_bytes(b"half")
    others = [output.with_name("predictions"), output.with_name("history.parquet")]
    for other in others:
        checkpoint(other, "bbbb").save(5, {"w": np.ones(1)}, {})
    output.write_text("scores")
    checkpoint(output, "cccc").save(1, {"w": np.ones(1)}, {})
    assert hidden(output) == [
        ".history.parquet.bbbb.checkpoint",
        ".predictions.bbbb.checkpoint",
        ".predictions.parquet.cccc.checkpoint",
        "predictions.parquet",
    ]


def test_removing_is_final_and_may_be_repeated(output):
    mine = checkpoint(output)
    mine.save(1, {"w": np.ones(1)}, {})
    mine.remove()
    mine.remove()
    assert mine.load() is None
    assert hidden(output) == []


def test_the_digest_is_that_of_canonical_json(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    content = hashlib.sha256(b"abc").hexdigest()
    known = hashlib.sha256(f'{{"files":["{content}"],"params":{{"k":5}}}}'.encode()).hexdigest()[:16]
    assert inputs_digest({"k": 5}, [tmp_path / "a"]) == known


def test_the_digest_moves_with_params_and_contents_only(tmp_path):
    for name, content in {"a": b"1", "same": b"1", "b": b"2"}.items():
        (tmp_path / name).write_bytes(content)
    a, same, b = tmp_path / "a", tmp_path / "same", tmp_path / "b"
    known = inputs_digest({"k": 5, "code": "x"}, [a, b])
    assert inputs_digest({"code": "x", "k": 5}, [same, b]) == known
    changed = [
        inputs_digest({"k": 6, "code": "x"}, [a, b]),
        inputs_digest({"k": 5, "code": "y"}, [a, b]),
        inputs_digest({"k": 5, "code": "x"}, [b, a]),
        inputs_digest({"k": 5, "code": "x"}, [a]),
    ]
    assert len({known, *changed}) == 5


def progress_at(*seconds):
    """Progress of a job that begins at 0 and is called at these seconds."""
    times = iter([0.0, *seconds])
    return Progress("fedgcn, repeat 0", every=10.0, clock=lambda: next(times))


def shown(records):
    """The lines that go to the terminal too."""
    return [record.getMessage() for record in records if record.name == PROGRESS]


def test_progress_estimates_the_time_left_from_the_work_of_this_process(caplog):
    progress = progress_at(2.0, 6.0, 14.0, 15.0, 16.0)
    with caplog.at_level("INFO"):
        for done, loss in ((37, 0.9), (38, 0.8), (40, 0.75), (41, 0.7), (100, 0.1)):
            progress(done, 100, f"loss {loss:.2f}, round")
    # Resumed at 37: 3 rounds in 12 s, so the 60 that are left take 240 s.
    assert caplog.messages == [
        "fedgcn, repeat 0: round 40 of 100, loss 0.75, about 4 min left",
        "fedgcn, repeat 0: round 100 of 100, loss 0.10",
    ]
    assert shown(caplog.records) == caplog.messages


def test_progress_counts_anew_for_the_next_stack_of_folds(caplog):
    progress = progress_at(10.0, 20.0, 100.0, 110.0)
    with caplog.at_level("INFO"):
        for done, total in ((1, 2), (2, 2), (1, 4), (2, 4)):
            progress(done, total, "round")
    # The second stack began at 100: one round in 10 s, two are left.
    assert caplog.messages[-1] == "fedgcn, repeat 0: round 2 of 4, about 20 s left"


def test_a_short_job_reports_its_end_in_the_log_alone(caplog):
    progress = progress_at(1.0, 2.0)
    with caplog.at_level("INFO"):
        progress(1, 2, "fold")
        progress(2, 2, "fold")
    assert caplog.messages == ["fedgcn, repeat 0: fold 2 of 2"]
    assert shown(caplog.records) == []


def test_a_solver_that_ends_by_itself_has_no_estimate_and_leaves_that_of_its_folds_alone(caplog):
    progress = progress_at(15.0, 20.0, 30.0, 31.0, 50.0)
    with caplog.at_level("INFO"):
        progress(3, 100, "fold 1 of 4, round", at_most=True)
        progress(1, 4, "fold")
        progress(2, 100, "fold 2 of 4, round", at_most=True)
        progress(100, 100, "fold 2 of 4, round", at_most=True)
        progress(2, 4, "fold")
    assert caplog.messages == [
        "fedgcn, repeat 0: round 3 of at most 100, fold 1 of 4",
        "fedgcn, repeat 0: round 2 of at most 100, fold 2 of 4",
        "fedgcn, repeat 0: fold 2 of 4, about 60 s left",
    ]


@pytest.mark.parametrize(
    ("wildcards", "name"),
    [
        ({"cohort": "abide", "variant": "fedgcn", "repeat": "3"}, "fedgcn, repeat 3"),
        ({"inpainting": "fedni-1a2b", "repeat": "0", "part": "fold-2"}, "fedni-1a2b, repeat 0, fold-2"),
        ({"fused": "fedni-3c4d", "repeat": "0", "part": "all"}, "fedni-3c4d, repeat 0"),
        ({"cohort": "abide", "shard": "shard-00"}, ""),
    ],
)
def test_a_job_is_named_by_its_wildcards(wildcards, name):
    assert job_name(wildcards) == name
