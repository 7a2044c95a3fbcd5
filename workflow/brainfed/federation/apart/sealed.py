"""A request whose numbers stay at the site until they are masked: the coordinator sees their names, shapes and bounds.

Every name of an array has its shape, its type, and a power of 256 that bounds its magnitudes: a secure sum computes
with steps of a bound. The fingerprint of the numbers has a key of the site, as few numbers could be found by trying.
"""

import hmac
from collections.abc import Mapping
from math import ceil, frexp, isfinite, ldexp
from sys import float_info
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.apart.packet import Packet, arrays_digest
from brainfed.federation.apart.site_error import SiteError, usual

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
    """The request without its arrays.

    Args:
        request: with arrays to add up.
        key: of the fingerprint, a secret of the site.
    """
    digest = hmac.new(key.encode(), arrays_digest(request.tensors).encode(), "sha256").hexdigest()
    held = {"arrays": shapes_and_bounds(request), "fingerprint": digest}
    return Packet(request.kind, {**request.about, SEALED: held})


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
    """Name of an array -> bound at all sites.

    Args:
        requests: site -> sealed request, all of one step.
        names: site -> its name.

    Raises:
        SiteError: a site has another array than more than half of the sites, or a number that is not finite.
        DifferingSitesError: sites have other arrays, and no more than half of them have the same.
    """
    shapes = {code: _shapes(requests[code]) for code in sorted(requests)}
    lead, error = usual(shapes, len(names))
    first = requests[lead].about[SEALED]["arrays"]
    for code, found in shapes.items():
        own, expected = requests[code].about[SEALED]["arrays"], shapes[lead]
        where = f"site {names[code]!r}{_round_of(requests[code])}"
        if expected != found:
            raise error(
                code,
                f"{where}: expected {_beyond(expected, found)} as at site {names[lead]!r}, found "
                f"{_beyond(found, expected)}; compare the site's atlas, version and settings with those of the study.",
            )
        for name, (_, least) in own.items():
            if least is None:
                raise SiteError(
                    code,
                    f"{where}: expected finite numbers in {name}, found NaN or infinite ones; look at the site's "
                    "features and lower learning_rate. The state before this step is kept.",
                )
    return {name: max(requests[code].about[SEALED]["arrays"][name][1] for code in requests) for name in first}


def _shapes(request: Packet) -> dict[str, tuple[int, ...]]:
    return {name: tuple(shape) for name, (shape, _) in request.about[SEALED]["arrays"].items()}


def _round_of(request: Packet) -> str:
    return f", round {request.about['round'] + 1}" if "round" in request.about else ""


def _beyond(arrays: Mapping[str, tuple[int, ...]], others: Mapping[str, tuple[int, ...]]) -> str:
    """Those that the others lack, or have in another shape."""
    apart = [f"{name} of shape {shape}" for name, shape in arrays.items() if others.get(name) != shape]
    return ", ".join(apart) or "nothing more"
