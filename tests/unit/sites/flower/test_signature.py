"""A site answers a request that the coordinator signed for it, once."""

import time

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord, RecordDict

from brainfed.runtime import UserError
from brainfed.sites import ABSENT, Packet
from brainfed.sites.flower import make_certificate, make_key_pair
from brainfed.sites.flower._certificates import private_key, public_pem
from brainfed.sites.flower._messages import RECORD, NotOfTheCoordinatorError, Signer, Verifier, from_records, to_records
from brainfed.sites.flower.node import Relay
from support.sites.flower_strangers import request_to

PACKET = Packet("go", {"step": 1}, number="a-1")
CONTENT = PACKET.to_bytes()


class Ends:
    """A coordinator, and the keys of two sites."""

    def __init__(self, folder):
        make_certificate(folder / "certificate", folder / "key", ["hub"])
        for site in ("north", "south"):
            make_key_pair(folder / site, folder / f"{site}.pub")
        self.certificate = (folder / "certificate").read_bytes()
        self.north, self.south = public_pem(folder / "north.pub"), public_pem(folder / "south.pub")
        self.last = folder / "last-request-north"
        self.key = private_key(folder / "key")
        self.signer = Signer(self.key)

    def verifier(self):
        """A process of the northern site that has just started."""
        return Verifier(self.certificate, self.north, self.last)


@pytest.fixture
def ends(tmp_path):
    return Ends(tmp_path)


def test_all_sites_that_are_meant_can_read_one_content(ends, tmp_path):
    records = ends.signer.sign(CONTENT, [ends.north, ends.south])
    for number, key in enumerate((ends.north, ends.south)):
        assert Verifier(ends.certificate, key, tmp_path / f"last-{number}").verified(records).about == {"step": 1}


def test_each_request_is_accepted_once_and_in_order(ends):
    first, second = (ends.signer.sign(CONTENT, [ends.north]) for _ in range(2))
    verifier = ends.verifier()
    verifier.verified(second)
    for old in (first, second):
        with pytest.raises(NotOfTheCoordinatorError, match="found an old one"):
            verifier.verified(old)


def test_a_process_that_starts_anew_accepts_no_request_of_the_one_before(ends):
    """It was recorded seconds ago, and the coordinator goes on."""
    records, other = (ends.signer.sign(CONTENT, [ends.north]) for _ in range(2))
    ends.verifier().verified(records)
    again = ends.verifier()
    with pytest.raises(NotOfTheCoordinatorError, match="found an old one"):
        again.verified(records)
    assert again.verified(other).about == {"step": 1}


def test_what_is_refused_is_no_last_request(ends):
    first, later = (ends.signer.sign(CONTENT, [key]) for key in (ends.north, ends.south))
    with pytest.raises(NotOfTheCoordinatorError):
        ends.verifier().verified(later)
    ends.verifier().verified(first)


def test_a_coordinator_whose_clock_was_hours_ahead_is_heard_once_it_is_set(ends, monkeypatch):
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 7200 * 10**9)
    ahead = ends.signer.sign(CONTENT, [ends.north])
    monkeypatch.setattr(time, "time_ns", real)
    ends.verifier().verified(ahead)
    restarted = Signer(ends.key)
    assert ends.verifier().verified(restarted.sign(CONTENT, [ends.north])).about == {"step": 1}


def test_the_file_of_the_last_request_is_the_users_alone_and_is_named_when_it_is_another(ends):
    ends.verifier()
    assert ends.last.stat().st_mode & 0o777 == 0o600
    ends.last.write_text("yesterday")
    with pytest.raises(UserError, match="last-request-north: expected the time of the coordinator's last request"):
        ends.verifier()


def test_a_process_that_starts_anew_accepts_no_request_of_long_ago(ends, monkeypatch):
    now = time.time_ns()
    records = ends.signer.sign(CONTENT, [ends.north])
    monkeypatch.setattr(time, "time_ns", lambda: now + 3600 * 10**9)
    with pytest.raises(NotOfTheCoordinatorError, match="found an old one"):
        ends.verifier().verified(records)


def test_a_request_for_another_site_is_refused(ends):
    with pytest.raises(NotOfTheCoordinatorError, match="found one for others"):
        ends.verifier().verified(ends.signer.sign(CONTENT, [ends.south]))


@pytest.mark.parametrize("records", [to_records(PACKET), RecordDict()], ids=["unsigned", "empty"])
def test_a_request_without_signature_is_refused(ends, records):
    with pytest.raises(NotOfTheCoordinatorError, match="without signature"):
        ends.verifier().verified(records)


def test_a_signature_of_another_key_is_refused(ends):
    other = Signer(ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(NotOfTheCoordinatorError, match="found another"):
        ends.verifier().verified(other.sign(CONTENT, [ends.north]))


@pytest.mark.parametrize(
    "change",
    [
        {RECORD: Packet("other").to_bytes()},
        {"stamp": time.time_ns() + 10**12},
        {"stamp": -1},
        {"sites": b""},
        {"signature": b"none"},
    ],
)
def test_nothing_of_a_signed_request_can_be_changed(ends, change):
    signed = ends.signer.sign(CONTENT, [ends.north, ends.south]).config_records[RECORD]
    with pytest.raises(NotOfTheCoordinatorError, match="found another"):
        ends.verifier().verified(RecordDict({RECORD: ConfigRecord({**signed, **change})}))


def test_the_training_process_hears_of_signed_requests_alone(ends, tmp_path, monkeypatch):
    heard = []

    def hear(socket, request, patience):
        heard.append(request.kind)
        return Packet(ABSENT)

    monkeypatch.setattr("brainfed.sites.flower.node.ask_here", hear)
    relay = Relay(ends.verifier(), tmp_path / "socket")

    with pytest.raises(NotOfTheCoordinatorError):
        relay(request_to(2, to_records(PACKET)))
    assert heard == []
    relay(request_to(2, ends.signer.sign(CONTENT, [ends.north])))
    assert heard == ["go"]


def test_a_signed_request_is_a_packet_as_any_other(ends):
    assert from_records(ends.signer.sign(CONTENT, [ends.north])).number == "a-1"
