"""A site's part in a secure sum: keys, shares of its secrets for the others, masked numbers, shares for unmasking."""

import base64
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flwr.common.secure_aggregation.crypto.shamir import create_shares
from numpy.typing import NDArray

from brainfed.runtime import UserError
from brainfed.sites import ABSENT, SAME_VERSION, Packet, fingerprint, is_bound
from brainfed.sites import bound as bound_of
from brainfed.sites.flower._certificates import from_pem, private_pem, to_pem

# Real numbers as integers modulo 2^64, whose sum is the same in any order.

BITS: Final = 50
"""A bound is 2^50 steps: a number is off by at most 2^-51 of its bound, and 2^12 sites fit in 63 bits and a sign."""
MOST_SITES: Final = 2**12


def encode(values: NDArray[Any], bound: float, name: str) -> NDArray[np.uint64]:
    """Steps of `bound` / 2^50, negative ones as their complement.

    Args:
        values: (...), real numbers.
        bound: of these values and those of all other sites.
        name: of the tensor, for the error, which names no value.

    Raises:
        UserError: a value is not finite; or the bound is none of `brainfed.sites.bound`, or below that of the values.
    """
    real = np.asarray(values, dtype=np.float64)
    own = bound_of(real)
    if own is None:
        raise UserError(
            f"{name}: expected finite numbers for a secure sum, found NaN or infinite ones; look at the site's "
            "features and lower learning_rate."
        )
    if not is_bound(bound) or bound < own:
        raise UserError(
            f"{name}: expected a bound for a secure sum that is a power of 256 and not below this site's, found "
            f"another; {SAME_VERSION}"
        )
    return np.rint(real * (2.0**BITS / bound)).astype(np.int64).view(np.uint64)


def decode(steps: NDArray[np.uint64], bound: float) -> NDArray[np.float64]:
    """The numbers, float64 (...), of which `steps` are the sum of `encode`."""
    return steps.view(np.int64).astype(np.float64) * (bound / 2.0**BITS)


# Masks: integers modulo 2^64 that look random to all who lack their seed.
#
# They take the place of Flower's own (`pseudo_rand_gen`, 1.42), which fold a seed of 32 bytes into 32 bits for a
# Mersenne Twister. The seed of a pair's mask is base64 text, which leaves 28: in a sum of two sites, 2^28 tries on an
# upload find its mask.


def mask(seed: bytes, count: int) -> NDArray[np.uint64]:
    """The key stream of AES-256 in counter mode, (count,), under a key that is derived from all of the seed.

    The same seed gives the same mask: it is of one sum alone.
    """
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"brainfed secure sum").derive(seed)
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


def pair_sign(code: int, other: int) -> np.uint64:
    """1 for one site of a pair, -1 modulo 2^64 for the other: their masks cancel in the sum."""
    return np.uint64(1) if code > other else np.uint64(2**64 - 1)


# Keys: as Flower's `secure_aggregation` makes them.


def new_key() -> ec.EllipticCurvePrivateKey:
    """A key of one sum."""
    return ec.generate_private_key(ec.SECP384R1())


def shared_key(own: ec.EllipticCurvePrivateKey, other: ec.EllipticCurvePublicKey) -> bytes:
    """The key that two sites agree on (ECDH, HKDF), 44 bytes of base64 text, as Fernet takes it."""
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=None).derive(own.exchange(ec.ECDH(), other))
    return base64.urlsafe_b64encode(derived)


# The sums that a site has helped to unmask: of which numbers, and over which sites. They outlive its process.


@dataclass(frozen=True)
class Step:
    """Numbers of a site that are added up.

    Attributes:
        key: of the job's request.
        round: from 0; None: the sum belongs to no round.
        fingerprint: of the numbers.
    """

    key: str
    round: int | None
    fingerprint: str

    def __str__(self) -> str:
        """For people."""
        return self.key if self.round is None else f"{self.key}, round {self.round + 1}"


class Unmasked:
    """A file with a line a step, in JSON, which only its user can read; without a path they are kept in memory.

    Raises:
        UserError: a line cannot be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._sites: dict[Step, frozenset[int]] = {}
        if path is not None and path.exists():
            self._read(path)

    def sites(self, step: Step) -> frozenset[int] | None:
        """Codes of the sites over which a step was unmasked; None: it was not."""
        return self._sites.get(step)

    def note(self, step: Step, sites: frozenset[int]) -> None:
        """Keep the sites of a step; they are on the disk when this returns."""
        if self._path is not None:
            line = json.dumps({**asdict(step), "sites": sorted(sites)}) + "\n"
            _append(self._path, line.encode())
        self._sites[step] = sites

    def _read(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                entry = json.loads(line)
                step = Step(str(entry["key"]), entry["round"], str(entry["fingerprint"]))
                self._sites[step] = frozenset(map(int, entry["sites"]))
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f"{path}, line {number}: expected a sum that was unmasked (key, round, fingerprint, sites), found "
                    "something else; restore the file, or move it away and begin a new study."
                ) from None
        # The reply of a line that was cut off has not left the site.
        if whole < len(content):
            os.truncate(path, whole)


def _append(path: Path, line: bytes) -> None:
    """Add a line; a part of it that is left by a full disk is taken away."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
    if size == 0:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# The four steps of a sum.

