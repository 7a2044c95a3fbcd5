"""Sums over sites of which the coordinator sees no part: SecAgg+ (Bell et al. 2020) over the hub.

Flower 1.41 has the protocol for its own strategies (`secaggplus_mod`, `SecAggPlusWorkflow`). Its key agreement, its
encryption of shares and its secret sharing are used; its masks are not (`masks`).

The coordinator is taken to follow the protocol and to be curious. One that invents sites, or keys in their names, is
not held off: sites do not know each other's keys beforehand.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key
from numpy.typing import NDArray

from brainfed.deployment.flower.secure.fixed_point import MOST_SITES, decode
from brainfed.deployment.flower.secure.masks import mask, pair_sign
from brainfed.deployment.flower.secure.replies import PRIVATE_KEYS, SEEDS, Replies, is_private_key_of, is_seed
from brainfed.deployment.flower.secure.site import KEYS, MASKED, SHARES, UNMASK
from brainfed.federation.apart.exchange import ABSENT, REFUSED, SLOWEST
from brainfed.federation.apart.hub import Hub
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SEALED
from brainfed.federation.apart.site_error import LostSitesError
from brainfed.runtime.errors import UserError

ADDENDS: Final = "addends"
"""Kind of the request that a sum asks a site for."""
STEP_S: Final = 30.0
"""Seconds for a site to take up and answer one of the four requests, beside the time that its bytes take."""


@dataclass(frozen=True)
class SecureSum:
    """A sum over sites.

    Attributes:
        tensors: name -> float64, the sum of the sites' tensors; exact to 2^-51 of the bound a site.
        codes: the sites in the sum.
    """

    tensors: Mapping[str, NDArray[np.float64]]
    codes: tuple[int, ...]


class SecureSums:
    """Adds up the numbers that sites hold back; see `federation.apart.coordinator.SecureSums`.

    Args:
        hub: with a `site.Summand` at every site.
        fewest: sites of a sum.
    """

    def __init__(self, hub: Hub, fewest: int) -> None:
        self._hub, self._fewest = hub, fewest

    def __call__(
        self, sealed: Mapping[int, Packet], bounds: Mapping[str, float], needs_all: bool
    ) -> tuple[dict[str, NDArray[Any]], tuple[int, ...]]:
        """Sums by name, and the sites in them.

        Raises:
            LostSitesError: too few sites are there.
            UserError: a site refuses, or its arrays differ in shape.
        """
        asked = {code: Packet(ADDENDS, {"request": request.about["request"]}) for code, request in sealed.items()}
        arrays = next(iter(sealed.values())).about[SEALED]["arrays"]
        size = 8 * sum(prod(shape) for shape, _ in arrays.values())
        fewest = len(asked) if needs_all else self._fewest
        found = secure_sum(self._hub, asked, bounds, STEP_S + size / SLOWEST, fewest)
        return dict(found.tensors), found.codes


def secure_sum(
    hub: Hub, requests: Mapping[int, Packet], bounds: Mapping[str, float], timeout: float, fewest: int = 2
) -> SecureSum:
    """The sum of the tensors that the sites reply, without any site's own.

    Four requests to each site: keys, shares, the masked reply, unmasking. A site that is lost after it sent shares is
    left out of the sum, and its masks are taken off with the others' shares.

    Args:
        hub: with a `site.Summand` at every site.
        requests: site code -> request for its addends; all of one step.
        bounds: name of a reply's tensor -> largest `sealed.bound` of the sites.
        timeout: seconds for each of the four.
        fewest: sites of the sum; more than half of those asked are needed in any case, also to take the masks off.

    Raises:
        LostSitesError: fewer sites are left.
        SiteError: a site's reply cannot be read, or has numbers of other shapes.
        UserError: a site refused, or shares of sites do not fit together.
    """
    if len(requests) > MOST_SITES:
        raise UserError(f"expected at most {MOST_SITES} sites in a secure sum, found {len(requests)}")
    threshold, read = len(requests) // 2 + 1, Replies(hub.sites)
    session = secrets.token_hex(8)

    def ask(packets: Mapping[int, Packet], needed: int) -> dict[int, Packet]:
        came = hub.ask({code: _of(session, packet) for code, packet in packets.items()}, timeout)
        replies = {code: reply for code, reply in came.items() if reply.kind != ABSENT}
        for code, reply in replies.items():
            if reply.kind == REFUSED:
                raise UserError(f"site {hub.sites[code]!r}: {reply.about['sentence']}")
            read.require_kind(code, reply, packets[code].kind)
        if len(replies) < needed:
            raise LostSitesError(set(requests) - set(replies))
        return replies

    needed = max(threshold, fewest)
    begin = {"threshold": threshold, "bounds": dict(bounds)}
    keys = ask({code: _bound_to(request, {**begin, "code": code}) for code, request in requests.items()}, needed)
    public = read.keys(keys)
    shares = ask({code: Packet(SHARES, {"keys": public}) for code in keys}, needed)
    masked = ask({code: Packet(MASKED, {"shares": read.shares_for(code, shares)}) for code in shares}, needed)
    total, shapes = read.masked(masked, set(bounds))
    alive, gone = list(masked), [code for code in shares if code not in masked]
    names = {str(code): name for code, name in hub.sites.items()}
    unmask = Packet(UNMASK, {"alive": alive, "gone": gone, "names": names})
    answers = ask(dict.fromkeys(alive, unmask), threshold)

    for code in alive:
        total = total - mask(read.secret(answers, SEEDS, code, threshold, is_seed), total.size)
    for code in gone:
        fits = is_private_key_of(public[str(code)][0])
        private = bytes_to_private_key(read.secret(answers, PRIVATE_KEYS, code, threshold, fits))
        for other in alive:
            pair = generate_shared_key(private, bytes_to_public_key(public[str(other)][0].encode()))
            total = total - pair_sign(other, code) * mask(pair, total.size)
    tensors: dict[str, NDArray[np.float64]] = {}
    start = 0
    for name, shape in shapes.items():
        tensors[name] = decode(total[start : start + prod(shape)], bounds[name]).reshape(shape)
        start += prod(shape)
    return SecureSum(tensors, tuple(alive))


def _of(session: str, packet: Packet) -> Packet:
    return Packet(packet.kind, {**packet.about, "session": session}, packet.tensors)


def _bound_to(request: Packet, begin: Mapping[str, Any]) -> Packet:
    """A sum begins: with its request, which it keeps to."""
    return Packet(KEYS, {**begin, "kind": request.kind, "about": dict(request.about)})
