"""What passes between an institution's process and the coordinator: a kind, a few words, and named arrays."""

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import ceil, frexp, inf, isfinite, ldexp
from sys import float_info
from typing import Any, Final, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from brainfed.runtime import UserError

HEADER = "packet"
"""Key of the metadata that hold all but the arrays."""
SAME_VERSION: Final = "use the same version of brainfed at the coordinator and at all sites."


class BrokenPacketError(UserError):
    """Bytes that are no packet: the two ends run different versions."""


@dataclass(frozen=True)
class Packet:
    """One request of an institution, or one answer to it.

    Attributes:
        kind: what is asked or answered.
        about: JSON values.
        tensors: name -> array of any shape and of a type that safetensors knows. Their order is kept.
        number: of a question on the network, the same in its reply; one that is sent again keeps it. Empty: none.
    """

    kind: str
    about: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    number: str = ""

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.tensors.values())

    def to_bytes(self) -> bytes:
        """As a safetensors file, the rest in its metadata."""
        about = {"kind": self.kind, "about": dict(self.about), "number": self.number, "names": list(self.tensors)}
        header = json.dumps(about, sort_keys=True, separators=(",", ":"))
        # `ascontiguousarray` would give a number (shape ()) an axis.
        arrays = {name: np.array(tensor, order="C", copy=None) for name, tensor in self.tensors.items()}
        return bytes(save(arrays, metadata={HEADER: header}))

    @staticmethod
    def from_bytes(content: bytes) -> "Packet":
        """The packet that `to_bytes` wrote; its tensors cannot be written to.

        Raises:
            BrokenPacketError: the bytes are no packet.
        """
        try:
            length = int.from_bytes(content[:8], "little")
            header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][HEADER])
            tensors = load(content)
            named = {name: tensors[name] for name in header["names"]}
            kind, about, number = header["kind"], header["about"], header["number"]
            if not (isinstance(kind, str) and isinstance(about, dict) and isinstance(number, str)):
                raise TypeError("kind, words and number have other types")
            return Packet(kind, about, named, number)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise BrokenPacketError(
                f"expected a packet, found {len(content)} bytes that are none ({error}); {SAME_VERSION}"
            ) from error


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# The way of an institution's process to the coordinator.

OPEN, REPLY, TOTAL, LARGEST, LEAVE = "open", "reply", "total", "largest", "leave"
"""Kinds of requests: a strategy is needed, an institution has trained, numbers to add up, numbers to compare, and the
end of a process."""

ANSWER, REFUSED = "answer", "refused"
"""Kinds of answers; a refusal has the sentence in `about`."""

TENSOR, PUBLISHED = "tensor/", "published/"
"""Prefixes of the tensors of an answer: of the strategy's message, and of its result."""

INTRODUCE, NEXT, WORKING, ABSENT, NOBODY = "introduce", "next", "working", "absent", "nobody"
"""Kinds between the coordinator and a site's client: who are you; what is your next request; none yet; the site has
another request or sum now; no client is open, ask again."""

HELD = "held"
"""Of `next`: the name of the request that the coordinator has; it need not cross again."""

SLOWEST: Final = 1e5
"""Bytes a second of the slowest line that is waited for."""


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


# A mistake of one site, which the person there can mend; sites that differ; sites that are lost in a step.


class SiteError(UserError):
    """One site sends what cannot be used; the sentence is for people at the coordinator and at the site."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class DifferingSitesError(SiteError):
    """A site differs from another one, and neither contradicts itself: which of them is wrong is not known."""


def usual(of_site: Mapping[int, object], sites: int) -> tuple[int, type[SiteError]]:
    """The first site that has what most have, and the error of a site that has something else.

    That is `SiteError` where more than half of all `sites` of the study have the same, and else `DifferingSitesError`.
    """
    every = [of_site[code] for code in sorted(of_site)]
    lead = max(sorted(of_site), key=lambda code: every.count(of_site[code]))
    return lead, SiteError if 2 * every.count(of_site[lead]) > sites else DifferingSitesError


class LostSitesError(Exception):
    """Sites that had asked for a step were not there while their numbers were added up; the step can be tried again."""

    def __init__(self, codes: Collection[int]) -> None:
        super().__init__(f"lost sites {sorted(codes)}")
        self.codes = frozenset(codes)


# A request whose numbers stay at the site until they are masked: the coordinator sees their names, shapes and bounds.
#
# Every name of an array has its shape, its type, and a power of 256 that bounds its magnitudes: a secure sum computes
# with steps of a bound. The fingerprint of the numbers has a key of the site, as few numbers could be found by trying.

SUM = "sum"
"""Key of a request's words: name -> type of the arrays of which the coordinator needs the sum alone."""
SEALED = "sealed"
"""Key of the words of a request whose arrays are held back: name -> shape and bound; and the fingerprint."""
STEP = 8
"""Bits between two bounds: they say little of a site's largest number."""
SMALLEST = 2.0**-64
"""Of the bounds."""
FINGERPRINT = 64
"""Characters of a fingerprint."""


