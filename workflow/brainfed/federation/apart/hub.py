"""The coordinator's way to the institutions."""

from collections.abc import Mapping
from typing import Protocol

from brainfed.federation.apart.packet import Packet


class Hub(Protocol):
    """Passes packets to sites and collects their replies."""

    @property
    def sites(self) -> Mapping[int, str]:
        """Code -> name."""

    def ask(self, requests: Mapping[int, Packet], timeout: float) -> dict[int, Packet]:
        """The replies that came within `timeout` seconds, by code.

        Raises:
            SiteError: a reply cannot be read.
        """
