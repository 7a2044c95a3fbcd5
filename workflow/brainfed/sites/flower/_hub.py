"""The coordinator's end: packets to the sites and their replies, over Flower's grid."""

import itertools
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from logging import getLogger
from typing import Final

from flwr.app import Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from brainfed.runtime import UserError
from brainfed.sites import INTRODUCE, NOBODY, REFUSED, SLOWEST, BrokenPacketError, Packet, SiteError
from brainfed.sites.flower._messages import Signer, from_records, to_contents

# Which of Flower's nodes is which site, by the name that each gives and the key that it connected with.


@dataclass(frozen=True)
class Connection:
    """A node that is connected.

    Attributes:
        node: Flower's number of it, the same after a restart with the same key.
        since: when it connected; a message from before is lost.
        key: its public key, PEM; empty where the grid does not give it.
    """

    node: int
    since: str
    key: bytes


def connections(grid: Grid) -> dict[int, Connection]:
    """Node -> its connection, for the nodes that Flower holds for connected: heard of in the last 60 s."""
    if hasattr(grid, "get_nodes"):
        return {
            each.node_id: Connection(each.node_id, each.last_activated_at, each.public_key) for each in grid.get_nodes()
        }
    return {node: Connection(node, "", b"") for node in grid.get_node_ids()}


class SiteRegistry:
    """The registry of a study.

    Args:
        sites: code -> name.
        keys: name -> public key, PEM, of the sites whose key is known: a node with this key is the site, whatever name
            it gives.
    """

    def __init__(self, sites: Mapping[int, str], keys: Mapping[str, bytes]) -> None:
        self.sites, self._keys = dict(sites), dict(keys)
        self._owners = {key.strip(): name for name, key in keys.items()}
        self._nodes: dict[int, int] = {}

    def enter(self, connection: Connection, reply: Packet, connected: Collection[int]) -> None:
        """Take down what a node answered to `introduce`.

        A site whose key is known is taken down even if it refused or gave another name: so it can be asked again, and
        its mistake is sent to it alone.

        Raises:
            UserError: of a node whose key is not known: it refused, the name is none of the study's or another site's,
                or two nodes give it.
        """
        owner = self._owners.get(connection.key.strip())
        if owner is None and reply.kind == REFUSED:
            raise UserError(str(reply.about["sentence"]))
        name = reply.about.get("site") if owner is None else owner
        code = self._code_of(name)
        if code is None:
            known_names = ", ".join(self.sites.values())
            raise UserError(f"a hospital calls itself {name!r}: expected one of the study's sites, {known_names}")
        if owner is None and str(name) in self._keys:
            raise UserError(
                f"a hospital calls itself {name!r} but does not hold that site's key; check `study.site` there"
            )
        other = self._nodes.get(code)
        if other not in (None, connection.node) and other in connected:
            raise UserError(f"two hospitals call themselves {name!r}: stop one of them, or correct `study.site` there")
        self._nodes[code] = connection.node

    def enter_by_key(self, connection: Connection) -> int | None:
        """Take down a node that cannot be understood as the site of its key; its code, None of an unknown key."""
        code = self._code_of(self._owners.get(connection.key.strip()))
        if code is not None:
            self._nodes[code] = connection.node
        return code

    def node_of(self, code: int) -> int | None:
        """The node of a site, or None if it has not introduced itself."""
        return self._nodes.get(code)

    def knows(self, node: int) -> bool:
        """Whether a node has introduced itself."""
        return node in self._nodes.values()

    def _code_of(self, name: object) -> int | None:
        return next((code for code, known in self.sites.items() if known == name), None)


# Packets and replies.

SHORTEST_S: Final = 0.03
LONGEST_S: Final = 0.25
"""Between two looks for replies: right after the requests, and after a long time."""
GROWTH: Final = 1.1
ROLL_S: Final = 1.0
"""Between two looks for nodes that came or went, and before a request is sent again to a site that could not answer."""
SITE_S: Final = 0.5
"""Of the coordinator's SuperLink, one process for all sites, for a message and its reply on a busy machine."""

NAMELESS: Final = "a site that has not said its name"
_logger = getLogger(__name__)


@dataclass(frozen=True)
class _InFlight:
    """A message on its way: to whom, and for which site (None: an introduction)."""

    connection: Connection
    code: int | None


