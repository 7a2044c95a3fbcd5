"""A packet as the content of a Flower message, and how long Flower waits for one.

Flower sends every record and every array of a message by a request of its own, at 5 to 10 ms of CPU for each of four
hops; an ArrayRecord of 20 tensors costs 40 requests where one value of one record costs one. Contents that are the same
cross to the SuperLink once, however many sites they are for. So the one word that differs from site to site, `to`,
goes beside the content, as the group of the message.
"""

import hashlib
import os
import struct
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.superlink.grid import http_grid
from flwr.supernode import start_client_internal

from brainfed.runtime import UserError, borrowed
from brainfed.sites import BrokenPacketError, Packet

RECORD = "packet"
TO: Final = "to"
"""Of an answer's words: the request that it answers, which each site names for itself."""


def to_records(packet: Packet) -> RecordDict:
    """The packet as one value of one record."""
    return RecordDict({RECORD: ConfigRecord({RECORD: packet.to_bytes()})})


def to_contents(packets: Sequence[Packet]) -> list[tuple[bytes, str | None]]:
    """Bytes and groups of messages to sites; packets that are the same but for `to` share their bytes."""
    made: list[tuple[Any, bytes]] = []
    contents: list[tuple[bytes, str | None]] = []
    for packet in packets:
        about = {name: value for name, value in packet.about.items() if name != TO}
        common = Packet(packet.kind, about, packet.tensors, packet.number)
        said = _said(common)
        content = next((content for other, content in made if other == said), None)
        if content is None:
            content = common.to_bytes()
            made.append((said, content))
        contents.append((content, packet.about.get(TO)))
    return contents


def addressed(packet: Packet, message: Message) -> Packet:
    """The packet of a message that the coordinator made from `to_contents`, with the word that went beside it."""
    group = message.metadata.group_id
    return replace(packet, about={**packet.about, TO: group}) if group else packet


def from_records(records: RecordDict) -> Packet:
    """The packet that `to_records` wrote.

    Raises:
        BrokenPacketError: the records are no packet.
    """
    content = records.config_records[RECORD][RECORD] if RECORD in records.config_records else None
    if not isinstance(content, bytes):
        raise BrokenPacketError("expected a packet, found a Flower message without one.")
    return Packet.from_bytes(content)


def _said(packet: Packet) -> tuple[Any, ...]:
    """Equal for packets that say the same, with arrays in the same memory."""
    arrays = [(name, array.__array_interface__) for name, array in packet.tensors.items()]
    return packet.kind, packet.about, packet.number, arrays


# The coordinator's signature on its requests: a site answers nobody else, whoever may use Flower to ask it.
#
# The key is that of the coordinator's certificate, which each site has. A signature holds for the bytes of the request,
# for the sites that it is meant for, and once: a site keeps the time of the last one on its disk. Each site has
# requests that are signed for all. Without this time it could have one answered again by a process that has just
# started: a refusal would end the other site's job, the keys of a secure sum would end the sum under way. It would
# learn no number of a sum, as each has keys of its own.

STAMP: Final = "stamp"
SITES: Final = "sites"
SIGNATURE: Final = "signature"
"""Beside the packet, in its record: nanoseconds since 1970, digests of the sites' keys, and the signature of all."""
OLDEST_S: Final = 600.0
"""How much older than the start of a site's process a request may be: clocks differ."""
CLOCKS_S: Final = 120.0
"""How much later than the start of a site's process the last request can have been: twice what clocks may differ."""
_DIGITS: Final = 20
_LENGTH: Final = hashlib.sha256().digest_size
_METHOD: Final = ec.ECDSA(hashes.SHA256())


class NotOfTheCoordinatorError(UserError):
    """A request that the coordinator did not sign, or not for this site, or that came before."""


