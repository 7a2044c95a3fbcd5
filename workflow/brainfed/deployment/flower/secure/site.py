"""A site's part in a secure sum: keys, shares of its secrets for the others, masked numbers, shares for unmasking."""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from cryptography.fernet import InvalidToken
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
from numpy.typing import NDArray

from brainfed.deployment.flower.secure.fixed_point import encode
from brainfed.deployment.flower.secure.masks import mask, pair_sign
from brainfed.deployment.flower.secure.unmasked import Step, Unmasked
from brainfed.federation.apart.exchange import ABSENT
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import fingerprint
from brainfed.runtime.errors import UserError

KEYS: Final = "secure-keys"
SHARES: Final = "secure-shares"
MASKED: Final = "secure-masked"
UNMASK: Final = "secure-unmask"
STEPS: Final = (KEYS, SHARES, MASKED, UNMASK)
"""Kinds of requests of a sum, and of the replies."""
DUE: Final = {KEYS: SHARES, SHARES: MASKED, MASKED: UNMASK}
"""What a sum asks for next."""
SAME_VERSION: Final = "run the same version of brainfed at the coordinator and at all sites."


@dataclass
class _Sum:
    """What a site knows of one sum.

    Attributes:
        session: name of the sum.
        code: of the site.
        threshold: sites that can take off the masks of one that is gone.
        step: which numbers are added up.
        numbers: encoded, (count,).
        shapes: name -> shape of the numbers.
        due: kind of the next request.
        pairs: other site -> seed of the mask with it.
        channels: other site -> key of the shares that are exchanged with it.
        held: site -> shares of its seed and of its mask key.
    """

    session: str
    code: int
    threshold: int
    step: Step
    numbers: NDArray[np.uint64]
    shapes: Mapping[str, list[int]]
    due: str = DUE[KEYS]
    mask_pair: tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey] = field(default_factory=generate_key_pairs)
    share_pair: tuple[ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey] = field(default_factory=generate_key_pairs)
    seed: bytes = field(default_factory=lambda: os.urandom(32))
    pairs: Mapping[int, bytes] = field(default_factory=dict)
    channels: Mapping[int, bytes] = field(default_factory=dict)
    held: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)


class Summand:
    """Answers requests of secure sums, and passes all others on.

    A sum is bound to one request and to bounds when it begins. It goes once through its four steps, so that no mask is
    used twice. A question that is asked again, word for word, has the same reply.

    Args:
        addends: packet that names a request -> packet with the tensors that are summed, and in its words `key`, `round`
            and fingerprint of the request; or one of kind `absent`.
        answer: request of another kind -> reply.
        fewest: sites whose sum this site helps to unmask.
        unmasked: the sums that it has helped to unmask; None: those of this object alone.
    """

    def __init__(
        self,
        addends: Callable[[Packet], Packet],
        answer: Callable[[Packet], Packet],
        fewest: int = 2,
        unmasked: Unmasked | None = None,
    ) -> None:
        self._addends, self._answer, self._fewest = addends, answer, fewest
        self._unmasked = Unmasked() if unmasked is None else unmasked
        self._sum: _Sum | None = None
        self._given: dict[bytes, Packet] = {}

    def __call__(self, request: Packet) -> Packet:
        """The reply to a request; of kind `absent` where it belongs to a sum of an earlier process.

        Raises:
            UserError: the request would reveal more than a sum, or is malformed.
        """
        if request.kind not in STEPS:
            return self._answer(request)
        question = hashlib.sha256(replace(request, number="").to_bytes()).digest()
        if question in self._given:
            return self._given[question]
        reply = self._begin(request.about) if request.kind == KEYS else self._go_on(request)
        if reply.kind != ABSENT:
            if request.kind in (KEYS, UNMASK):
                self._given.clear()
            self._given[question] = reply
        return reply

    def _begin(self, words: Mapping[str, Any]) -> Packet:
        """Bind a new sum to a request, in the place of the one before."""
        self._sum = None
        with _expecting(f"{KEYS}: expected the words of a secure sum"):
            session, code, threshold = str(words["session"]), int(words["code"]), int(words["threshold"])
            asked, bounds = Packet(str(words["kind"]), dict(words["about"])), dict(words["bounds"])
        reply = self._addends(asked)
        if reply.kind == ABSENT:
            return reply
        if set(reply.tensors) != set(bounds):
            raise UserError(
                f"{KEYS}: expected bounds of {sorted(reply.tensors)}, found those of {sorted(bounds)}; {SAME_VERSION}"
            )
        encoded = [encode(tensor, bounds[name], name).ravel() for name, tensor in reply.tensors.items()]
        numbers = np.concatenate(encoded) if encoded else np.zeros(0, np.uint64)
        shapes = {name: list(tensor.shape) for name, tensor in reply.tensors.items()}
        step = Step(str(reply.about.get("key", "")), reply.about.get("round"), fingerprint(reply))
        self._sum = _Sum(session, code, threshold, step, numbers, shapes)
        pairs = (self._sum.mask_pair, self._sum.share_pair)
        return Packet(KEYS, {"keys": [public_key_to_bytes(public).decode() for _, public in pairs]})

    def _go_on(self, request: Packet) -> Packet:
        current, words = self._sum, request.about
        if current is None or current.session != words.get("session"):
            return Packet(ABSENT, {"sentence": f"{request.kind}: this site is in no such secure sum"})
        if request.kind != current.due:
            raise UserError(
                f"{request.kind}: expected a request of kind {current.due}, as no mask is used twice; the coordinator "
                "does not follow the protocol."
            )
        if request.kind == UNMASK:
            reply = self._unmask(current, words)
            self._sum = None
            return reply
        reply = _shares(current, words, self._fewest) if request.kind == SHARES else _masked(current, words)
        current.due = DUE[request.kind]
        return reply

    def _unmask(self, current: _Sum, words: Mapping[str, Any]) -> Packet:
        """Of each site either the seed or the key, never both: together they would unmask its own numbers.

        The same numbers are unmasked over the same sites alone: two sums of different sites would show their
        difference.
        """
        with _expecting(f"{UNMASK}: expected the words of a secure sum"):
            alive, gone = frozenset(map(int, words["alive"])), frozenset(map(int, words["gone"]))
            names = dict(words["names"])
        fewest = max(current.threshold, self._fewest)
        if len(alive) < fewest:
            raise UserError(
                f"{current.step}: expected at least {fewest} sites in a sum that is unmasked, found {len(alive)}; "
                "compare `least` of this site with that of the study."
            )
        if alive & gone or alive | gone != current.held.keys() or current.code not in alive:
            raise UserError(
                f"{current.step}: expected every site of the sum once, present or gone, found sites {sorted(alive)} "
                f"present and {sorted(gone)} gone; the coordinator does not follow the protocol."
            )
        before = self._unmasked.sites(current.step)
        if before is None:
            self._unmasked.note(current.step, alive)
        elif before != alive:
            raise _other_sites(current.step, before, alive, names)
        seeds = {str(code): _text(current.held[code][0]) for code in alive}
        return Packet(UNMASK, {"seeds": seeds, "keys": {str(code): _text(current.held[code][1]) for code in gone}})


