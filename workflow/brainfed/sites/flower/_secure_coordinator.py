"""Sums over sites of which the coordinator sees no part: SecAgg+ (Bell et al. 2020) over the hub.

Flower has the protocol for its own strategies (`secaggplus_mod`, `SecAggPlusWorkflow`). Its secret sharing is used; its
masks are not (`_secure_site.mask`).

The coordinator is taken to follow the protocol and to be curious. One that invents sites, or keys in their names, is
not held off: sites do not know each other's keys beforehand.
"""

import base64
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Final, cast

import numpy as np
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from numpy.typing import NDArray

from brainfed.runtime import UserError
from brainfed.sites import (
    ABSENT,
    REFUSED,
    SAME_VERSION,
    SEALED,
    SLOWEST,
    DifferingSitesError,
    Hub,
    LostSitesError,
    Packet,
    SiteError,
)
from brainfed.sites.flower._certificates import from_pem, to_pem
from brainfed.sites.flower._secure_site import (
    KEYS,
    MASKED,
    MOST_SITES,
    SHARES,
    UNMASK,
    decode,
    mask,
    pair_sign,
    shared_key,
)

# What sites reply in a secure sum, as the coordinator reads it: a reply that cannot be read names its site.

SEED: Final = 32
"""Bytes of the seed of a mask."""
SEEDS, PRIVATE_KEYS = "seeds", "keys"
"""Secrets of sites of which others reply their shares."""
_BROKEN: Final = (LookupError, ValueError, TypeError, AttributeError, UnsupportedAlgorithm)


@dataclass(frozen=True)
class Replies:
    """Reads the replies of one sum; `names` has those of the sites, by code."""

    names: Mapping[int, str]

    def require_kind(self, code: int, reply: Packet, kind: str) -> None:
        """Refuse a reply to another question."""
        if reply.kind != kind:
            raise self._unreadable(code, kind, "a reply of this kind")

    def keys(self, replies: Mapping[int, Packet]) -> dict[str, list[str]]:
        """Site, as a word of a packet -> its public keys: of its masks, and of its shares."""
        pairs: dict[str, list[str]] = {}
        for code, reply in replies.items():
            with self._reading(code, KEYS, "two public keys"):
                pair = [str(key) for key in reply.about["keys"]]
                if [_is_public(key) for key in pair] != [True, True]:
                    raise ValueError("no pair of keys")
                pairs[str(code)] = pair
        return pairs

    def shares_for(self, code: int, replies: Mapping[int, Packet]) -> dict[str, str]:
        """The shares that the other sites encrypted for this one."""
        tokens: dict[str, str] = {}
        for other, reply in replies.items():
            if other != code:
                with self._reading(other, SHARES, f"shares for site {self.names[code]!r}"):
                    token = reply.about["shares"][str(code)]
                    if not isinstance(token, str):
                        raise TypeError("no token")
                    tokens[str(other)] = token
        return tokens

    def masked(self, replies: Mapping[int, Packet], names: set[str]) -> tuple[NDArray[np.uint64], dict[str, list[int]]]:
        """The sum of the masked numbers of the sites in the sum, and the shapes of its arrays of these names."""
        lead = min(replies)
        first: dict[str, list[int]] = {}
        total = np.zeros(0, np.uint64)
        for code, reply in sorted(replies.items()):
            with self._reading(code, MASKED, f"masked numbers of {', '.join(sorted(names))}"):
                shapes = {str(name): list(map(int, reply.about["shapes"][name])) for name in reply.about["names"]}
                numbers = reply.tensors["masked"]
                size = sum(prod(shape) for shape in shapes.values())
                if set(shapes) != names or min(map(min, filter(None, shapes.values())), default=0) < 0:
                    raise ValueError("other names or shapes")
                if numbers.dtype != np.uint64 or numbers.shape != (size,):
                    raise ValueError("other numbers")
            if code == lead:
                first, total = shapes, np.zeros(size, np.uint64)
            if list(shapes.items()) != list(first.items()):
                raise DifferingSitesError(
                    code,
                    f"site {self.names[code]!r}: expected masked numbers of shapes {first}, as at site "
                    f"{self.names[lead]!r}, found {shapes}; {SAME_VERSION}",
                )
            total = total + numbers
        return total, first

    def secret(
        self, replies: Mapping[int, Packet], which: str, owner: int, needed: int, fits: Callable[[bytes], bool]
    ) -> bytes:
        """A secret of a site, of the shares that others hold.

        Args:
            replies: of the sites that unmask.
            which: `SEEDS` or `PRIVATE_KEYS`.
            owner: the site.
            needed: shares that suffice.
            fits: whether bytes can be the secret.

        Raises:
            SiteError: a site gave a share that is none, or that does not fit to those of the others.
            UserError: shares do not fit together, and there are too few to find the wrong one.
        """
        shares: dict[int, bytes] = {}
        for giver, reply in replies.items():
            with self._reading(giver, UNMASK, f"its share of the {which} of site {self.names[owner]!r}"):
                shares[giver] = base64.b64decode(reply.about[which][str(owner)], validate=True)
        for wrong in (None, *shares):
            others = [share for giver, share in shares.items() if giver != wrong][:needed]
            secret = _combined(others, fits) if len(others) == needed else None
            if secret is not None and wrong is None:
                return secret
            if secret is not None and wrong is not None:
                raise self._unreadable(wrong, UNMASK, f"its share of the {which} of site {self.names[owner]!r}")
        givers = ", ".join(repr(self.names[giver]) for giver in shares)
        raise UserError(
            f"{UNMASK}: expected shares of {givers} that give the {which} of site {self.names[owner]!r}, found others; "
            f"{SAME_VERSION}"
        )

    @contextmanager
    def _reading(self, code: int, kind: str, what: str) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise self._unreadable(code, kind, what) from error

    def _unreadable(self, code: int, kind: str, what: str) -> SiteError:
        return SiteError(
            code, f"site {self.names[code]!r}, {kind}: expected {what}, found none that can be read; {SAME_VERSION}"
        )