def is_sum(request: Packet) -> bool:
    """Whether the coordinator needs the sum of a request's arrays alone."""
    return SUM in request.about


def seal(request: Packet, key: str) -> Packet:
    """The request without its arrays; `key`, a secret of the site, is that of their fingerprint."""
    digest = hmac.new(key.encode(), arrays_digest(request.tensors).encode(), "sha256").hexdigest()
    sealed = {"arrays": shapes_and_bounds(request), "fingerprint": digest}
    return Packet(request.kind, {**request.about, SEALED: sealed})


def shapes_and_bounds(request: Packet) -> dict[str, tuple[list[int], float | None]]:
    """What is seen of the arrays of a sealed request."""
    return {name: (list(array.shape), bound(array)) for name, array in request.tensors.items()}


def bound(array: NDArray[Any]) -> float | None:
    """The smallest power of 256 above all magnitudes, or `SMALLEST`.

    None: a number is not finite, or no float64 that is a power of 256 lies above it.
    """
    largest = float(np.max(np.abs(array.astype(np.float64)), initial=0.0))
    if not isfinite(largest):
        return None
    power = STEP * ceil(frexp(largest)[1] / STEP)
    return max(ldexp(1.0, power), SMALLEST) if power < float_info.max_exp else None


def is_bound(number: object) -> TypeGuard[float]:
    """Whether `bound` can give a number: bounds of other sites say no more than bounds of this one."""
    if not isinstance(number, float) or not isfinite(number) or number < SMALLEST:
        return False
    mantissa, exponent = frexp(number)
    return mantissa == 0.5 and (exponent - 1) % STEP == 0


def fingerprint(request: Packet) -> str:
    """Of a request's numbers, sealed or open."""
    return str(request.about[SEALED]["fingerprint"]) if SEALED in request.about else arrays_digest(request.tensors)


def bounds_of(requests: Mapping[int, Packet], names: Mapping[int, str]) -> dict[str, float]:
    """Name of an array -> bound at all sites, from their sealed requests of one step.

    Raises:
        SiteError: a site has other arrays (see `usual`), or a number that is not finite.
    """
    arrays = {code: request.about[SEALED]["arrays"] for code, request in sorted(requests.items())}
    shapes = {code: {name: tuple(shape) for name, (shape, _) in own.items()} for code, own in arrays.items()}
    lead, error = usual(shapes, len(names))
    expected = shapes[lead]
    for code, sent in shapes.items():
        about = requests[code].about
        where = f"site {names[code]!r}" + (f", round {about['round'] + 1}" if "round" in about else "")
        if expected != sent:
            raise error(
                code,
                f"{where}: expected {_beyond(expected, sent)} as at site {names[lead]!r}, found "
                f"{_beyond(sent, expected)}; compare the site's atlas, version and settings with those of the study.",
            )
        for name, (_, least) in arrays[code].items():
            if least is None:
                raise SiteError(
                    code,
                    f"{where}: expected finite numbers in {name}, found NaN or infinite ones; look at the site's "
                    "features and lower learning_rate. The state before this step is kept.",
                )
    return {name: max(own[name][1] for own in arrays.values()) for name in expected}


def _beyond(arrays: Mapping[str, tuple[int, ...]], others: Mapping[str, tuple[int, ...]]) -> str:
    """Those that the others lack, or have in another shape."""
    beyond = [f"{name} of shape {shape}" for name, shape in arrays.items() if others.get(name) != shape]
    return ", ".join(beyond) or "nothing more"


