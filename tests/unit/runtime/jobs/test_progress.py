"""Progress: rounds done, values reached, and time left."""

import logging

import pytest

from brainfed.runtime.logs import PROGRESS, Progress
from brainfed.scripting.job import job_name


def progress_at(*seconds: float) -> Progress:
    """Progress of a job that begins at 0 and is called at these seconds."""
    times = iter([0.0, *seconds])
    return Progress("fedgcn, repeat 0", every=10.0, clock=lambda: next(times))


def shown(records: list[logging.LogRecord]) -> list[str]:
    """The lines that go to the terminal too."""
    return [record.getMessage() for record in records if record.name == PROGRESS]


def test_progress_estimates_the_time_left_from_the_work_of_this_process(caplog: pytest.LogCaptureFixture) -> None:
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


def test_progress_counts_anew_for_the_next_stack_of_folds(caplog: pytest.LogCaptureFixture) -> None:
    progress = progress_at(10.0, 20.0, 100.0, 110.0)
    with caplog.at_level("INFO"):
        for done, total in ((1, 2), (2, 2), (1, 4), (2, 4)):
            progress(done, total, "round")
    # The second stack began at 100: one round in 10 s, two are left.
    assert caplog.messages[-1] == "fedgcn, repeat 0: round 2 of 4, about 20 s left"


def test_a_short_job_reports_its_end_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    progress = progress_at(1.0, 2.0)
    with caplog.at_level("INFO"):
        progress(1, 2, "fold")
        progress(2, 2, "fold")
    assert caplog.messages == ["fedgcn, repeat 0: fold 2 of 2"]
    assert shown(caplog.records) == []


def test_a_solver_that_ends_by_itself_has_no_estimate_and_leaves_that_of_its_folds_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
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
def test_a_job_is_named_by_its_wildcards(wildcards: dict[str, str], name: str) -> None:
    assert job_name(wildcards) == name
