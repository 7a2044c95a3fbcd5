"""Which of Flower's nodes is which site, by the name that each gives and the key that it connected with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flwr.serverapp import Grid

from brainfed.federation.apart.exchange import REFUSED
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError


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


class Roll:
    """The roll of a study.

    Args:
        sites: code -> name.
        keys: name -> public key, PEM, of the sites whose key is known: a node with this key is the site, whatever name
            it gives.
    """

    def __init__(self, sites: Mapping[int, str], keys: Mapping[str, bytes] | None = None) -> None:
        self.sites, self._keys = dict(sites), dict(keys or {})
        self._owners = {key.strip(): name for name, key in self._keys.items()}
        self._nodes: dict[int, int] = {}

    def enter(self, connection: Connection, reply: Packet, connected: Collection[int]) -> None:
        """Take down what a node answered to `introduce`.

        A site whose key is known is taken down even if it refused or gave another name: so it can be asked again, and
        its mistake is sent to it alone.

        Args:
            connection: of the node.
            reply: a packet whose `about` has the name under `site`.
            connected: all nodes that are connected now.

        Raises:
            UserError: of a node whose key is not known: it refused, the name is none of the study's or another site's,
                or two nodes give it.
        """
        owner = self._owners.get(connection.key.strip())
        if owner is None and reply.kind == REFUSED:
            raise UserError(str(reply.about["sentence"]))
        name = reply.about.get("site") if owner is None else owner
        codes = [code for code, known in self.sites.items() if known == name]
        if not codes:
            known_names = ", ".join(self.sites.values())
            raise UserError(f"a hospital calls itself {name!r}: expected one of the study's sites, {known_names}")
        if owner is None and str(name) in self._keys:
            raise UserError(
                f"a hospital calls itself {name!r} but does not hold that site's key; check `study.site` there"
            )
        other = self._nodes.get(codes[0])
        if other not in (None, connection.node) and other in connected:
            raise UserError(f"two hospitals call themselves {name!r}: stop one of them, or correct `study.site` there")
        self._nodes[codes[0]] = connection.node

    def enter_by_key(self, connection: Connection) -> int | None:
        """Take down a node that cannot be understood as the site of its key; its code, None of an unknown key."""
        owner = self._owners.get(connection.key.strip())
        code = next((code for code, known in self.sites.items() if known == owner), None)
        if code is not None:
            self._nodes[code] = connection.node
        return code

    def name_by_key(self, connection: Connection) -> str:
        """The site whose key a node has, before it has said its name."""
        return self._owners.get(connection.key.strip(), "that has not said its name")

    def node_of(self, code: int) -> int | None:
        """The node of a site, or None if it has not introduced itself."""
        return self._nodes.get(code)

    def knows(self, node: int) -> bool:
        """Whether a node has introduced itself."""
        return node in self._nodes.values()
