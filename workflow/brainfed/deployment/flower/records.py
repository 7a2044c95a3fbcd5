"""A packet as the content of a Flower message.

Flower sends every record and every array of a message by a request of its own, at 5 to 10 ms of CPU for each of four
hops; an ArrayRecord of 20 tensors costs 40 requests where one value of one record costs one.
"""

from flwr.app import ConfigRecord, RecordDict

from brainfed.federation.apart.packet import BrokenPacketError, Packet

RECORD = "packet"


def to_records(packet: Packet) -> RecordDict:
    """The packet as one value of one record."""
    return RecordDict({RECORD: ConfigRecord({RECORD: packet.to_bytes()})})


def from_records(records: RecordDict) -> Packet:
    """The packet that `to_records` wrote.

    Raises:
        BrokenPacketError: the records are no packet.
    """
    content = records.config_records[RECORD][RECORD] if RECORD in records.config_records else None
    if not isinstance(content, bytes):
        raise BrokenPacketError("expected a packet, found a Flower message without one.")
    return Packet.from_bytes(content)
