"""A packet as bytes, and as the content of a Flower message."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.records import from_records, to_records
from brainfed.federation.apart.packet import BrokenPacketError, Packet
from support.sites.flower_sites import tensors


def test_a_packet_survives_both_ways():
    packet = Packet("kind", {"list": [1, None]}, tensors(), "a-1")
    for back in (Packet.from_bytes(packet.to_bytes()), from_records(to_records(packet))):
        assert (back.kind, back.about, back.number) == ("kind", {"list": [1, None]}, "a-1")
        assert list(back.tensors) == list(packet.tensors)
        assert all(np.array_equal(back.tensors[name], value) for name, value in packet.tensors.items())


def test_bytes_that_are_no_packet_are_refused():
    with pytest.raises(BrokenPacketError, match="found 3 bytes"):
        Packet.from_bytes(b"abc")
