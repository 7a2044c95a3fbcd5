"""The certificate that a site has beside the one that the coordinator shows."""

import socket
import ssl
import threading

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.attendance import connection
from brainfed.deployment.attendance.connection import Connection, unreached_for
from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.certificates import make_certificate
from brainfed.deployment.flower.folder import FlowerFolder
from brainfed.deployment.flower.outward import Outward
from brainfed.deployment.flower.processes import free_port
from brainfed.federation.apart.exchange import REFUSED
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.study_settings import StudySettings
from brainfed.runtime.errors import UserError


@pytest.fixture
def coordinator(tmp_path):
    """The port of one who shows `shown.pem` to all who ask."""
    make_certificate(tmp_path / "shown.pem", tmp_path / "key.pem", ["127.0.0.1"])
    identity = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    identity.load_cert_chain(tmp_path / "shown.pem", tmp_path / "key.pem")
    listener = socket.create_server(("", 0))

    def show():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with plain:
                try:
                    identity.wrap_socket(plain, server_side=True).close()
                except OSError:
                    continue

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


@pytest.fixture
def foreign(tmp_path):
    make_certificate(tmp_path / "certificate.pem", tmp_path / "other.pem", ["127.0.0.1"])
    return tmp_path / "certificate.pem"


def test_a_foreign_certificate_does_not_fit_and_the_coordinators_does(coordinator, foreign, tmp_path):
    assert unreached_for(tmp_path / "shown.pem", f"127.0.0.1:{coordinator}") == ""
    with pytest.raises(UserError, match=r"certificate\.pem does not fit .* ask the coordinator for its `federation/"):
        unreached_for(foreign, f"127.0.0.1:{coordinator}")


def test_a_certificate_for_another_name_does_not_fit(coordinator, tmp_path):
    with pytest.raises(UserError, match=r"does not fit .*127\.0\.0\.2"):
        unreached_for(tmp_path / "shown.pem", f"127.0.0.2:{coordinator}")


def test_a_coordinator_who_does_not_answer_is_named_with_the_cause(foreign):
    assert "found that it does not (Connection refused)" in unreached_for(foreign, f"127.0.0.1:{free_port()}")
    assert "ask whether `brainfed coordinate` runs there" in unreached_for(foreign, "no-such-host.invalid:9092")


class StopError(Exception):
    pass


def connect(tmp_path, port, desk):
    study = StudySettings(("oslo", "rome"), "oslo", f"127.0.0.1:{port}")
    Connection([], FlowerFolder(tmp_path), study, tmp_path / "socket", Outward(desk, 2, lambda packet: None), desk)()


def test_a_site_with_a_foreign_certificate_says_so_once_while_it_waits(
    coordinator, foreign, tmp_path, monkeypatch, capsys
):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            raise StopError

    monkeypatch.setattr(connection.time, "sleep", sleep)
    with pytest.raises(StopError):
        connect(tmp_path, coordinator, Desk(dict, lambda request: None, "secret"))
    said = capsys.readouterr().err
    assert said.count(f"waits for the coordinator at 127.0.0.1:{coordinator}: {foreign} does not fit") == 1


def test_a_site_says_at_once_that_nobody_answers_and_tries_all_the_same(foreign, tmp_path, monkeypatch, capsys):
    tried = []

    def start(*given):
        tried.append(given)
        raise UserError("SuperNode of oslo is not ready after 60 s")

    def sleep(seconds):
        if len(tried) == 3:
            raise StopError

    monkeypatch.setattr(connection, "start_supernode", start)
    monkeypatch.setattr(connection.time, "sleep", sleep)
    with pytest.raises(StopError):
        connect(tmp_path, free_port(), Desk(dict, lambda request: None, "secret"))
    (said,) = capsys.readouterr().err.splitlines()
    assert "found that it does not (Connection refused)" in said and "is not ready" not in said


def test_a_site_looks_for_the_coordinator_before_it_prepares_and_repeats_nothing(
    coordinator, foreign, tmp_path, monkeypatch, capsys
):
    def starting(*given):
        raise StopError

    monkeypatch.setattr(connection, "start_supernode", starting)
    socket, desk = tmp_path / "socket", Desk(dict, lambda request: None, "secret")
    for port, words in ((free_port(), "found that it does not (Connection refused)"), (coordinator, "does not fit")):
        study = StudySettings(("oslo", "rome"), "oslo", f"127.0.0.1:{port}")
        connect = Connection([], FlowerFolder(tmp_path), study, socket, Outward(desk, 2, lambda packet: None), desk)
        connect.look()
        connect.look()
        assert capsys.readouterr().err.count(words) == 1
    foreign.write_bytes((tmp_path / "shown.pem").read_bytes())
    connect.look()
    assert capsys.readouterr().err == ""


def test_a_site_says_when_it_is_connected(coordinator, tmp_path, monkeypatch, capsys):
    class Process:
        def poll(self):
            return None

    class Node:
        process = Process()

    (tmp_path / "certificate.pem").write_bytes((tmp_path / "shown.pem").read_bytes())
    monkeypatch.setattr(connection, "start_supernode", lambda *given: Node())
    connect(tmp_path, coordinator, Desk(dict, lambda request: None, "secret"))
    assert capsys.readouterr().err == f"connected to the coordinator at 127.0.0.1:{coordinator}\n"


def test_a_site_that_is_refused_connects_no_more(tmp_path):
    desk = Desk(dict, lambda request: None, "secret")
    desk.of_coordinator(Packet(REFUSED, {"sentence": "set both by NTP."}))
    with pytest.raises(UserError, match=r"^set both by NTP\.$"):
        connect(tmp_path, 1, desk)
