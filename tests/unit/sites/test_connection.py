"""The certificate that a site has beside the one that the coordinator shows."""

import socket
import ssl
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.configuration import StudySettings
from brainfed.runtime import UserError
from brainfed.sites import REFUSED, Packet, SiteClient
from brainfed.sites.flower import Connection, FlowerFolder, Outward, make_certificate
from brainfed.sites.flower import _connection as connection
from brainfed.sites.flower._connection import QUIET_S, why_unreached
from brainfed.sites.flower._processes import NotReadyError
from support.sites.free_port import free_port


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
    assert why_unreached(tmp_path / "shown.pem", f"127.0.0.1:{coordinator}") == ""
    with pytest.raises(UserError, match=r"certificate\.pem does not fit .* ask the coordinator for its `federation/"):
        why_unreached(foreign, f"127.0.0.1:{coordinator}")


def test_a_certificate_for_another_name_does_not_fit(coordinator, tmp_path):
    with pytest.raises(UserError, match=r"does not fit .*127\.0\.0\.2"):
        why_unreached(tmp_path / "shown.pem", f"127.0.0.2:{coordinator}")


def test_a_coordinator_who_does_not_answer_is_named_with_the_cause(foreign):
    assert "found that it does not (Connection refused)" in why_unreached(foreign, f"127.0.0.1:{free_port()}")
    assert "ask whether `brainfed coordinate` runs there" in why_unreached(foreign, "no-such-host.invalid:9092")


class StopError(Exception):
    pass


def give_up_after(tries, monkeypatch, error=None):
    """End the wait for a coordinator after so many tries; with `error` no SuperNode starts. The starts."""
    slept, started = [], []

    def start(*given):
        started.append(given)
        raise error

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == tries:
            raise StopError

    if error is not None:
        monkeypatch.setattr(connection, "start_supernode", start)
    monkeypatch.setattr(connection.time, "sleep", sleep)
    return started


def connect(tmp_path, port, client):
    study = StudySettings(("oslo", "rome"), "oslo", f"127.0.0.1:{port}")
    Connection(
        [], FlowerFolder(tmp_path), study, tmp_path / "socket", Outward(client, 2, lambda packet: None), client
    )()


def test_a_site_with_a_foreign_certificate_says_so_once_while_it_waits(
    coordinator, foreign, tmp_path, monkeypatch, capsys
):
    give_up_after(3, monkeypatch)
    with pytest.raises(StopError):
        connect(tmp_path, coordinator, SiteClient(dict, lambda request: None, "secret"))
    said = capsys.readouterr().err
    assert said.count(f"waits for the coordinator at 127.0.0.1:{coordinator}: {foreign} does not fit") == 1


def test_a_site_says_at_once_that_nobody_answers_and_tries_all_the_same(foreign, tmp_path, monkeypatch, capsys):
    tried = give_up_after(3, monkeypatch, NotReadyError("SuperNode of oslo is not ready after 60 s"))
    with pytest.raises(StopError):
        connect(tmp_path, free_port(), SiteClient(dict, lambda request: None, "secret"))
    assert len(tried) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert "found that it does not (Connection refused)" in said and "is not ready" not in said


def test_a_refusal_that_comes_through_a_proxy_is_said_once(foreign, tmp_path, monkeypatch, capsys):
    """No coordinator answers at the address itself, as there is a proxy on the way."""
    give_up_after(4, monkeypatch, UserError("the coordinator refuses oslo: its key is none of the study's"))
    with pytest.raises(StopError):
        connect(tmp_path, free_port(), SiteClient(dict, lambda request: None, "secret"))
    unreached, refused = capsys.readouterr().err.splitlines()
    assert "found that it does not" in unreached and "the coordinator refuses oslo" in refused


def test_a_site_looks_for_the_coordinator_before_it_prepares_its_data(coordinator, foreign, tmp_path, capsys):
    socket, client = tmp_path / "socket", SiteClient(dict, lambda request: None, "secret")

    def looked(port):
        study = StudySettings(("oslo", "rome"), "oslo", f"127.0.0.1:{port}")
        Connection([], FlowerFolder(tmp_path), study, socket, Outward(client, 2, lambda packet: None), client).look()
        return capsys.readouterr().err

    closed = free_port()
    assert looked(closed).startswith(f"the coordinator at 127.0.0.1:{closed} is not reached yet: expected it to answer")
    assert "does not fit the certificate that is shown there" in looked(coordinator)
    foreign.write_bytes((tmp_path / "shown.pem").read_bytes())
    assert looked(coordinator) == ""
    foreign.unlink()
    assert "expected the coordinator's certificate, found none that can be read" in looked(coordinator)


def test_a_site_says_once_that_the_coordinator_asks_nothing_and_that_it_is_back(tmp_path, capsys):
    now, client = [0.0], SiteClient(dict, lambda request: None, "secret")
    outward = Outward(client, 2, lambda packet: None, lambda: now[0])
    node = SimpleNamespace(process=SimpleNamespace(poll=lambda: None))
    study = StudySettings(("oslo", "rome"), "oslo", "127.0.0.1:9092")
    watch = Connection([node], FlowerFolder(tmp_path), study, tmp_path / "socket", outward, client)
    said = []
    for now[0] in (1.0, QUIET_S + 1, QUIET_S + 2):
        watch()
        said.append(capsys.readouterr().err)
    outward.connected()
    watch()
    assert said == ["", "has heard nothing of the coordinator for a while; goes on when it is heard again\n", ""]
    assert capsys.readouterr().err == "hears the coordinator again\n"


def test_a_connection_that_is_closed_at_once_is_silence(foreign):
    """A firewall or a proxy accepts it, and nobody is behind."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True)
        thread.start()
        assert "found that it does not (" in why_unreached(foreign, f"127.0.0.1:{listener.getsockname()[1]}")
        thread.join(5)


def test_a_program_that_speaks_no_tls_is_not_taken_for_silence(foreign):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            plain, _ = listener.accept()
            with plain:
                plain.sendall(b"220 mail.example.org\r\n" * 20)
                plain.recv(4096)

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        assert "a program that does not speak TLS" in why_unreached(foreign, f"127.0.0.1:{listener.getsockname()[1]}")
        thread.join(5)


def test_a_site_says_when_it_is_connected(coordinator, tmp_path, monkeypatch, capsys):
    class Process:
        def poll(self):
            return None

    class Node:
        process = Process()

    (tmp_path / "certificate.pem").write_bytes((tmp_path / "shown.pem").read_bytes())
    monkeypatch.setattr(connection, "start_supernode", lambda *given: Node())
    connect(tmp_path, coordinator, SiteClient(dict, lambda request: None, "secret"))
    assert capsys.readouterr().err == f"connected to the coordinator at 127.0.0.1:{coordinator}\n"


def test_a_site_that_is_refused_connects_no_more(tmp_path):
    client = SiteClient(dict, lambda request: None, "secret")
    client.of_coordinator(Packet(REFUSED, {"sentence": "set both by NTP."}))
    with pytest.raises(UserError, match=r"^set both by NTP\.$"):
        connect(tmp_path, 1, client)
