"""The way of an institution's process to the coordinator."""

from typing import Final, Protocol

from brainfed.federation.apart.packet import Packet

OPEN, REPLY, TOTAL, LARGEST, LEAVE = "open", "reply", "total", "largest", "leave"
"""Kinds of requests: a strategy is needed, an institution has trained, numbers to add up, numbers to compare, and the
end of a process."""

ANSWER, REFUSED = "answer", "refused"
"""Kinds of answers; a refusal has the sentence in `about`."""

TENSOR, PUBLISHED = "tensor/", "published/"
"""Prefixes of the tensors of an answer: of the strategy's message, and of its result."""

INTRODUCE, NEXT, WORKING, ABSENT, NOBODY = "introduce", "next", "working", "absent", "nobody"
"""Kinds between the coordinator and a site's desk: who are you; what is your next request; none yet; the site has
another request or sum now; no desk is open, ask again."""

HELD = "held"
"""Of `next`: the name of the request that the coordinator has; it need not cross again."""

SLOWEST: Final = 1e5
"""Bytes a second of the slowest line that is waited for."""


class Exchange(Protocol):
    """Carries requests of one institution."""

    def ask(self, request: Packet) -> Packet:
        """The coordinator's answer, which comes when all institutions have asked the same."""
