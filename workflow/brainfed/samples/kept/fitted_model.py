"""A fitted model without its subjects: all that scores a subject alone, from features."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class FittedModel:
    """The model of one fold. No array has an axis of subjects.

    Attributes:
        shared: arrays that are the same at all institutions.
        own: arrays (M, ...), one entry an institution; NaN at an institution that trained no model of its own.
    """

    shared: Arrays
    own: Arrays = field(default_factory=dict)

    def at(self, institution: int | None) -> dict[str, NDArray[Any]]:
        """The arrays that score a subject of an institution; None: a model without own arrays."""
        if institution is None and self.own:
            raise ValueError(f"expected an institution for {sorted(self.own)}, found none")
        own = {name: array[institution] for name, array in self.own.items()}
        return {**self.shared, **own}

    def helpers(self, institution: int | None) -> list[int | None]:
        """The institutions whose models score a subject of this one: itself, or all others if it trained none."""
        if institution is None or not self.own or _trained(self.own, institution):
            return [institution]
        count = len(next(iter(self.own.values())))
        return [code for code in range(count) if _trained(self.own, code)]


@dataclass(frozen=True)
class Scored:
    """Subjects, as a model scores them.

    Attributes:
        scores: (n, C), as of `Outcome`.
        rows: (n, d) features as the model multiplies them: centred and scaled.
    """

    scores: NDArray[np.float64]
    rows: NDArray[np.float64]


Score = Callable[[Arrays, NDArray[np.float32], Mapping[str, Any]], Scored]
"""Arrays of one institution, features (n, d), settings -> scores; named by `Method.capabilities.model`."""


def score_at(
    model: FittedModel,
    institution: int | None,
    features: NDArray[np.float32],
    settings: Mapping[str, Any],
    score: Score,
) -> Scored:
    """Score subjects of one institution; without a model of its own, by the mean of the scores of all others.

    Raises:
        UserError: a score is not finite.
    """
    found = [score(model.at(code), features, settings) for code in model.helpers(institution)]
    scores, rows = (np.mean([getattr(one, name) for one in found], axis=0) for name in ("scores", "rows"))
    if not np.isfinite(scores).all():
        raise UserError("Model: expected finite scores, found others; the features are far beyond those of training.")
    return Scored(scores, rows)


def with_alike_shared(shared: Arrays, stacks: Arrays) -> FittedModel:
    """A model whose stacks (M, ...) that are the same at all institutions are kept once."""
    alike = {name: stack[0] for name, stack in stacks.items() if (stack == stack[:1]).all()}
    own = {name: stack for name, stack in stacks.items() if name not in alike}
    return FittedModel({**shared, **alike}, own)


def _trained(own: Arrays, institution: int) -> bool:
    return not any(np.isnan(array[institution]).any() for array in own.values())
