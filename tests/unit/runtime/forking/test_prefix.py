"""The command in front of a job's command."""

import os

import pytest

from brainfed.runtime.errors import UserError
from brainfed.runtime.forking import client
from brainfed.runtime.forking.prefix import forking_prefix


def test_a_run_has_a_forking_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client.VARIABLE, "")
    assert forking_prefix().endswith("/client.py ")
    assert client.owner_of(os.environ[client.VARIABLE]) == str(os.getpid())


def test_an_outer_run_may_share_its_own_while_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kept in ((f"{os.getppid()}-outer", True), ("999999999-gone", False)):
        monkeypatch.setenv(client.VARIABLE, name)
        assert forking_prefix()
        assert (os.environ[client.VARIABLE] == name) == kept


def test_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client.VARIABLE, "off")
    assert forking_prefix() == ""


@pytest.mark.parametrize("value", ["0", "no", "OFF", "1", "self"])
def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(client.VARIABLE, value)
    with pytest.raises(UserError, match="BRAINFED_FORKS: expected `off`, or no value, found"):
        forking_prefix()


def test_jobs_start_by_themselves_where_python_has_no_descriptors_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client.VARIABLE, "")
    monkeypatch.delattr(os, "pidfd_open")
    assert forking_prefix() == ""
