"""The rounds of federated training: choose -> broadcast -> train -> privatise -> aggregate (FedNI Alg. 1 B).

Institutions and folds are the first two axes of every tensor, so one loop trains them all. The same
loop with `exchange=False` trains every institution alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.adam import Adam
from brainfed.federation.aggregation import average, institution_weights
from brainfed.federation.exchange import DIRECTIONS, Ledger
from brainfed.federation.privacy import add_weight_noise
from brainfed.federation.schedule import FederationSettings
from brainfed.federation.selection import choose
from brainfed.federation.state import Curves, DrawingModel, Pace, StackedModel, resume_state, save_state
from brainfed.runtime.jobs.checkpoints import Checkpoint
from brainfed.runtime.jobs.stopping import whole
from brainfed.runtime.streams import Streams

SIZE_BYTES = 4
"""An institution's number of training subjects, int32."""


def run_rounds(
    model: StackedModel,
    labels: Tensor,
    subjects: Sequence[int],
    settings: FederationSettings,
    folds: Sequence[int],
    streams: Streams,
    ledger: Ledger,
    checkpoint: Checkpoint,
    progress: Callable[[int, int, str], None],
    *,
    exchange: bool = True,
) -> Curves:
    """Train `model` in place and return its curves.

    Args:
        model: weights of all institutions, equal at the start.
        labels: (M, F, n) in {0, 1}, -1 where a node has no training label.
        subjects: (M,) number of subjects of each institution, for the ledger's check.
        settings: of the federation.
        folds: the numbers of the stacked folds, which key the random streams.
        streams: of the repeat.
        ledger: records what crosses.
        checkpoint: is read once and written after the rounds.
        progress: called after every round.
        exchange: False trains every institution alone, with an optimiser that is never reset.
    """
    counts = (labels >= 0).sum(dim=2).cpu()
    everyone = torch.ones(len(subjects), dtype=torch.bool)
    optimiser = Adam(model.parameters(), settings.learning_rate, settings.weight_decay)
    keeps = settings.optimiser_state == "keep" or not exchange
    curves = Curves(np.zeros((settings.rounds, *labels.shape)), np.zeros((settings.rounds, *labels.shape[:2])))
    pace = Pace()
    start = resume_state(model, optimiser, curves, checkpoint, ledger)
    for number in whole(range(start, settings.rounds)):
        chosen = choose(len(subjects), settings.fraction, streams, number) if exchange else everyone
        before = {name: stack[0].clone() for name, stack in model.stacks().items()} if settings.fraction < 1 else {}
        if not keeps:
            optimiser.reset()
        curves.losses[number] = _train_locally(
            model, optimiser, labels, chosen, subjects, settings, folds, streams, number
        )
        if exchange:
            _communicate(model, counts, chosen, before, subjects, settings, folds, streams, ledger, number)
        curves.probabilities[number] = model.probabilities().cpu().numpy()
        progress(number + 1, settings.rounds, f"loss {np.nanmean(curves.losses[number]):.4f}, round")
        last = number + 1 == settings.rounds
        if last or pace.due():
            with pace.writing():
                save_state(
                    model, optimiser, curves, checkpoint, number, ledger, shared=exchange, keeps=keeps and not last
                )
    return curves


def _train_locally(
    model: StackedModel,
    optimiser: Adam,
    labels: Tensor,
    chosen: Tensor,
    subjects: Sequence[int],
    settings: FederationSettings,
    folds: Sequence[int],
    streams: Streams,
    number: int,
) -> NDArray[np.float64]:
    total, steps = torch.zeros(2, *labels.shape[:2], dtype=torch.float64, device=labels.device)
    for epoch in range(settings.local_epochs):
        batches = _batches(labels, settings.batch, subjects, folds, streams, number, epoch)
        for step, batch in enumerate(batches):
            if isinstance(model, DrawingModel):
                model.draw_anew(number, epoch, step)
            losses = model.training_step(batch, chosen).double()
            optimiser.step()
            total += losses.nan_to_num(0.0)
            steps += losses.isfinite()
    return np.asarray((total / steps).cpu().numpy())


def local_steps(
    subjects: Sequence[int], settings: FederationSettings, streams: Streams, *, exchange: bool = True
) -> int:
    """Local steps of all institutions in all rounds together, one fold's worth."""
    batches = 1 if settings.batch == 0 else -(-max(subjects) // settings.batch)
    rounds = (
        int(choose(len(subjects), settings.fraction, streams, number).sum()) if exchange else len(subjects)
        for number in range(settings.rounds)
    )
    return sum(rounds) * settings.local_epochs * batches


def _batches(
    labels: Tensor,
    size: int,
    subjects: Sequence[int],
    folds: Sequence[int],
    streams: Streams,
    number: int,
    epoch: int,
) -> list[Tensor]:
    """Labels (M, F, n) of each local step, -1 for subjects outside the batch.

    The largest institution decides the number of steps, so that no fold depends on another's size.
    """
    if size == 0:
        return [labels]
    labelled = labels.cpu() >= 0
    steps = -(-max(subjects) // size)
    step = torch.full(labels.shape, -1)
    for institution in range(labels.shape[0]):
        for position, fold in enumerate(folds):
            nodes = torch.nonzero(labelled[institution, position])[:, 0].numpy()
            order = streams.numpy("batches", institution, fold, number, epoch).permutation(nodes)
            step[institution, position, torch.from_numpy(order)] = torch.arange(len(order)) % steps
    step = step.to(labels.device)
    return [torch.where(step == index, labels, -1) for index in range(steps)]


def _communicate(
    model: StackedModel,
    counts: Tensor,
    chosen: Tensor,
    before: dict[str, Tensor],
    subjects: Sequence[int],
    settings: FederationSettings,
    folds: Sequence[int],
    streams: Streams,
    ledger: Ledger,
    number: int,
) -> None:
    stacks = model.stacks()
    add_weight_noise(stacks, settings.noise, streams, number, folds)
    trains = chosen & (counts[:, 0] > 0)
    if number == 0 and (settings.weighting == "subjects" or settings.batch):
        _record_sizes(counts, subjects, ledger)
    for institution in torch.nonzero(trains)[:, 0].tolist():
        for name, stack in stacks.items():
            for direction in DIRECTIONS:
                ledger.record(
                    name,
                    stack.shape[2:],
                    stack.element_size(),
                    direction=direction,
                    round_index=number,
                    institution=institution,
                    subjects=subjects[institution],
                )
    weights = institution_weights(counts, chosen, settings.weighting)
    means = average(stacks, weights)
    for position in torch.nonzero(weights.sum(dim=0) == 0)[:, 0].tolist():
        for name, mean in means.items():
            mean[position] = before[name][position]
    model.load(means)


def _record_sizes(counts: Tensor, subjects: Sequence[int], ledger: Ledger) -> None:
    """Weights n_m / n, and as many steps everywhere as the largest institution needs, take everybody's number."""
    for institution in torch.nonzero(counts[:, 0] > 0)[:, 0].tolist():
        ledger.record(
            "training-subjects",
            (),
            SIZE_BYTES,
            direction="upload",
            round_index=0,
            institution=institution,
            subjects=subjects[institution],
        )