KEYS: Final = "secure-keys"
SHARES: Final = "secure-shares"
MASKED: Final = "secure-masked"
UNMASK: Final = "secure-unmask"
STEPS: Final = (KEYS, SHARES, MASKED, UNMASK)
"""Kinds of requests of a sum, and of the replies."""
DUE: Final = {KEYS: SHARES, SHARES: MASKED, MASKED: UNMASK}
"""What a sum asks for next."""


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
        shares: site -> shares of its seed and of its mask key.
    """

    session: str
    code: int
    threshold: int
    step: Step
    numbers: NDArray[np.uint64]
    shapes: Mapping[str, list[int]]
    due: str = DUE[KEYS]
    mask_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    share_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    seed: bytes = field(default_factory=lambda: os.urandom(32))
    pairs: Mapping[int, bytes] = field(default_factory=dict)
    channels: Mapping[int, bytes] = field(default_factory=dict)
    shares: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)


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
        own = (self._sum.mask_key, self._sum.share_key)
        return Packet(KEYS, {"keys": [to_pem(key.public_key()).decode() for key in own]})

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
        if alive & gone or alive | gone != current.shares.keys() or current.code not in alive:
            raise UserError(
                f"{current.step}: expected every site of the sum once, present or gone, found sites {sorted(alive)} "
                f"present and {sorted(gone)} gone; the coordinator does not follow the protocol."
            )
        before = self._unmasked.sites(current.step)
        if before is None:
            self._unmasked.note(current.step, alive)
        elif before != alive:
            raise _other_sites(current.step, before, alive, names)
        seeds = {str(code): _text(current.shares[code][0]) for code in alive}
        return Packet(UNMASK, {"seeds": seeds, "keys": {str(code): _text(current.shares[code][1]) for code in gone}})


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
            mask_key, share_key = (from_pem(key.encode()) for key in pair)
            public |= {to_pem(mask_key), to_pem(share_key)}
            if code != current.code:
                pairs[code] = shared_key(current.mask_key, mask_key)
                channels[code] = shared_key(current.share_key, share_key)
    if len(public) != 2 * len(keys):
        raise UserError("a secure sum with one key for two sites: the coordinator does not follow the protocol")
    seeds = create_shares(current.seed, current.threshold, len(keys))
    secrets = create_shares(private_pem(current.mask_key), current.threshold, len(keys))
    shares = dict(zip(keys, zip(seeds, secrets, strict=True), strict=True))
    current.pairs, current.channels, current.shares = pairs, channels, {current.code: shares[current.code]}
    plain = {code: _packed(current.code, code, *shares[code]) for code in channels}
    tokens = {str(code): Fernet(channels[code]).encrypt(plain[code]).decode() for code in plain}
    return Packet(SHARES, {"shares": tokens})


def _masked(current: _Sum, words: Mapping[str, Any]) -> Packet:
    """The numbers, masked by the site's seed and with every site whose shares have come."""
    with _expecting(f"{MASKED}: expected the words of a secure sum"):
        given = dict(words["shares"])
    shares: dict[int, tuple[bytes, bytes]] = {}
    for sender, token in given.items():
        with _expecting(f"{MASKED}: expected the shares of site {sender}"):
            plain = Fernet(current.channels[int(sender)]).decrypt(token.encode())
            source, target, length = _HEAD.unpack_from(plain)
            if (source, target) != (int(sender), current.code):
                raise UserError(f"shares of site {source} for site {target} arrived as those of {sender}")
            shares[source] = (plain[_HEAD.size : _HEAD.size + length], plain[_HEAD.size + length :])
    if len(shares) + 1 < current.threshold:
        raise UserError(f"a secure sum over {len(shares) + 1} sites: fewer than its threshold of {current.threshold}")
    current.shares = {**current.shares, **shares}
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
    except (InvalidToken, LookupError, ValueError, TypeError, AttributeError, struct.error) as error:
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


_HEAD: Final = struct.Struct("<QQI")
"""Of the shares that a site has for another: both codes, and the length of the first share."""


def _packed(source: int, target: int, seed: bytes, key: bytes) -> bytes:
    return _HEAD.pack(source, target, len(seed)) + seed + key


def _text(share: Any) -> str:
    return base64.b64encode(share).decode()
