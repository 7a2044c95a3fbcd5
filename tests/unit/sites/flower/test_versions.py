"""The versions of Flower that a study between sites runs with."""

import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.runtime import UserError
from brainfed.sites.flower import _messages, node, versions
from brainfed.sites.flower._messages import Pauses
from brainfed.sites.flower.versions import require_flower

PYPROJECT = Path(__file__).parents[4] / "pyproject.toml"


@pytest.fixture
def other(monkeypatch):
    """A version that was not tested."""
    monkeypatch.setattr(versions.metadata, "version", lambda name: "1.99.0")
    return monkeypatch


def test_the_range_is_that_of_the_requirements():
    (flower, _) = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["sites"]
    first, after = (".".join(map(str, each)) for each in versions.TESTED)
    assert flower == f"flwr>={first},<{after}"


def test_a_version_that_was_tested_has_all_and_nothing_is_said(capsys):
    assert versions.lacking() == ""
    require_flower()
    assert capsys.readouterr().err == ""


def test_another_version_that_has_all_is_said(other, capsys):
    require_flower()
    expected = "Flower 1.99.0 was not tested, as 1.40 or later and before 1.43 were; it has all that a study calls\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    ("place", "used", "lacks"),
    [
        ("flwr.superlink.main:no_such", (), "module 'flwr.superlink.main' has no attribute 'no_such'"),
        ("flwr.no_such:function", (), "No module named 'flwr.no_such'"),
        ("flwr.superlink.main:create_app", ("port",), "create_app of flwr.superlink.main has other parameters"),
        (
            "flwr.common.secure_aggregation.crypto.shamir:create_shares",
            ("secret",),
            "create_shares of flwr.common.secure_aggregation.crypto.shamir has other parameters",
        ),
    ],
)
def test_another_version_that_lacks_something_is_refused(other, place, used, lacks):
    other.setattr(versions, "CALLED", {place: used})
    with pytest.raises(UserError) as refused:
        require_flower()
    assert str(refused.value) == (
        "expected Flower 1.40 or later, and before 1.43, found 1.99.0, with which a study cannot start "
        f"({lacks}); run `make install-sites`."
    )


def test_waits_stay_as_they_are_where_they_cannot_be_shortened(monkeypatch, capsys):
    from flwr.supercore.inflatable import inflatable_utils
    from flwr.superlink.grid import http_grid

    def pull_objects(ids, function):
        raise AssertionError

    monkeypatch.setattr(inflatable_utils, "pull_objects", pull_objects)
    monkeypatch.setattr(http_grid, "pull_objects", pull_objects)
    _messages.shorten_grid()
    assert http_grid.pull_objects is pull_objects
    said = capsys.readouterr().err
    assert "found ids, function; each round takes some seconds longer. requirements-sites.lock names a version" in said


def test_tasks_are_answered_where_flower_does_not_sleep_by_our_clock(monkeypatch):
    answered = []

    def answer(state, relay):
        answered.append(state)
        sys.exit()

    monkeypatch.setattr(node, "LONGEST_S", 0.01)
    monkeypatch.setattr(node, "answer_one", answer)
    with pytest.raises(SystemExit):
        node.answer_tasks("state", Pauses(), None)
    assert answered == ["state"]
