"""One fold of a ridge regression by conjugate gradients, equal to the solution of the pooled data."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.linear.clients import KrylovClients
from brainfed.engines.linear.design import LinearDesign
from brainfed.engines.linear.scores import margins, training_losses
from brainfed.engines.linear.task import Curves, FoldTask
from brainfed.engines.training import run_until_finished
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.strategies.krylov import Krylov
from brainfed.federation.wire import Wire

logger = logging.getLogger(__name__)


def solve(fold: FoldTask, design: LinearDesign) -> Curves:
    """Scores after each direction have the penalties chosen at the end; patterns are in units of the design.

    Of institutions that are apart, the last scores alone are known.
    """
    task = fold.task
    clients = KrylovClients(design, task.rounds, fold.members)
    link = fold.inputs.link
    krylov = Krylov(clients.institutions, design.models, task.alphas, task.rounds, task.tolerance)
    wire = Wire(fold.ledger, fold.sizes, WeightNoise(0.0, fold.inputs.streams, (fold.fold,)))
    part, most = fold.run.checkpoint.part(f"fold-{fold.fold}"), task.rounds + 2
    found = run_until_finished(clients, krylov, wire, most, link, part, fold.progress_at_most).published()
    fold.run.progress(fold.fold + 1, fold.inputs.folds, "fold")
    if (error := float(found["error"])) > task.tolerance:
        logger.warning(
            "fold %d: %d directions leave an error of up to %.1e in a score, expected %.1e; raise `rounds`",
            fold.fold + 1,
            int(found["directions"]),
            error,
            task.tolerance,
        )
    every = [_last_scores(design, found)] if link.apart else _all_scores(clients, krylov)
    return Curves(
        np.stack([margins(scores) for scores in every]),
        np.stack([training_losses(design, fold.members, scores) for scores in every]),
        found["patterns"],
        found["weights"],
        found["intercepts"],
    )


def _all_scores(clients: KrylovClients, server: Krylov) -> list[Tensor]:
    """(C, n) scores after each direction, with the penalties chosen at the end."""
    penalties, spaces = server.own_penalties(), server.spaces
    return [clients.scores(*spaces.solution(penalties, size))[:, 0] for size in range(1, spaces.size + 1)]


def _last_scores(design: LinearDesign, found: Mapping[str, NDArray[Any]]) -> Tensor:
    """(C, n) scores by the published models: the coordinator keeps what the scores after fewer directions need."""
    weights, intercepts = (
        torch.from_numpy(found[name].copy()).to(design.features) for name in ("weights", "intercepts")
    )
    return weights @ design.features.T + intercepts[:, None]
