"""Sums over sites of which the coordinator sees no part: SecAgg+ (Bell et al. 2020) over the hub.

Flower 1.41 has the protocol for its own strategies (`secaggplus_mod`, `SecAggPlusWorkflow`). Its key agreement, its
encryption of shares and its secret sharing are used; its masks are not (`masks`).

The coordinator is taken to follow the protocol and to be curious. One that invents sites, or keys in their names, is
not held off: sites do not know each other's keys beforehand.
"""

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key
from numpy.typing import NDArray

from brainfed.deployment.flower.hub import Hub
from brainfed.deployment.flower.secure.fixed_point import MOST_SITES, decode
from brainfed.deployment.flower.secure.masks import mask, pair_sign
from brainfed.deployment.flower.secure.site import KEYS, MASKED, SHARES, UNMASK
from brainfed.federation.apart.exchange import REFUSED
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class SecureSum:
    """A sum over sites.

    Attributes:
        tensors: name -> float64, the sum of the sites' tensors; exact to 2^-51 of the bound a site.
        about: code -> what the site said beside its tensors, unmasked; its keys are the sites in the sum.
    """

    tensors: Mapping[str, NDArray[np.float64]]
    about: Mapping[int, Mapping[str, Any]]


def secure_sum(
    hub: Hub, requests: Mapping[int, Packet], bounds: Mapping[str, float], timeout: float, threshold: int | None = None
) -> SecureSum:
    """The sum of the tensors that the sites reply, without any site's own.

    Four requests to each site: keys, shares, the masked reply, unmasking. A site that is lost after it sent shares is
    left out of the sum, and its masks are taken off with the others' shares.

    Args:
        hub: with a `site.Summand` at every site.
        requests: site code -> request, of one kind and with one answer's names and shapes.
        bounds: name of a reply's tensor -> largest magnitude of its values.
        timeout: seconds for each of the four.
        threshold: sites that are needed at the end, more than half; None: the fewest that are more than half.

    Raises:
        UserError: fewer sites than the threshold are left, one refused, or their tensors differ in shape.
    """
    if len(requests) > MOST_SITES:
        raise UserError(f"expected at most {MOST_SITES} sites in a secure sum, found {len(requests)}")
    needed = threshold or len(requests) // 2 + 1
    session = secrets.token_hex(8)

    def ask(step: str, packets: Mapping[int, Packet]) -> dict[int, Packet]:
        replies = hub.ask({code: _told(packet, session) for code, packet in packets.items()}, timeout)
        for code, reply in replies.items():
            if reply.kind == REFUSED:
                raise UserError(f"{hub.sites[code]}: {reply.about['sentence']}")
        if len(replies) < needed:
            raise UserError(f"a secure sum needs {needed} sites, found {len(replies)} at its step {step!r}")
        return replies

    keys = ask(KEYS, {code: Packet(KEYS, {"code": code, "threshold": needed}) for code in requests})
    public = {str(code): reply.about["keys"] for code, reply in keys.items()}
    shares = ask(SHARES, {code: Packet(SHARES, {"keys": public}) for code in keys})
    masked = ask(MASKED, {code: _inner(code, requests[code], bounds, shares) for code in shares})
    alive, gone = list(masked), [code for code in shares if code not in masked]
    answers = ask(UNMASK, {code: Packet(UNMASK, {"alive": alive, "gone": gone}) for code in alive})

    shapes = {code: reply.about["shapes"] for code, reply in masked.items()}
    first = masked[alive[0]].about
    if any(each != first["shapes"] for each in shapes.values()):
        raise UserError(f"expected tensors of one shape from all sites, found {shapes}")
    total: NDArray[np.uint64] = np.sum([reply.tensors["masked"] for reply in masked.values()], axis=0, dtype=np.uint64)
    for code in alive:
        total = total - mask(_combined(answers, "seeds", code, needed), total.size)
    for code in gone:
        private = bytes_to_private_key(_combined(answers, "keys", code, needed))
        for other in alive:
            pair = generate_shared_key(private, bytes_to_public_key(public[str(other)][0].encode()))
            total = total - pair_sign(other, code) * mask(pair, total.size)
    tensors: dict[str, NDArray[np.float64]] = {}
    start = 0
    for name in first["names"]:
        shape = tuple(first["shapes"][name])
        tensors[name] = decode(total[start : start + prod(shape)], bounds[name]).reshape(shape)
        start += prod(shape)
    return SecureSum(tensors, {code: reply.about["about"] for code, reply in masked.items()})


def _told(packet: Packet, session: str) -> Packet:
    return Packet(packet.kind, {**packet.about, "session": session}, packet.tensors)


def _inner(code: int, request: Packet, bounds: Mapping[str, float], shares: Mapping[int, Packet]) -> Packet:
    mine = {str(other): reply.about["shares"][str(code)] for other, reply in shares.items() if other != code}
    about = {"kind": request.kind, "about": dict(request.about), "bounds": dict(bounds), "shares": mine}
    return Packet(MASKED, about, request.tensors)


def _combined(answers: Mapping[int, Packet], which: str, code: int, needed: int) -> bytes:
    shares = [base64.b64decode(reply.about[which][str(code)]) for reply in answers.values()]
    return bytes(combine_shares(shares[:needed]))
