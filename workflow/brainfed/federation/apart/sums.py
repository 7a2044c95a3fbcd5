"""Sums over institutions: of numbers that cross open, and of replies of which a strategy needs the sum alone.

Such replies can be added up by a protocol that shows the coordinator no single one.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import SiteError, usual
from brainfed.federation.link import Arrays
from brainfed.federation.message import Message

SAMPLES = "samples"
"""Name of the addend that other addends are weighted by."""
SUMS = frozenset({"krylov", "quasi-newton", "penalty-path"})
MEANS = frozenset({"fedavg"})
"""Strategies, by the names of their recipes, that need sums, and weighted means."""


def addends(strategy: str, settings: Mapping[str, Any], reply: Message) -> Arrays | None:
    """What an institution gives to the sum of a round; None: the strategy needs each reply by itself.

    Args:
        strategy: name of its recipe.
        settings: of its recipe.
        reply: of the institution.
    """
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in reply.tensors.items()}
    if strategy in SUMS:
        return arrays
    if strategy not in MEANS:
        return None
    samples = reply.samples.cpu().numpy()
    weight = (samples if settings["weighting"] == "subjects" else samples > 0).astype(np.float64)
    # A fold without training subjects adds nothing, whatever its model is.
    inside = {name: np.where(_wide(weight > 0, array), array, 0.0) for name, array in arrays.items()}
    return {**{name: _wide(weight, array) * array for name, array in inside.items()}, SAMPLES: weight}


def reply_of_sum(strategy: str, sums: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> Message:
    """One reply in the place of all: for sums their sum, for means their mean with the sum of all weights.

    Args:
        strategy: name of its recipe.
        sums: name -> sum of `addends`.
        types: name -> numpy's name of the type that the strategy's tensors have.
    """
    if strategy in SUMS:
        return Message(_tensors(typed(sums, types)), summed=True)
    weight = sums[SAMPLES]
    divisor = np.where(weight > 0, weight, 1.0)
    means = {name: array / _wide(divisor, array) for name, array in sums.items() if name != SAMPLES}
    return Message(_tensors(typed(means, types)), torch.from_numpy(np.rint(weight).astype(np.int64)))


def typed(sums: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> Arrays:
    """Real numbers as numbers of the types that are named; whole ones are rounded."""
    whole = {name for name, kind in types.items() if np.issubdtype(np.dtype(kind), np.integer)}
    return {name: (np.rint(array) if name in whole else array).astype(types[name]) for name, array in sums.items()}


def added(requests: Mapping[int, Packet], names: Mapping[int, str]) -> Arrays:
    """Sums by name, in the order of the institutions.

    Raises:
        SiteError: a number is not finite, or a site has another shape than more than half of the sites.
        DifferingSitesError: sites have different shapes, and no more than half of them the same.
    """
    found: Arrays = {}
    shapes = {code: {name: array.shape for name, array in each.tensors.items()} for code, each in requests.items()}
    lead, error = usual(shapes, len(names))
    for code, request in sorted(requests.items()):
        for name, array in request.tensors.items():
            if not np.isfinite(array).all():
                raise SiteError(
                    code,
                    f"site {names[code]!r}: expected finite numbers in {name}, found NaN or infinite ones; look at the "
                    "site's features.",
                )
            if (expected := shapes[lead].get(name)) != array.shape:
                raise error(
                    code,
                    f"site {names[code]!r}: expected {name} of shape {expected} as at site {names[lead]!r}, found "
                    f"{array.shape}; compare the site's atlas and settings with those of the study.",
                )
            found[name] = found[name] + array if name in found else np.array(array)
    return found


def _tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _wide(each: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """A number a fold (F,), for an array (F, ...)."""
    return each.reshape(-1, *(1 for _ in array.shape[1:]))
