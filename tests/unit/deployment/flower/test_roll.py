"""Which node is which site."""

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.roll import Connection, Roll
from brainfed.federation.apart.exchange import REFUSED
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError


def introduced(name: str, key: bytes, node: int = 1) -> tuple[Connection, Packet]:
    return Connection(node, "now", key), Packet("site", {"site": name})


def test_a_node_is_the_site_of_its_key_whatever_it_says():
    roll = Roll({0: "north", 1: "south"}, {"north": b"key-n", "south": b"key-s"})
    roll.enter(*introduced("south", b"key-n\n"), connected=[1, 2])
    assert (roll.node_of(0), roll.node_of(1)) == (1, None)
    roll.enter(Connection(2, "now", b"key-s"), Packet(REFUSED, {"sentence": "no table"}), connected=[1, 2])
    assert roll.node_of(1) == 2
    with pytest.raises(UserError, match="two hospitals call themselves 'north'"):
        roll.enter(*introduced("north", b"key-n", 3), connected=[1, 2, 3])
    roll.enter(*introduced("north", b"key-n", 3), connected=[2, 3])
    assert roll.node_of(0) == 3


def test_a_node_without_a_known_key_cannot_take_a_name_that_is_unknown_anothers_or_taken():
    roll = Roll({0: "north", 1: "south"}, {"south": b"key-s"})
    roll.enter(*introduced("north", b""), connected=[1, 2])
    assert roll.node_of(0) == 1
    with pytest.raises(UserError, match="calls itself 'west': expected one of the study's sites, north, south"):
        roll.enter(*introduced("west", b"", 2), connected=[1, 2])
    with pytest.raises(UserError, match="does not hold that site's key"):
        roll.enter(*introduced("south", b"key-n", 2), connected=[1, 2])
    with pytest.raises(UserError, match="two hospitals call themselves 'north'"):
        roll.enter(*introduced("north", b"", 2), connected=[1, 2])
    with pytest.raises(UserError, match="no table"):
        roll.enter(Connection(2, "now", b""), Packet(REFUSED, {"sentence": "no table"}), connected=[1, 2])
