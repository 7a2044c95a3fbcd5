"""A strategy as names, JSON values and arrays: what a coordinator needs to make the one that the institutions mean.

The coordinator holds no subjects and no networks. All institutions state their recipe, which settings and seed of the
study decide, and the coordinator refuses recipes that differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Arrays, Message
from brainfed.federation.strategies import (
    GCFL,
    FedAvg,
    GradientNorms,
    Krylov,
    Objective,
    PenaltyPath,
    QuasiNewton,
    Selection,
    SimilarityWeighted,
    Strategy,
    UpdateCosine,
)
from brainfed.runtime import Streams, UserError
from brainfed.sites._packet import SAME_VERSION, Packet, SiteError, arrays_digest, usual

Codes = tuple[int, ...]
Stated = tuple[dict[str, Any], Arrays]
"""Settings and tensors of a recipe."""


@dataclass(frozen=True)
class Recipe:
    """How to make a strategy.

    Attributes:
        strategy: its name, a key of `RECIPES`.
        settings: JSON values.
        tensors: name -> array, as the initial model.
    """

    strategy: str
    settings: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]

    def stated(self, rounds: int) -> dict[str, Any]:
        """What all institutions state alike when they open a training of so many rounds."""
        return {
            "strategy": self.strategy,
            "settings": dict(self.settings),
            "tensors": arrays_digest(self.tensors),
            "rounds": rounds,
        }


def recipe_of(strategy: Strategy) -> Recipe:
    """The recipe of an untrained strategy, without its institutions.

    Raises:
        UserError: it has none.
    """
    for name, (kind, stated, _) in RECIPES.items():
        if type(strategy) is kind:
            return Recipe(name, *stated(strategy))
    raise UserError(
        f"a federation between sites: expected one of the strategies {', '.join(RECIPES)}, found "
        f"{type(strategy).__name__}, which runs in a simulation alone; choose another method."
    )


def made_by(recipe: Recipe, institutions: Codes) -> Strategy:
    """The strategy of these institutions.

    Raises:
        UserError: there is no strategy of this name.
    """
    if recipe.strategy not in RECIPES:
        raise UserError(
            f"expected one of the strategies {', '.join(RECIPES)}, found {recipe.strategy!r}; {SAME_VERSION}"
        )
    made: Strategy = RECIPES[recipe.strategy][2](recipe, institutions)
    return made


def _fedavg(strategy: FedAvg) -> Stated:
    if strategy.defence is not None:
        raise UserError("a federation between sites: expected `defence: none`, found a defence; it is for simulations.")
    return {"weighting": strategy.weighting, **_selection(strategy)}, _arrays(strategy.tensors)


def _made_fedavg(recipe: Recipe, institutions: Codes) -> FedAvg:
    return FedAvg(institutions, _tensors(recipe.tensors), recipe.settings["weighting"], _selected(recipe))


def _similarity_weighted(strategy: SimilarityWeighted) -> Stated:
    settings = _named(strategy, "tau", "components", "literal")
    return settings | _selection(strategy), _arrays(strategy.tensors)


def _made_similarity_weighted(recipe: Recipe, institutions: Codes) -> SimilarityWeighted:
    settings = recipe.settings
    return SimilarityWeighted(
        institutions,
        _tensors(recipe.tensors),
        settings["tau"],
        settings["components"],
        literal=settings["literal"],
        selection=_selected(recipe),
    )


def _gcfl(strategy: GCFL) -> Stated:
    settings = _named(strategy, "eps1", "eps2", "first_round", "clustering", "weighting")
    settings["sequence"] = strategy.similarity.length if isinstance(strategy.similarity, GradientNorms) else 0
    return settings, _arrays({name: tensor[0] for name, tensor in strategy.tensors.items()})


def _made_gcfl(recipe: Recipe, institutions: Codes) -> GCFL:
    settings = dict(recipe.settings)
    sequence = settings.pop("sequence")
    similarity = GradientNorms(sequence) if sequence else UpdateCosine()
    return GCFL(institutions, _tensors(recipe.tensors), similarity, **settings)


def _krylov(strategy: Krylov) -> Stated:
    return _named(strategy, "models", "rounds", "tolerance") | {"penalties": strategy.penalties.tolist()}, {}


def _made_krylov(recipe: Recipe, institutions: Codes) -> Krylov:
    return Krylov(institutions, **recipe.settings)


def _objective(objective: Objective) -> dict[str, Any]:
    settings = _named(objective, "features", "curvature", "tolerance", "rounds", "prefix")
    return settings | {"dtype": str(objective.dtype).removeprefix("torch.")}


def _made_objective(recipe: Recipe) -> Objective:
    settings = dict(recipe.settings["objective"])
    dtype = getattr(torch, settings.pop("dtype"))
    return Objective(_tensors(recipe.tensors)["counts"], dtype=dtype, **settings)


def _quasi_newton(strategy: QuasiNewton) -> Stated:
    counts, penalties = strategy.objective.counts, strategy.tensors["penalties"]
    return {"objective": _objective(strategy.objective)}, _arrays({"counts": counts, "penalties": penalties})


def _made_quasi_newton(recipe: Recipe, institutions: Codes) -> QuasiNewton:
    return QuasiNewton(institutions, _made_objective(recipe), _tensors(recipe.tensors)["penalties"])


def _penalty_path(strategy: PenaltyPath) -> Stated:
    objective = strategy.server.objective
    settings = {"objective": _objective(objective), "costs": strategy.costs.tolist()}
    return settings, _arrays({"counts": objective.counts, "groups": strategy.groups})


def _made_penalty_path(recipe: Recipe, institutions: Codes) -> PenaltyPath:
    groups = _tensors(recipe.tensors)["groups"]
    return PenaltyPath(institutions, _made_objective(recipe), recipe.settings["costs"], groups)


def _selection(strategy: FedAvg) -> dict[str, Any]:
    selection = strategy.selection
    if selection is None:
        return {"selection": None}
    streams = selection.streams
    return {"selection": [selection.institutions, selection.fraction, streams.seed, streams.repeat]}


def _selected(recipe: Recipe) -> Selection | None:
    stated = recipe.settings["selection"]
    return None if stated is None else Selection(stated[0], stated[1], Streams(stated[2], stated[3]))


def _named(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def _arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in tensors.items()}


def _tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


RECIPES: Mapping[str, tuple[type, Callable[..., Stated], Callable[..., Any]]] = {
    "fedavg": (FedAvg, _fedavg, _made_fedavg),
    "similarity-weighted": (SimilarityWeighted, _similarity_weighted, _made_similarity_weighted),
    "gcfl": (GCFL, _gcfl, _made_gcfl),
    "krylov": (Krylov, _krylov, _made_krylov),
    "quasi-newton": (QuasiNewton, _quasi_newton, _made_quasi_newton),
    "penalty-path": (PenaltyPath, _penalty_path, _made_penalty_path),
}
"""Name -> class, what states it, what makes it."""
WITHOUT_SOME = frozenset({"fedavg", "similarity-weighted"})
"""Strategies whose round may end without some institutions, as if these had not been drawn."""


# Sums over institutions: of numbers that cross open, and of replies of which a strategy needs the sum alone.
#
# Such replies can be added up by a protocol that shows the coordinator no single one.

SAMPLES = "samples"
"""Name of the addend that other addends are weighted by."""
SUMS = frozenset({"krylov", "quasi-newton", "penalty-path"})
MEANS = frozenset({"fedavg"})
"""Strategies, by the names of their recipes, that need sums, and weighted means."""


def addends(recipe: Recipe, reply: Message) -> Arrays | None:
    """What an institution's reply gives to the sum of a round; None: the strategy needs each reply by itself."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in reply.tensors.items()}
    if recipe.strategy in SUMS:
        return arrays
    if recipe.strategy not in MEANS:
        return None
    samples = reply.samples.cpu().numpy()
    weight = (samples if recipe.settings["weighting"] == "subjects" else samples > 0).astype(np.float64)
    # A fold without training subjects adds nothing, whatever its model is.
    inside = {name: np.where(_wide(weight > 0, array), array, 0.0) for name, array in arrays.items()}
    return {**{name: _wide(weight, array) * array for name, array in inside.items()}, SAMPLES: weight}


def reply_of_sum(strategy: str, sums: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> Message:
    """One reply in the place of all: for sums their sum, for means their mean with the sum of all weights.

    `sums` are those of `addends`; `types` has numpy's name of the type of each of the strategy's tensors.
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
        SiteError: a number is not finite, or a site has another shape (see `usual`).
    """
    sums: Arrays = {}
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
            sums[name] = sums[name] + array if name in sums else np.array(array)
    return sums


def _wide(each: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """A number a fold (F,), for an array (F, ...)."""
    return each.reshape(-1, *(1 for _ in array.shape[1:]))
