"""What sites reply in a secure sum, as the coordinator reads it: a reply that cannot be read names its site."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key, public_key_to_bytes
from numpy.typing import NDArray

from brainfed.deployment.flower.secure.site import KEYS, MASKED, SAME_VERSION, SHARES, UNMASK
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import DifferingSitesError, SiteError
from brainfed.runtime.errors import UserError

SEED: Final = 32
"""Bytes of the seed of a mask."""
SEEDS, PRIVATE_KEYS = "seeds", "keys"
"""Secrets of sites of which others reply their shares."""
_BROKEN: Final = (LookupError, ValueError, TypeError, AttributeError, UnsupportedAlgorithm)


@dataclass(frozen=True)
class Replies:
    """Reads the replies of one sum.

    Attributes:
        names: site -> name.
    """

    names: Mapping[int, str]

    def require_kind(self, code: int, reply: Packet, kind: str) -> None:
        """Refuse a reply to another question."""
        if reply.kind != kind:
            raise self._unreadable(code, kind, "a reply of this kind")

    def keys(self, replies: Mapping[int, Packet]) -> dict[str, list[str]]:
        """Site, as a word of a packet -> its public keys: of its masks, and of its shares."""
        found: dict[str, list[str]] = {}
        for code, reply in replies.items():
            with self._reading(code, KEYS, "two public keys"):
                pair = [str(key) for key in reply.about["keys"]]
                if [_is_public(key) for key in pair] != [True, True]:
                    raise ValueError("no pair of keys")
                found[str(code)] = pair
        return found

    def shares_for(self, code: int, replies: Mapping[int, Packet]) -> dict[str, str]:
        """The shares that the other sites encrypted for this one."""
        found: dict[str, str] = {}
        for other, reply in replies.items():
            if other != code:
                with self._reading(other, SHARES, f"shares for site {self.names[code]!r}"):
                    token = reply.about["shares"][str(code)]
                    if not isinstance(token, str):
                        raise TypeError("no token")
                    found[str(other)] = token
        return found

    def masked(self, replies: Mapping[int, Packet], names: set[str]) -> tuple[NDArray[np.uint64], dict[str, list[int]]]:
        """The sum of the masked numbers, and the shapes that it is made of.

        Args:
            replies: of the sites in the sum.
            names: of the arrays.
        """
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
            found = _combined(others, fits) if len(others) == needed else None
            if found is not None and wrong is None:
                return found
            if found is not None and wrong is not None:
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


def is_seed(secret: bytes) -> bool:
    """Whether bytes can be the seed of a mask."""
    return len(secret) == SEED


def is_private_key_of(public: str) -> Callable[[bytes], bool]:
    """Whether bytes are the private key that belongs to a public one."""

    def fits(secret: bytes) -> bool:
        try:
            return public_key_to_bytes(bytes_to_private_key(secret).public_key()).decode() == public
        except _BROKEN:
            return False

    return fits


def _is_public(key: str) -> bool:
    found = bytes_to_public_key(key.encode())
    return isinstance(found, ec.EllipticCurvePublicKey) and isinstance(found.curve, ec.SECP384R1)


def _combined(shares: list[bytes], fits: Callable[[bytes], bool]) -> bytes | None:
    """The secret; None: the shares are of no secret, or of one that does not fit."""
    try:
        secret = bytes(combine_shares(shares))
    except _BROKEN:
        return None
    return secret if fits(secret) else None
