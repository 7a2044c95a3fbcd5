"""A site's part in a secure sum: keys, shares of its secrets for the others, masked numbers, shares for unmasking."""

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.common.secure_aggregation.crypto.shamir import create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import decrypt, encrypt, generate_shared_key
from flwr.common.secure_aggregation.secaggplus_utils import share_keys_plaintext_concat, share_keys_plaintext_separate
from flwr.supercore.primitives.asymmetric import (
    bytes_to_public_key,
    generate_key_pairs,
    private_key_to_bytes,
    public_key_to_bytes,
)

from brainfed.deployment.flower.secure.fixed_point import encode
from brainfed.deployment.flower.secure.masks import mask, pair_sign
from brainfed.federation.apart.exchange import ABSENT
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError

KEYS: Final = "secure-keys"
SHARES: Final = "secure-shares"
MASKED: Final = "secure-masked"
UNMASK: Final = "secure-unmask"


@dataclass
class _Sum:
    """What a site knows of one sum."""

    session: str
    code: int
    threshold: int
    mask_pair: tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey] = field(default_factory=generate_key_pairs)
    share_pair: tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey] = field(default_factory=generate_key_pairs)
    seed: bytes = field(default_factory=lambda: os.urandom(32))
    mask_keys: dict[int, bytes] = field(default_factory=dict)
    channels: dict[int, bytes] = field(default_factory=dict)
    seed_shares: dict[int, bytes] = field(default_factory=dict)
    key_shares: dict[int, bytes] = field(default_factory=dict)
    request: str = ""


class Summand:
    """Answers requests of secure sums, and passes all others on.

    Args:
        addends: packet that names a request -> packet with the tensors that are summed, or one of kind `absent`.
        answer: request of another kind -> reply.
        fewest: sites whose sum this site helps to unmask.
    """

    def __init__(
        self, addends: Callable[[Packet], Packet], answer: Callable[[Packet], Packet], fewest: int = 2
    ) -> None:
        self._addends, self._answer, self._fewest = addends, answer, fewest
        self._sum: _Sum | None = None
        self._shown: dict[str, frozenset[int]] = {}

    def __call__(self, request: Packet) -> Packet:
        """The reply to a request; of kind `absent` where it belongs to a sum of an earlier process.

        Raises:
            UserError: the request would reveal more than a sum.
        """
        if request.kind == KEYS:
            self._sum = _Sum(request.about["session"], request.about["code"], request.about["threshold"])
            return _keys(self._sum)
        if request.kind not in (SHARES, MASKED, UNMASK):
            return self._answer(request)
        current = self._sum
        if current is None or current.session != request.about["session"]:
            return Packet(ABSENT, {"sentence": f"{request.kind}: this site is in no such secure sum"})
        if request.kind == SHARES:
            return _shares(current, request.about["keys"], self._fewest)
        if request.kind == MASKED:
            return self._masked(current, request)
        return self._unmask(current, request.about["alive"], request.about["gone"])

    def _masked(self, current: _Sum, request: Packet) -> Packet:
        reply = self._addends(Packet(request.about["kind"], request.about["about"]))
        if reply.kind == ABSENT:
            return reply
        _take_shares(current, request.about["shares"])
        current.request = str(request.about["about"].get("request", current.session))
        bounds: Mapping[str, float] = request.about["bounds"]
        if set(reply.tensors) != set(bounds):
            raise UserError(f"expected tensors {sorted(bounds)} for a secure sum, found {sorted(reply.tensors)}")
        encoded = [encode(tensor, bounds[name], name).ravel() for name, tensor in reply.tensors.items()]
        total = np.concatenate(encoded) if encoded else np.zeros(0, np.uint64)
        total = total + mask(current.seed, total.size)
        for other in current.seed_shares.keys() - {current.code}:
            pair = generate_shared_key(current.mask_pair[0], bytes_to_public_key(current.mask_keys[other]))
            total = total + pair_sign(current.code, other) * mask(pair, total.size)
        shapes = {name: list(tensor.shape) for name, tensor in reply.tensors.items()}
        return Packet(MASKED, {"names": list(shapes), "shapes": shapes}, {"masked": total})

    def _unmask(self, current: _Sum, alive: list[int], gone: list[int]) -> Packet:
        """Of each site either the seed or the key, never both: together they would unmask its own numbers.

        One request is unmasked in one sum alone: two sums of different sites would show their difference.
        """
        group = set(current.seed_shares)
        complete = {*alive, *gone} == group and not {*alive} & {*gone}
        same = self._shown.get(current.request, frozenset(alive)) == frozenset(alive)
        if not complete or current.code not in alive or len(alive) < max(current.threshold, self._fewest) or not same:
            raise UserError("a request to unmask more than one sum: the coordinator does not follow the protocol")
        self._shown = {current.request: frozenset(alive)}
        seeds = {str(code): _text(current.seed_shares[code]) for code in alive}
        return Packet(UNMASK, {"seeds": seeds, "keys": {str(code): _text(current.key_shares[code]) for code in gone}})


def _keys(current: _Sum) -> Packet:
    keys = [public_key_to_bytes(public).decode() for _, public in (current.mask_pair, current.share_pair)]
    return Packet(KEYS, {"keys": keys})


def _shares(current: _Sum, keys: Mapping[str, list[str]], fewest: int) -> Packet:
    """A share of its seed and of its mask key for every site, each encrypted for that site."""
    codes = [int(code) for code in keys]
    if current.code not in codes or len(codes) < max(current.threshold, fewest) or 2 * current.threshold <= len(codes):
        raise UserError(
            f"a secure sum over {len(codes)} sites with a threshold of {current.threshold}: expected at least {fewest} "
            "sites, no fewer than the threshold, and a threshold of more than half of them"
        )
    if len({key for pair in keys.values() for key in pair}) != 2 * len(codes):
        raise UserError("a secure sum with one key for two sites: the coordinator does not follow the protocol")
    seeds = create_shares(current.seed, current.threshold, len(codes))
    secrets = create_shares(private_key_to_bytes(current.mask_pair[0]), current.threshold, len(codes))
    sent: dict[str, str] = {}
    for code, seed_share, key_share in zip(codes, seeds, secrets, strict=True):
        mask_key, share_key = (key.encode() for key in keys[str(code)])
        current.mask_keys[code] = mask_key
        if code == current.code:
            current.seed_shares[code], current.key_shares[code] = seed_share, key_share
            continue
        current.channels[code] = generate_shared_key(current.share_pair[0], bytes_to_public_key(share_key))
        plain = share_keys_plaintext_concat(current.code, code, seed_share, key_share)
        sent[str(code)] = encrypt(current.channels[code], plain).decode()
    return Packet(SHARES, {"shares": sent})


def _take_shares(current: _Sum, shares: Mapping[str, str]) -> None:
    if len(shares) + 1 < current.threshold:
        raise UserError(f"a secure sum over {len(shares) + 1} sites: fewer than its threshold of {current.threshold}")
    for sender, token in shares.items():
        plain = decrypt(current.channels[int(sender)], token.encode())
        source, target, seed_share, key_share = share_keys_plaintext_separate(plain)
        if (source, target) != (int(sender), current.code):
            raise UserError(f"shares of site {source} for site {target} arrived as those of {sender}")
        current.seed_shares[source], current.key_shares[source] = seed_share, key_share


def _text(share: Any) -> str:
    return base64.b64encode(share).decode()