class Signer:
    """The coordinator's end, with the private key of its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key, self._last = key, 0

    def sign(self, content: bytes, keys: Collection[bytes]) -> RecordDict:
        """A packet's bytes as the content of a Flower message, the same for all sites that it is meant for.

        Flower stores equal contents once, and carries each further record by requests of its own. The public keys (PEM)
        are those of these sites.
        """
        self._last = max(time.time_ns(), self._last + 1)
        sites = b"".join(sorted(_digest(key) for key in keys))
        signature = self._key.sign(_statement(content, self._last, sites), _METHOD)
        record = ConfigRecord({RECORD: content, STAMP: self._last, SITES: sites, SIGNATURE: signature})
        return RecordDict({RECORD: record})


class Verifier:
    """A site's end: it accepts no request twice.

    Args:
        certificate: of the coordinator, PEM.
        key: the site's own public key, PEM.
        last: file of the time of the last request, for the next process of this site.

    Raises:
        UserError: the certificate has another kind of key, or the file is none of these.
    """

    def __init__(self, certificate: bytes, key: bytes, last: Path) -> None:
        public = x509.load_pem_x509_certificate(certificate).public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey):
            raise UserError("expected a coordinator's certificate with an ECDSA key, found another kind of key")
        self._public, self._own = public, _digest(key)
        now = time.time_ns()
        self._file, kept = _opened(last)
        # A time further ahead is of a clock that has been set since, and of nothing but a refused introduction.
        self._last = max(kept if kept < now + int(CLOCKS_S * 1e9) else 0, now - int(OLDEST_S * 1e9))

    def verified(self, records: RecordDict) -> Packet:
        """The packet of a message.

        Raises:
            NotOfTheCoordinatorError: it is not to be answered.
            BrokenPacketError: the coordinator signed what is no packet.
        """
        record = records.config_records[RECORD] if RECORD in records.config_records else ConfigRecord()
        content, stamp, sites, signature = (record.get(name) for name in (RECORD, STAMP, SITES, SIGNATURE))
        if not (
            isinstance(content, bytes)
            and isinstance(stamp, int)
            and isinstance(sites, bytes)
            and isinstance(signature, bytes)
        ):
            raise NotOfTheCoordinatorError(
                "expected a request that the coordinator signed, found one without signature"
            )
        try:
            self._public.verify(signature, _statement(content, stamp, sites), _METHOD)
        except (InvalidSignature, struct.error) as error:
            raise NotOfTheCoordinatorError(
                "expected the signature of the coordinator's certificate, found another; if the coordinator has made a "
                "new certificate, put it in the place of the old one"
            ) from error
        if self._own not in (sites[start : start + _LENGTH] for start in range(0, len(sites), _LENGTH)):
            raise NotOfTheCoordinatorError("expected a request for this site, found one for others")
        if stamp <= self._last:
            raise NotOfTheCoordinatorError(
                "expected a request later than those before it, found an old one; if it is the first, set the clocks "
                "of site and coordinator by NTP"
            )
        os.pwrite(self._file, f"{stamp:0{_DIGITS}d}".encode(), 0)
        os.fsync(self._file)
        self._last = stamp
        return from_records(records)


def _opened(path: Path) -> tuple[int, int]:
    """The file, which only its user can read, and the time in it; 0: none yet."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    content = os.pread(file, _DIGITS + 1, 0)
    if content and not (content.isdigit() and len(content) == _DIGITS):
        os.close(file)
        raise UserError(
            f"{path}: expected the time of the coordinator's last request, {_DIGITS} digits, found something else; "
            "remove the file, and wait ten minutes before you start again."
        )
    return file, int(content or 0)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key.strip()).digest()


def _statement(content: bytes, stamp: int, sites: bytes) -> bytes:
    """What is signed; no two requests have the same, for `sites` alone has no fixed length."""
    return b"brainfed request\n" + struct.pack(">Q", stamp) + sites + hashlib.sha256(content).digest()


# Flower's waits, shortened: the overrides of Flower's code, all of them here but the one of `program`.
#
# Flower 1.42 waits for fixed times that no option changes: its SuperNode looks for a message every 3 s and for a reply
# every 0.5 s, and who asks for a part of a message that is still being sent asks again after 1, 2, 4, ... 10 s. A round
# then takes about 6 s however small it is. Where a later version waits elsewhere, these have no effect, and rounds are
# slower.

SHORTEST_S: Final = 0.05
LONGEST_S: Final = 2.0
"""Between two looks for a message: right after one, and after a long time without."""
SHARE: Final = 0.1
"""Of the last wait for a message: the first pause of the next wait. A look costs the coordinator 5 to 10 ms of its one
core, and 50 sites that wait for each other look at the same time."""
GROWTH: Final = 1.15
NO_MESSAGE_S: Final = 1.0
"""The SuperNode's sleeps above this are for want of a message, those below for want of a reply."""


class Pauses:
    """The clock of a SuperNode's loop: it looks often after a message, seldom in a long silence.

    Rounds are alike: one that came late makes the next pauses longer, so that a wait has some ten looks, however long.

    Attributes:
        arrived: set when a message has arrived.
        answered: to be set when its reply is there.
    """

    def __init__(self) -> None:
        self.arrived, self.answered = threading.Event(), threading.Event()
        self._idle, self._waited = SHORTEST_S, 0.0
        self._has_message = False

    def sleep(self, seconds: float) -> None:
        """Take the place of `time.sleep`: wait for a reply, or for the next look for a message."""
        if seconds < NO_MESSAGE_S:
            if not self._has_message:
                self._idle = min(max(SHARE * self._waited, SHORTEST_S), LONGEST_S)
            self._has_message, self._waited = True, 0.0
            self.arrived.set()
            self.answered.wait(seconds)
            self.answered.clear()
        else:
            self._has_message = False
            time.sleep(self._idle)
            self._waited += self._idle
            self._idle = min(self._idle * GROWTH, LONGEST_S)


def shorten_node() -> Pauses:
    """Shorten the waits of this process's SuperNode; the clock that it sleeps by."""
    pauses = Pauses()
    vars(start_client_internal)["time"] = pauses
    _ask_sooner(start_client_internal)
    return pauses


def shorten_grid() -> None:
    """Shorten the waits of this process's grid."""
    _ask_sooner(http_grid)


def _ask_sooner(module: ModuleType) -> None:
    place = "flwr.supercore.inflatable.inflatable_utils:pull_objects"
    limits = ("max_concurrent_pulls", "max_time", "max_tries_per_object", "initial_backoff", "backoff_cap")
    owner = borrowed(place, ("object_ids", "pull_object_fn", *limits), "each round takes some seconds longer")
    if owner is not None:
        vars(module)["pull_objects"] = partial(owner.pull_objects, initial_backoff=0.05, backoff_cap=1.0)
