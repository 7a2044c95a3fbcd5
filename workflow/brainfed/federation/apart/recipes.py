"""A strategy as names, JSON values and arrays: what a coordinator needs to make the one that the institutions mean.

The coordinator holds no subjects and no networks. All institutions state their recipe, which settings and seed of the
study decide, and the coordinator refuses recipes that differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.strategies.fedavg import FedAvg, Selection, Strategy
from brainfed.federation.strategies.gcfl import GCFL, GradientNorms, UpdateCosine
from brainfed.federation.strategies.krylov import Krylov
from brainfed.federation.strategies.quasi_newton import Objective, PenaltyPath, QuasiNewton
from brainfed.federation.strategies.similarity_weighted import SimilarityWeighted
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams

Codes = tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """How to make a strategy.

    Attributes:
        strategy: its name, a key of `RECIPES`.
        settings: JSON values.
        tensors: name -> array, as the initial model.
    """

    strategy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)


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
            f"expected one of the strategies {', '.join(RECIPES)}, found {recipe.strategy!r}; use the same version of "
            "brainfed at the coordinator and at all sites."
        )
    made: Strategy = RECIPES[recipe.strategy][2](recipe, institutions)
    return made


def _fedavg(strategy: FedAvg) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if strategy.defence is not None:
        raise UserError("a federation between sites: expected `defence: none`, found a defence; it is for simulations.")
    return {"weighting": strategy.weighting, **_selection(strategy)}, _arrays(strategy.tensors)


def _made_fedavg(recipe: Recipe, institutions: Codes) -> FedAvg:
    return FedAvg(institutions, _tensors(recipe), recipe.settings["weighting"], _selected(recipe))


def _similarity_weighted(strategy: SimilarityWeighted) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    settings = {"tau": strategy.tau, "components": strategy.components, "literal": strategy.literal}
    return settings | _selection(strategy), _arrays(strategy.tensors)


def _made_similarity_weighted(recipe: Recipe, institutions: Codes) -> SimilarityWeighted:
    settings = recipe.settings
    return SimilarityWeighted(
        institutions,
        _tensors(recipe),
        settings["tau"],
        settings["components"],
        literal=settings["literal"],
        selection=_selected(recipe),
    )


def _gcfl(strategy: GCFL) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    similarity = strategy.similarity
    settings = {
        "eps1": strategy.eps1,
        "eps2": strategy.eps2,
        "first_round": strategy.first_round,
        "clustering": strategy.clustering,
        "weighting": strategy.weighting,
        "sequence": similarity.length if isinstance(similarity, GradientNorms) else 0,
    }
    return settings, _arrays({name: tensor[0] for name, tensor in strategy.tensors.items()})


def _made_gcfl(recipe: Recipe, institutions: Codes) -> GCFL:
    settings = dict(recipe.settings)
    sequence = settings.pop("sequence")
    similarity = GradientNorms(sequence) if sequence else UpdateCosine()
    return GCFL(institutions, _tensors(recipe), similarity, **settings)


def _krylov(strategy: Krylov) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    settings = {
        "models": strategy.models,
        "penalties": strategy.penalties.tolist(),
        "rounds": strategy.rounds,
        "tolerance": strategy.tolerance,
    }
    return settings, {}


def _made_krylov(recipe: Recipe, institutions: Codes) -> Krylov:
    return Krylov(institutions, **recipe.settings)


def _objective(objective: Objective) -> dict[str, Any]:
    settings = {name: getattr(objective, name) for name in ("features", "curvature", "tolerance", "rounds", "prefix")}
    return settings | {"dtype": str(objective.dtype).removeprefix("torch.")}


def _made_objective(recipe: Recipe) -> Objective:
    settings = dict(recipe.settings["objective"])
    dtype = getattr(torch, settings.pop("dtype"))
    return Objective(_tensors(recipe)["counts"], dtype=dtype, **settings)


def _quasi_newton(strategy: QuasiNewton) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    counts, penalties = strategy.objective.counts, strategy.held["penalties"]
    return {"objective": _objective(strategy.objective)}, _arrays({"counts": counts, "penalties": penalties})


def _made_quasi_newton(recipe: Recipe, institutions: Codes) -> QuasiNewton:
    return QuasiNewton(institutions, _made_objective(recipe), _tensors(recipe)["penalties"])


def _penalty_path(strategy: PenaltyPath) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    objective = strategy.server.objective
    settings = {"objective": _objective(objective), "costs": strategy.costs.tolist()}
    return settings, _arrays({"counts": objective.counts, "groups": strategy.groups})


def _made_penalty_path(recipe: Recipe, institutions: Codes) -> PenaltyPath:
    return PenaltyPath(institutions, _made_objective(recipe), recipe.settings["costs"], _tensors(recipe)["groups"])


def _selection(strategy: FedAvg) -> dict[str, Any]:
    selection = strategy.selection
    if selection is None:
        return {"selection": None}
    streams = selection.streams
    return {"selection": [selection.institutions, selection.fraction, streams.seed, streams.repeat]}


def _selected(recipe: Recipe) -> Selection | None:
    stated = recipe.settings["selection"]
    return None if stated is None else Selection(stated[0], stated[1], Streams(stated[2], stated[3]))


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in tensors.items()}


def _tensors(recipe: Recipe) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in recipe.tensors.items()}


RECIPES: Mapping[
    str, tuple[type, Callable[..., tuple[dict[str, Any], dict[str, NDArray[Any]]]], Callable[..., Any]]
] = {
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
