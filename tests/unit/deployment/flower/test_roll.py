"""Which node is which site."""

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.roll import Connection, Roll
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError


def introduced(name: str, key: bytes, node: int = 1) -> tuple[Connection, Packet]:
    return Connection(node, "now", key), Packet("site", {"site": name})


def test_a_node_cannot_take_a_name_that_is_unknown_anothers_or_taken():
    roll = Roll({0: "north", 1: "south"}, {"north": b"key-n", "south": b"key-s"})
    roll.enter(*introduced("north", b"key-n"), connected=[1, 2])
    assert roll.node_of(0) == 1
    with pytest.raises(UserError, match="calls itself 'west': expected one of the study's sites, north, south"):
        roll.enter(*introduced("west", b"key-n", 2), connected=[1, 2])
    with pytest.raises(UserError, match="does not hold that site's key"):
        roll.enter(*introduced("south", b"key-n", 2), connected=[1, 2])
    with pytest.raises(UserError, match="two hospitals call themselves 'north'"):
        roll.enter(*introduced("north", b"key-n", 2), connected=[1, 2])
    roll.enter(*introduced("north", b"key-n", 2), connected=[2])
    assert roll.node_of(0) == 2


def test_a_site_that_refuses_before_it_says_its_name_is_known_by_its_key():
    roll = Roll({0: "north"}, {"north": b"key-n"})
    with pytest.raises(UserError, match="site 'north': its disk is full"):
        roll.enter(Connection(1, "now", b"key-n"), Packet("refused", {"sentence": "its disk is full"}), connected=[1])
