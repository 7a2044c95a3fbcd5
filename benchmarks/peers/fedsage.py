"""FedSage+'s generators of missing neighbours: a loop over owners, rounds and hosts, and `inpainting.fedsage`.

Both sides have the same modules, hidden nodes and noise on embeddings. The loop takes gradients by autograd and finds
the nearest missing neighbours with `torch.cdist`; the authors' code loops over nodes and slots.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from made_up_cohort import MadeUpCohort
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from brainfed.inpainting import FedSageSettings, InpaintingInputs
from brainfed.inpainting.fedsage import Draws, Owner, owners_of
from brainfed.inpainting.fedsage.training import train
from brainfed.models import FeatureGenerator, GeneratorShape, MissingNeighbourGenerator
from brainfed.runtime import seeded
from brainfed.runtime.jobs import Run
from peers.comparison import Comparison, Result, agreed, compared, named, timed

TOLERANCE, EXACT = 1e-4, 1e-9


def fedsage(quick: bool) -> Comparison:
    """Losses of local epochs and federated rounds of all owners."""
    features, subjects = (60, 100) if quick else (7381, 871)
    inputs = MadeUpCohort(features, subjects).inpainting_inputs()
    settings = replace(FedSageSettings(), local_epochs=3, rounds=3, noise=0.0, dropout=0.0)
    theirs, ours = (partial(side, inputs, settings) for side in (_by_loop, _by_brainfed))
    exact = agreed("FedSage+ in float64", theirs(dtype=torch.float64), ours(dtype=torch.float64), EXACT)
    shape = f"{subjects} subjects, {features} features, {len(inputs.institutions)} owners"
    work = f"{shape}, 3 local epochs, 3 rounds: losses"
    return compared(
        "FedSage+'s generators", f"{named('torch')} (loop)", work, timed(theirs), timed(ours), TOLERANCE, exact
    )


def _by_brainfed(inputs: InpaintingInputs, settings: FedSageSettings, dtype: torch.dtype = torch.float32) -> Result:
    """(losses,) of an owner after the other: of each epoch and round by the name of the loss."""
    history = train(inputs, settings, Run(precision="float64" if dtype == torch.float64 else "float32")).history
    return history.loc[history["loss"] != "hidden_fraction", "value"].to_numpy()


def _by_loop(inputs: InpaintingInputs, settings: FedSageSettings, dtype: torch.dtype = torch.float32) -> Result:
    """The same with PyTorch."""
    owners = owners_of(inputs, settings, torch.device("cpu"), dtype)
    shape = GeneratorShape(inputs.features.shape[1], settings.targets, settings.fgen_width)
    with seeded(inputs.streams.key("fedsage-start", inputs.part)):
        start = MissingNeighbourGenerator(shape).to(dtype)
    draws = Draws(inputs.streams, inputs.part, settings.dropout)
    generators, losses = [deepcopy(start) for _ in owners], [[] for _ in owners]
    for owner, generator, own in zip(owners, generators, losses, strict=True):
        optimiser = torch.optim.Adam(generator.parameters(), settings.learning_rate)
        for epoch in range(settings.local_epochs):
            embeddings = generator.encoder(owner.propagated, owner.propagation)
            count = smooth_l1_loss(generator.dgen(embeddings), owner.counts)
            feature = _feature_loss(generator.fgen, embeddings, owner, draws, (owner.institution, "local", epoch))
            optimiser.zero_grad()
            (count + feature).backward()
            optimiser.step()
            own += [float(count.detach()), float(feature.detach())]
    with torch.no_grad():
        sent = [
            generator.encoder(owner.propagated, owner.propagation)
            for owner, generator in zip(owners, generators, strict=True)
        ]
    for home, (generator, own) in enumerate(zip(generators, losses, strict=True)):
        optimiser = torch.optim.Adam(generator.fgen.parameters(), settings.learning_rate)
        for number in range(settings.rounds):
            key = (owners[home].institution, "federated", number)
            found = [
                _feature_loss(generator.fgen, embeddings, host, draws, (*key, host.institution))
                for host, embeddings in zip(owners, sent, strict=True)
            ]
            optimiser.zero_grad()
            sum(found).backward()
            optimiser.step()
            at_home = float(found[home].detach())
            own += [at_home, float(sum(found).detach()) - at_home]
    return np.concatenate(losses)


def _feature_loss(
    fgen: FeatureGenerator, embeddings: Tensor, host: Owner, draws: Draws, key: Sequence[int | str]
) -> Tensor:
    """FedSage+ L^f at one host: each generated vector against the nearest missing neighbour of its node."""
    chosen = embeddings[host.targeted]
    made = fgen(chosen + draws.noise(chosen, *key))
    with torch.no_grad():
        distance = torch.cdist(made.flatten(0, 1), host.missing).view(*made.shape[:2], -1)
        nearest = distance.masked_fill(~host.neighbours[:, None], torch.inf).argmin(dim=2)
    return (made - host.missing[nearest]).square().mean(dim=(1, 2)).sum() / host.visible
