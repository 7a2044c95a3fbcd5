"""A packet as the content of a Flower message.

Flower sends every record and every array of a message by a request of its own, at 5 to 10 ms of CPU for each of four
hops; an ArrayRecord of 20 tensors costs 40 requests where one value of one record costs one. Contents that are the same
cross to the SuperLink once, however many sites they are for. So the one word that differs from site to site, `to`,
goes beside the content, as the group of the message.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from flwr.app import ConfigRecord, Message, RecordDict

from brainfed.federation.apart.packet import BrokenPacketError, Packet

RECORD = "packet"
TO: Final = "to"
"""Of an answer's words: the request that it answers, which each site names for itself."""


def to_records(packet: Packet) -> RecordDict:
    """The packet as one value of one record."""
    return RecordDict({RECORD: ConfigRecord({RECORD: packet.to_bytes()})})


def to_contents(packets: Sequence[Packet]) -> list[tuple[bytes, str | None]]:
    """Bytes and groups of messages to sites; packets that are the same but for `to` share their bytes."""
    made: list[tuple[Any, bytes]] = []
    found: list[tuple[bytes, str | None]] = []
    for packet in packets:
        about = {name: value for name, value in packet.about.items() if name != TO}
        common = Packet(packet.kind, about, packet.tensors, packet.number)
        said = _said(common)
        content = next((content for other, content in made if other == said), None)
        if content is None:
            content = common.to_bytes()
            made.append((said, content))
        found.append((content, packet.about.get(TO)))
    return found


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