# The form of what a site says: a packet without the words of its kind is of another version.

Words = Mapping[str, type | tuple[type, ...]]

_INTRODUCTION: Final[Words] = {
    "site": str,
    "study": str,
    "versions": dict,
    "settings": dict,
    "released": dict,
    "clock": (int, float),
}
_RELEASED: Final[Words] = {"subjects": int, "epsilon": (int, float, type(None)), "delta": (int, float)}
"""What a study releases of a site's subjects."""
_NONE: Final = "none that can be read"
_NAMED: Final[Words] = {"request": str}
_JOB: Final[Words] = {**_NAMED, "key": str}
_REQUESTS: Final[Mapping[str, Words]] = {
    OPEN: {**_JOB, "round": int, "strategy": str, "settings": dict, "tensors": str, "rounds": int},
    REPLY: {**_JOB, "round": int},
    TOTAL: _JOB,
    LARGEST: {**_JOB, "number": int},
    LEAVE: _NAMED,
}
"""Kind of a request -> its words, and their types."""
_SCORES: Final[Words] = {"variant": str, "repeat": int, "fold": int, "subjects": int, "counts": list, "measures": dict}
"""Of a row of scores."""
_OPEN_REPLY: Final[Words] = {"samples": list, "plain": list}
"""Of a reply whose numbers are not masked, besides."""


def require_introduction(code: int, said: Packet, name: str) -> None:
    """Refuse what is no introduction of the site of a code and name.

    Raises:
        SiteError: a word is missing, or of another type.
    """
    _require_words(code, said, name, _INTRODUCTION)
    released = said.about["released"]
    if not _has_words(released, _RELEASED) or not all(each is None or 0 <= each < inf for each in released.values()):
        raise _other(code, name, "numbers of subjects and epsilon in its introduction", _NONE)


def require_request(code: int, said: Packet, name: str) -> None:
    """Refuse what is no request; arguments as of `require_introduction`.

    Raises:
        SiteError: of an unknown kind, or a word is missing or of another type.
    """
    if said.kind not in _REQUESTS:
        raise _other(code, name, f"a request of one of the kinds {', '.join(_REQUESTS)}", f"the kind {said.kind!r}")
    _require_words(code, said, name, _REQUESTS[said.kind])
    if said.kind == LEAVE:
        scores = said.about.get("scores", [])
        if not isinstance(scores, list) or not all(_has_words(row, _SCORES) for row in scores):
            raise _other(code, name, "scores as rows of counts and measures", "others")
    if is_sum(said):
        if said.tensors or not _is_sealed(said.about):
            raise _other(code, name, "types, shapes, bounds and a fingerprint of numbers to add up", _NONE)
    elif said.kind == REPLY and said.tensors:
        _require_words(code, said, name, _OPEN_REPLY)
        if not all(type(number) is int for number in said.about["samples"]):
            raise _other(code, name, "whole numbers of samples", "others")


def _require_words(code: int, said: Packet, name: str, words: Words) -> None:
    for word, kind in words.items():
        if not isinstance(said.about.get(word), kind):
            raise _other(code, name, f"the word {word!r} in a packet of kind {said.kind!r}", _NONE)


def _has_words(row: Any, words: Words) -> bool:
    return isinstance(row, dict) and all(word in row and isinstance(row[word], kind) for word, kind in words.items())


def _is_sealed(words: Mapping[str, Any]) -> bool:
    """Whether a request has the words of `seal`."""
    try:
        types = {str(name): np.dtype(kind) for name, kind in words[SUM].items()}
        arrays, fingerprint = words[SEALED]["arrays"], words[SEALED]["fingerprint"]
        whole = all(type(length) is int and length >= 0 for shape, _ in arrays.values() for length in shape)
        bounds = all(bound is None or is_bound(bound) for _, bound in arrays.values())
        return bool(isinstance(fingerprint, str) and types.keys() <= arrays.keys() and whole and bounds)
    except (LookupError, ValueError, TypeError, AttributeError):
        return False


def _other(code: int, name: str, expected: str, sent: str) -> SiteError:
    return SiteError(code, f"site {name!r}: expected {expected}, found {sent}; {SAME_VERSION}")