class Hub:
    """Passes packets to the sites of a study and collects their replies.

    The requests of one call have one number, so that Flower stores once what all sites are sent. A request is sent
    again, with the same number, when its node reconnected, could not be reached or has no training process yet; a site
    that had answered it gives the same reply again.

    Its arguments are the grid of the ServerApp, sites and keys as of `SiteRegistry`, and who signs the requests.
    """

    def __init__(self, grid: Grid, sites: Mapping[int, str], keys: Mapping[str, bytes], signer: Signer) -> None:
        self.sites = dict(sites)
        self._grid, self._registry, self._signer = grid, SiteRegistry(sites, keys), signer
        self._session, self._count = secrets.token_hex(4), itertools.count(1)
        self._present: dict[int, Connection] = {}
        self._largest = 0

    def ask(self, requests: Mapping[int, Packet], timeout: float) -> dict[int, Packet]:
        """Site code -> reply, of the replies that came in time, in the order of the requests.

        Args:
            requests: site code -> request.
            timeout: seconds to wait for all replies, beside those that packets take on their way; a request that no
                site has taken up by then is dropped.

        Raises:
            SiteError: a reply cannot be read.
            UserError: two nodes are one site, or a node is none.
        """
        number = f"{self._session}-{next(self._count)}"
        numbered = {code: replace(request, number=number) for code, request in requests.items()}
        replies: dict[int, Packet] = {}
        flight: dict[str, _InFlight] = {}
        resting: dict[int, float] = {}
        deadline, pause, roll_call = time.monotonic() + timeout + self._on_the_way(requests), SHORTEST_S, 0.0
        while len(replies) < len(numbered) and (now := time.monotonic()) < deadline:
            if now >= roll_call:
                self._present = connections(self._grid)
                # A message to an earlier connection of a node is lost.
                flight = {
                    number: each
                    for number, each in flight.items()
                    if self._present.get(each.connection.node) == each.connection
                }
                roll_call = now + ROLL_S
            waiting = {code: packet for code, packet in numbered.items() if code not in replies}
            flight |= self._send(waiting, flight, resting, now, deadline - now)
            came = self._collect(flight)
            for each, packet in came:
                if packet is None or packet.kind == NOBODY:
                    resting[each.connection.node] = now + ROLL_S
                elif each.code is None:
                    self._registry.enter(each.connection, packet, self._present)
                elif packet.number == number:
                    replies[each.code] = packet
                    self._largest = max(self._largest, packet.size)
            pause = SHORTEST_S if came else min(pause * GROWTH, LONGEST_S)
            if not came:
                time.sleep(pause)
        return {code: replies[code] for code in numbered if code in replies}

    def _on_the_way(self, requests: Mapping[int, Packet]) -> float:
        """Seconds for requests and replies; a reply is taken to be as large as any before."""
        there = max((request.size for request in requests.values()), default=0)
        return SITE_S * len(requests) + (there + self._largest) / SLOWEST

    def _send(
        self,
        waiting: Mapping[int, Packet],
        flight: Mapping[str, _InFlight],
        resting: Mapping[int, float],
        now: float,
        ttl: float,
    ) -> dict[str, _InFlight]:
        """Send what is to be sent to nodes that have nothing to do; the messages on their way."""
        busy = {each.connection.node for each in flight.values()}
        free = {
            node: connection
            for node, connection in self._present.items()
            if node not in busy and resting.get(node, 0.0) <= now
        }
        parcels = [(_InFlight(free[node], None), Packet(INTRODUCE)) for node in free if not self._registry.knows(node)]
        for code, packet in waiting.items():
            node = self._registry.node_of(code)
            if node in free:
                parcels.append((_InFlight(free[node], code), packet))
        messages = [
            Message(records, dst_node_id=each.connection.node, message_type=MessageType.TRAIN, ttl=ttl, group_id=group)
            for (each, _), (records, group) in zip(parcels, self._signed(parcels), strict=True)
        ]
        numbers = list(self._grid.push_messages(messages)) if messages else []
        return {number: each for number, (each, _) in zip(numbers, parcels, strict=True) if number}

    def _signed(self, parcels: Sequence[tuple[_InFlight, Packet]]) -> list[tuple[RecordDict, str | None]]:
        """Contents and groups of messages; packets that are the same but for their group are one content."""
        contents = to_contents([packet for _, packet in parcels])
        keys: dict[bytes, list[bytes]] = {content: [] for content, _ in contents}
        for (each, _), (content, _) in zip(parcels, contents, strict=True):
            keys[content].append(each.connection.key)
        signed = {content: self._signer.sign(content, receivers) for content, receivers in keys.items()}
        return [(signed[content], group) for content, group in contents]

    def _collect(self, flight: dict[str, _InFlight]) -> list[tuple[_InFlight, Packet | None]]:
        """The replies that have come, taken out of `flight`; None in place of an error of Flower's."""
        if not flight:
            return []
        came: list[tuple[_InFlight, Packet | None]] = []
        for message in self._grid.pull_messages(list(flight)):
            each = flight.pop(message.metadata.reply_to_message_id, None)
            if each is None:
                continue
            if message.has_error():
                name = NAMELESS if each.code is None else f"site {self.sites[each.code]}"
                lost = message.error.code == ErrorCode.NODE_UNAVAILABLE
                reason = "its connection was lost" if lost else message.error.reason
                _logger.warning("%s did not get a message, which is sent again: %s", name, reason)
                came.append((each, None))
            else:
                came.append((each, self._read(each, message.content)))
        return came

    def _read(self, each: _InFlight, content: RecordDict) -> Packet:
        try:
            packet = from_records(content)
            if packet.kind == REFUSED and not isinstance(packet.about.get("sentence"), str):
                raise BrokenPacketError("expected a refusal with its sentence, found none.")
        except BrokenPacketError as error:
            code = self._registry.enter_by_key(each.connection) if each.code is None else each.code
            if code is None:
                raise UserError(f"{NAMELESS}: {error}") from error
            raise SiteError(code, f"site {self.sites[code]!r}: {error}") from error
        return packet