def is_private_key_of(public: str) -> Callable[[bytes], bool]:
    """Whether bytes are the private key that belongs to a public one."""

    def fits(secret: bytes) -> bool:
        try:
            return to_pem(_private_key(secret).public_key()).decode() == public
        except _BROKEN:
            return False

    return fits


def _is_public(key: str) -> bool:
    return isinstance(from_pem(key.encode()).curve, ec.SECP384R1)


def _private_key(secret: bytes) -> ec.EllipticCurvePrivateKey:
    return cast(ec.EllipticCurvePrivateKey, load_pem_private_key(secret, None))


def _combined(shares: list[bytes], fits: Callable[[bytes], bool]) -> bytes | None:
    """The secret; None: the shares are of no secret, or of one that does not fit."""
    try:
        secret = bytes(combine_shares(shares))
    except _BROKEN:
        return None
    return secret if fits(secret) else None


# The sum.

ADDENDS: Final = "addends"
"""Kind of the request that a sum asks a site for."""
STEP_S: Final = 30.0
"""Seconds for a site to take up and answer one of the four requests, beside the time that its bytes take."""


class SecureSums:
    """Adds up the numbers that sites hold back, over `fewest` sites or more; see `sites._coordinator.SecureSums`."""

    def __init__(self, hub: Hub, fewest: int) -> None:
        self._hub, self._fewest = hub, fewest

    def __call__(
        self, sealed: Mapping[int, Packet], bounds: Mapping[str, float], needs_all: bool
    ) -> tuple[dict[str, NDArray[np.float64]], tuple[int, ...]]:
        """Sums by name, and the sites in them.

        Raises:
            LostSitesError: too few sites are there.
            UserError: a site refuses, or its arrays differ in shape.
        """
        asked = {code: Packet(ADDENDS, {"request": request.about["request"]}) for code, request in sealed.items()}
        arrays = next(iter(sealed.values())).about[SEALED]["arrays"]
        size = 8 * sum(prod(shape) for shape, _ in arrays.values())
        fewest = len(asked) if needs_all else self._fewest
        return secure_sum(self._hub, asked, bounds, STEP_S + size / SLOWEST, fewest)


def secure_sum(
    hub: Hub, requests: Mapping[int, Packet], bounds: Mapping[str, float], timeout: float, fewest: int = 2
) -> tuple[dict[str, NDArray[np.float64]], tuple[int, ...]]:
    """The sums of the tensors that the sites reply, by name, and the sites in them; no site's own is seen.

    A sum is exact to 2^-51 of the bound a site.

    Four requests to each site: keys, shares, the masked reply, unmasking. A site that is lost after it sent shares is
    left out of the sum, and its masks are taken off with the others' shares.

    Args:
        hub: with a `Summand` at every site.
        requests: site code -> request for its addends; all of one step.
        bounds: name of a reply's tensor -> largest `brainfed.sites.bound` of the sites.
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
        of_sum = {code: Packet(packet.kind, {**packet.about, "session": session}) for code, packet in packets.items()}
        came = hub.ask(of_sum, timeout)
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
    # A sum begins with its request, which it keeps to.
    asked = {code: {"kind": request.kind, "about": dict(request.about)} for code, request in requests.items()}
    keys = ask({code: Packet(KEYS, {**begin, "code": code, **bound_to}) for code, bound_to in asked.items()}, needed)
    public = read.keys(keys)
    shares = ask({code: Packet(SHARES, {"keys": public}) for code in keys}, needed)
    masked = ask({code: Packet(MASKED, {"shares": read.shares_for(code, shares)}) for code in shares}, needed)
    total, shapes = read.masked(masked, set(bounds))
    alive, gone = list(masked), [code for code in shares if code not in masked]
    names = {str(code): name for code, name in hub.sites.items()}
    unmask = Packet(UNMASK, {"alive": alive, "gone": gone, "names": names})
    answers = ask(dict.fromkeys(alive, unmask), threshold)

    for code in alive:
        total = total - mask(read.secret(answers, SEEDS, code, threshold, lambda seed: len(seed) == SEED), total.size)
    for code in gone:
        fits = is_private_key_of(public[str(code)][0])
        private = _private_key(read.secret(answers, PRIVATE_KEYS, code, threshold, fits))
        for other in alive:
            pair = shared_key(private, from_pem(public[str(other)][0].encode()))
            total = total - pair_sign(other, code) * mask(pair, total.size)
    tensors: dict[str, NDArray[np.float64]] = {}
    start = 0
    for name, shape in shapes.items():
        tensors[name] = decode(total[start : start + prod(shape)], bounds[name]).reshape(shape)
        start += prod(shape)
    return tensors, tuple(alive)
