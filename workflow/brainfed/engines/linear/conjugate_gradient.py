"""One fold of a ridge regression by conjugate gradients, equal to the solution of the pooled data."""

import logging

import numpy as np

from brainfed.engines.linear.clients import KrylovClients
from brainfed.engines.linear.design import LinearDesign
from brainfed.engines.linear.scores import margins, training_losses
from brainfed.engines.linear.task import Curves, FoldTask
from brainfed.federation.loop import federate
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.strategies.krylov import Krylov
from brainfed.federation.wire import Wire

logger = logging.getLogger(__name__)


def solve(fold: FoldTask, design: LinearDesign) -> Curves:
    """Scores after each direction have the penalties chosen at the end; patterns are in units of the design."""
    task = fold.task
    clients = KrylovClients(design, task.rounds, fold.members)
    server = Krylov(clients.institutions, design.models, task.alphas, task.rounds, task.tolerance)
    wire = Wire(fold.ledger, fold.sizes, WeightNoise(0.0, fold.inputs.streams, (fold.fold,)))
    part = fold.run.checkpoint.part(f"fold-{fold.fold}")
    federate(clients, server, wire, task.rounds + 2, part, fold.progress, finished=server.finished)
    penalties, spaces = server.own_penalties(), server.spaces
    if (error := spaces.error(penalties)) > task.tolerance:
        logger.warning(
            "fold %d: %d directions leave an error of up to %.1e in a score, expected %.1e; raise `rounds`",
            fold.fold + 1,
            spaces.size,
            error,
            task.tolerance,
        )
    every = [clients.scores(*spaces.solution(penalties, size))[:, 0] for size in range(1, spaces.size + 1)]
    return Curves(
        np.stack([margins(scores) for scores in every]),
        np.stack([training_losses(design, fold.members, scores) for scores in every]),
        spaces.patterns(penalties)[:, 0].cpu().numpy(),
        spaces.weights(penalties)[:, 0].cpu().numpy(),
    )
