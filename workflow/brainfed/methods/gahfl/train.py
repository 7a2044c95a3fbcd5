"""The torch side of GAHFL, FedGEMS and Fed-ET, and of recurrent networks alone, pooled or on public subjects."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from brainfed.engines import train_networks
from brainfed.engines.distilling import DistilledTraining, Recipe, SoloTraining
from brainfed.federation.distillation import (
    FedETObjective,
    FedGEMSObjective,
    GAHFLObjective,
    Objective,
    initial_weights,
)
from brainfed.methods import poisoned_inputs
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
from brainfed.runtime.jobs import Run
from brainfed.samples import Outcome, PublicSeriesInputs, SeriesInputs


def recipe_of(settings: DistilledSettings | LocalRecurrentSettings | OneRecurrentSettings) -> Recipe:
    """The settings of networks, crops and steps."""
    return Recipe(
        hidden=settings.hidden,
        dropout=settings.dropout,
        length=settings.length,
        crops=settings.crops,
        drops_short=settings.short == "drop",
        rounds=settings.rounds,
        local_epochs=settings.local_epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
    )


def distil(
    inputs: PublicSeriesInputs, settings: DistilledSettings, run: Run, objective: Callable[[int], Objective]
) -> Outcome:
    """Train a distilled federation; `objective` maps the number of public samples to the server's loss."""
    robustness = settings.robustness()
    return train_networks(
        DistilledTraining(
            poisoned_inputs(inputs, robustness),
            recipe_of(settings),
            run,
            "federated",
            DISTILLED_TENSORS,
            robustness=robustness,
            kinds=settings.kinds(len(inputs.institutions), inputs.streams.repeat),
            kind=settings.model,
            global_epochs=settings.global_epochs,
            alpha=settings.alpha,
            objective=objective,
        )
    )


def train_local(inputs: SeriesInputs, settings: LocalRecurrentSettings, run: Run) -> Outcome:
    """Train every institution's network alone."""
    places = range(len(inputs.institutions))
    members = [inputs.members(place) for place in places]
    trained = [[own[inputs.training(fold)[own]] for fold in range(inputs.folds)] for own in members]
    kinds = settings.kinds(len(places), inputs.streams.repeat)
    recipe = recipe_of(settings)
    return train_networks(SoloTraining(inputs, recipe, run, "local", RECURRENT_TENSORS, kinds=kinds, trained=trained))


def train_central(inputs: SeriesInputs, settings: OneRecurrentSettings, run: Run) -> Outcome:
    """Train one network on the series of all institutions."""
    return train_networks(
        SoloTraining(
            inputs,
            recipe_of(settings),
            run,
            "central",
            POOLED_SERIES,
            kinds=(settings.model,),
            trained=[[np.flatnonzero(inputs.training(fold)) for fold in range(inputs.folds)]],
        )
    )


def train_public(inputs: PublicSeriesInputs, settings: OneRecurrentSettings, run: Run) -> Outcome:
    """Train one network on the public subjects; the private ones are no members of its training."""
    training = SoloTraining(
        inputs,
        recipe_of(settings),
        run,
        "central",
        RECURRENT_PUBLIC.crossing.tensors,
        kinds=(settings.model,),
        trained=[[inputs.public_training(fold) for fold in range(inputs.folds)]],
        public=True,
    )
    return replace(train_networks(training), member_scores=None)


def train_gahfl(inputs: PublicSeriesInputs, settings: GAHFLSettings, run: Run) -> Outcome:
    """Weigh institutions by a graph network, sample by sample (GAHFL Algorithm 1)."""
    start = initial_weights(inputs.streams, range(inputs.folds), inputs.classes)
    like = torch.empty(0, device=run.device, dtype=getattr(torch, run.precision))

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
            dtype=getattr(torch, run.precision),
        )

    return distil(inputs, settings, run, objective)


def train_fedet(inputs: PublicSeriesInputs, settings: FedETSettings, run: Run) -> Outcome:
    """Weigh institutions by the variance of their logits (Cho et al. 2022, Sec. 3.2)."""
    objective = FedETObjective(consensus=settings.consensus, diversity=settings.diversity)
    return distil(inputs, settings, run, lambda _: objective)
