"""The form of what a site says: a packet without the words of its kind is of another version."""

from collections.abc import Mapping
from math import inf
from typing import Any, Final

import numpy as np

from brainfed.federation.apart.exchange import LARGEST, LEAVE, OPEN, REPLY, TOTAL
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SEALED, SUM, is_bound, is_sum
from brainfed.federation.apart.site_error import SiteError

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
_SCORES: Final[Words] = {
    "variant": str,
    "repeat": int,
    "fold": int,
    "subjects": int,
    "counts": list,
    "measures": dict,
}
"""Of a row of scores."""
_OPEN_REPLY: Final[Words] = {"samples": list, "plain": list}
"""Of a reply whose numbers are not masked, besides."""


def require_introduction(code: int, said: Packet, name: str) -> None:
    """Refuse what is no introduction.

    Args:
        code: of the site.
        said: by the site.
        name: of the site.

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
    if said.kind == LEAVE and not _are_scores(said.about.get("scores", [])):
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


def _are_scores(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) and _has_words(row, _SCORES) for row in rows)


def _has_words(row: Mapping[str, Any], words: Words) -> bool:
    return all(word in row and isinstance(row[word], kind) for word, kind in words.items())


def _is_sealed(words: Mapping[str, Any]) -> bool:
    """Whether a request has the words of `sealed.seal`."""
    try:
        types = {str(name): np.dtype(kind) for name, kind in words[SUM].items()}
        arrays, fingerprint = words[SEALED]["arrays"], words[SEALED]["fingerprint"]
        whole = all(type(length) is int and length >= 0 for shape, _ in arrays.values() for length in shape)
        bounds = all(bound is None or is_bound(bound) for _, bound in arrays.values())
        return bool(isinstance(fingerprint, str) and types.keys() <= arrays.keys() and whole and bounds)
    except (LookupError, ValueError, TypeError, AttributeError):
        return False


def _other(code: int, name: str, expected: str, found: str) -> SiteError:
    return SiteError(
        code,
        f"site {name!r}: expected {expected}, found {found}; use the same version of brainfed at the coordinator and "
        "at all sites.",
    )