def _shares(current: _Sum, words: Mapping[str, Any], fewest: int) -> Packet:
    """A share of its seed and of its mask key for every site, each encrypted for that site."""
    with _expecting(f"{SHARES}: expected the words of a secure sum"):
        keys = {int(code): pair for code, pair in words["keys"].items()}
    if current.code not in keys or len(keys) < max(current.threshold, fewest) or 2 * current.threshold <= len(keys):
        raise UserError(
            f"a secure sum over {len(keys)} sites with a threshold of {current.threshold}: expected at least {fewest} "
            "sites, no fewer than the threshold, and a threshold of more than half of them"
        )
    public: set[bytes] = set()
    pairs: dict[int, bytes] = {}
    channels: dict[int, bytes] = {}
    for code, pair in keys.items():
        with _expecting(f"{SHARES}: expected the keys of site {code}"):
            mask_key, share_key = (bytes_to_public_key(key.encode()) for key in pair)
            public |= {public_key_to_bytes(mask_key), public_key_to_bytes(share_key)}
            if code != current.code:
                pairs[code] = generate_shared_key(current.mask_pair[0], mask_key)
                channels[code] = generate_shared_key(current.share_pair[0], share_key)
    if len(public) != 2 * len(keys):
        raise UserError("a secure sum with one key for two sites: the coordinator does not follow the protocol")
    seeds = create_shares(current.seed, current.threshold, len(keys))
    secrets = create_shares(private_key_to_bytes(current.mask_pair[0]), current.threshold, len(keys))
    shares = dict(zip(keys, zip(seeds, secrets, strict=True), strict=True))
    current.pairs, current.channels, current.held = pairs, channels, {current.code: shares[current.code]}
    plain = {code: share_keys_plaintext_concat(current.code, code, *shares[code]) for code in channels}
    return Packet(SHARES, {"shares": {str(code): encrypt(channels[code], plain[code]).decode() for code in plain}})


def _masked(current: _Sum, words: Mapping[str, Any]) -> Packet:
    """The numbers, masked by the site's seed and with every site whose shares have come."""
    with _expecting(f"{MASKED}: expected the words of a secure sum"):
        given = dict(words["shares"])
    shares: dict[int, tuple[bytes, bytes]] = {}
    for sender, token in given.items():
        with _expecting(f"{MASKED}: expected the shares of site {sender}"):
            plain = decrypt(current.channels[int(sender)], token.encode())
            source, target, *pair = share_keys_plaintext_separate(plain)
            if (source, target) != (int(sender), current.code):
                raise UserError(f"shares of site {source} for site {target} arrived as those of {sender}")
            shares[source] = (pair[0], pair[1])
    if len(shares) + 1 < current.threshold:
        raise UserError(f"a secure sum over {len(shares) + 1} sites: fewer than its threshold of {current.threshold}")
    current.held = {**current.held, **shares}
    size = current.numbers.size
    total = current.numbers + mask(current.seed, size)
    for other in shares:
        total = total + pair_sign(current.code, other) * mask(current.pairs[other], size)
    return Packet(MASKED, {"names": list(current.shapes), "shapes": dict(current.shapes)}, {"masked": total})


@contextmanager
def _expecting(what: str) -> Iterator[None]:
    """Turn what a malformed packet raises into a sentence."""
    try:
        yield
    except (InvalidToken, LookupError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{what}, found none that can be read; {SAME_VERSION}") from error


def _other_sites(step: Step, before: frozenset[int], now: frozenset[int], names: Mapping[str, str]) -> UserError:
    def named(codes: Iterable[int]) -> str:
        return ", ".join(repr(names.get(str(code), code)) for code in sorted(codes))

    advice = [f"start the coordinator again when it reaches {named(before - now)}"] if before - now else []
    advice += [f"stop `brainfed join` at {named(now - before)} until this step is over"] if now - before else []
    return UserError(
        f"{step}: expected the sum of {named(before)}, which this site helped to unmask before, found that of "
        f"{named(now)}; {' and '.join(advice)}, as two sums of different sites show their difference."
    )


def _text(share: Any) -> str:
    return base64.b64encode(share).decode()
