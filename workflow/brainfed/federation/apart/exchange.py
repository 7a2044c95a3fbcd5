"""The way of an institution's process to the coordinator."""

from typing import Protocol

from brainfed.federation.apart.packet import Packet

OPEN, REPLY, TOTAL, LARGEST, LEAVE = "open", "reply", "total", "largest", "leave"
"""Kinds of requests: a strategy is needed, an institution has trained, numbers to add up, numbers to compare, and the
end of a process."""

ANSWER, REFUSED = "answer", "refused"
"""Kinds of answers; a refusal has the sentence in `about`."""


class Exchange(Protocol):
    """Carries requests of one institution."""

    def ask(self, request: Packet) -> Packet:
        """The coordinator's answer, which comes when all institutions have asked the same."""
