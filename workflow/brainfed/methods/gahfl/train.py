"""The torch side of GAHFL, FedGEMS and Fed-ET, and of recurrent networks alone, pooled or on public subjects."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from brainfed.engines.distilling.public_crossings import record_public_pool, record_series_pool
from brainfed.engines.distilling.recipe import Recipe, Workplace, precision_of
from brainfed.engines.distilling.training import content_of, train_alone, train_distilled
from brainfed.federation.distillation.fedet import FedETObjective
from brainfed.federation.distillation.fedgems import FedGEMSObjective
from brainfed.federation.distillation.gahfl import GAHFLObjective
from brainfed.federation.distillation.gcna import initial_weights
from brainfed.federation.distillation.objective import Objective
from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import record_downloads
from brainfed.methods.fglbc.declaration import POOLED_SERIES
from brainfed.methods.gahfl.declaration import (
    DISTILLED_TENSORS,
    RECURRENT_PUBLIC,
    RECURRENT_TENSORS,
    DistilledSettings,
    FedETSettings,
    FedGEMSSettings,
    GAHFLSettings,
    LocalRecurrentSettings,
    OneRecurrentSettings,
)
from brainfed.methods.poisoned_inputs import poisoned_inputs
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import Outcome
from brainfed.samples.public_series_inputs import PublicSeriesInputs
from brainfed.samples.series_inputs import SeriesInputs

ONE = "the network"
"""Name of a trainer that no institution has."""


def workplace_of(
    inputs: SeriesInputs, settings: DistilledSettings | LocalRecurrentSettings | OneRecurrentSettings, run: Run
) -> Workplace:
    """What the trainers of one repeat share."""
    recipe = Recipe(
        hidden=settings.hidden,
        dropout=settings.dropout,
        length=settings.length,
        crops=settings.crops,
        drops_short=settings.short == "drop",
        rounds=settings.rounds,
        epochs=settings.local_epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
    )
    return Workplace(inputs, recipe, run)


def distil(
    inputs: PublicSeriesInputs,
    settings: DistilledSettings,
    run: Run,
    objective: Callable[[int], Objective],
) -> Outcome:
    """Train a distilled federation; `objective` maps the number of public samples to the server's loss."""
    robustness = settings.robustness()
    return train_distilled(
        workplace_of(poisoned_inputs(inputs, robustness), settings, run),
        settings.kinds(len(inputs.institutions), inputs.streams.repeat),
        settings.model,
        settings.global_epochs,
        settings.alpha,
        objective,
        DISTILLED_TENSORS,
        robustness,
    )


def train_local(inputs: SeriesInputs, settings: LocalRecurrentSettings, run: Run) -> Outcome:
    """Train every institution's network alone."""
    places = range(len(inputs.institutions))
    members = [inputs.members(place) for place in places]
    trained = [[own[inputs.training(fold)[own]] for fold in range(inputs.folds)] for own in members]
    kinds = settings.kinds(len(places), inputs.streams.repeat)
    workplace = workplace_of(inputs, settings, run)
    ledger = Ledger(RECURRENT_TENSORS, workplace.axes)
    return train_alone(workplace, inputs.institutions, kinds, members, trained, ledger)


def train_central(inputs: SeriesInputs, settings: OneRecurrentSettings, run: Run) -> Outcome:
    """Train one network on the series of all institutions."""
    workplace = workplace_of(inputs, settings, run)
    ledger = Ledger(POOLED_SERIES, workplace.axes)
    record_series_pool(inputs, ledger)
    trained = [np.flatnonzero(inputs.training(fold)) for fold in range(inputs.folds)]
    everybody = [np.arange(len(inputs.subjects))]
    return train_alone(workplace, (ONE,), (settings.model,), everybody, [trained], ledger)


def train_public(inputs: PublicSeriesInputs, settings: OneRecurrentSettings, run: Run) -> Outcome:
    """Train one network on the public subjects; the private ones are no members of its training."""
    workplace = workplace_of(inputs, settings, run)
    ledger = Ledger(RECURRENT_PUBLIC.crossing.tensors, workplace.axes)
    record_public_pool(inputs, workplace.usable(inputs.public_training(0)), ledger)
    trained = [inputs.public_training(fold) for fold in range(inputs.folds)]
    everybody = [np.arange(len(inputs.subjects))]
    sizes = {place: len(inputs.members(place)) for place in range(len(inputs.institutions))}
    if len(sizes) > 1:
        # The centre has no private subjects: each institution scores its own.
        record_downloads(ledger, sizes, content_of(workplace.network(settings.model)))
    outcome = train_alone(workplace, (ONE,), (settings.model,), everybody, [trained], ledger)
    return replace(outcome, crossings=ledger.rows(), member_scores=None)


def train_gahfl(inputs: PublicSeriesInputs, settings: GAHFLSettings, run: Run) -> Outcome:
    """Weigh institutions by a graph network, sample by sample (GAHFL Algorithm 1)."""
    start = initial_weights(inputs.streams, range(inputs.folds), inputs.classes)
    like = torch.empty(0, device=run.device, dtype=precision_of(run))

    def objective(samples: int) -> Objective:
        return GAHFLObjective(
            samples,
            inputs.classes,
            {name: tensor.to(like) for name, tensor in start.items()},
            beta=settings.beta,
            gamma=settings.gamma,
            epsilon=settings.epsilon,
            xi=settings.xi,
            momentum=settings.momentum,
            drop=settings.without,
            gcna_training=settings.gcna_training,
            self_evaluation=settings.self_evaluation,
            lifetime=settings.pool,
        )

    return distil(inputs, settings, run, objective)


def train_fedgems(inputs: PublicSeriesInputs, settings: FedGEMSSettings, run: Run) -> Outcome:
    """Weigh institutions by the entropy of their logits (FedGEMS eq. 1 to 5)."""

    def objective(samples: int) -> Objective:
        return FedGEMSObjective(
            inputs.folds,
            samples,
            inputs.classes,
            epsilon=settings.epsilon,
            xi=settings.epsilon,
            ensemble=settings.ensemble,
            self_evaluation=settings.self_evaluation,
            lifetime=settings.pool,
            device=torch.device(run.device),
            dtype=precision_of(run),
        )

    return distil(inputs, settings, run, objective)


def train_fedet(inputs: PublicSeriesInputs, settings: FedETSettings, run: Run) -> Outcome:
    """Weigh institutions by the variance of their logits (Cho et al. 2022, Sec. 3.2)."""
    objective = FedETObjective(consensus=settings.consensus, diversity=settings.diversity)
    return distil(inputs, settings, run, lambda _: objective)
