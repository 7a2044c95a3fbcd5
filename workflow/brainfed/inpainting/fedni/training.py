"""Federated network inpainting: train a generator of missing neighbours (FedNI Sec. III-C.1, Algorithm 1 A and C).

A round: every institution starts from what the server sent, trains `local_epochs` masks with a fresh Adam,
adds noise to what it uploads; the server averages with equal weights. No label is among the inputs.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.adam import Adam
from brainfed.federation.exchange import Ledger
from brainfed.federation.state import Pace
from brainfed.inpainting.fedni.adversarial_step import train_step
from brainfed.inpainting.fedni.exchange import axes_of, crossings_by, exchange_weights
from brainfed.inpainting.fedni.held_out import NOTHING_HIDDEN, held_out
from brainfed.inpainting.fedni.institution import hide, institution_of
from brainfed.inpainting.fedni.records import MEASURES, history_of
from brainfed.inpainting.fedni.stacked_modules import StackedModules
from brainfed.inpainting.fedni.starts import new_discriminator, new_generator
from brainfed.inpainting.fedni.wide_layers import CPU_BLOCK, WideLayers
from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.inpainting.trained import TrainedGenerator
from brainfed.models.discriminator import FIRST_WEIGHT, Discriminator
from brainfed.models.generator import WIDE, Generator
from brainfed.models.products import Products
from brainfed.runtime.jobs.checkpoints import Checkpoint
from brainfed.runtime.jobs.run import Run
from brainfed.runtime.jobs.stopping import stop_asked, whole

logger = logging.getLogger(__name__)


class Federation:
    """All institutions' generators and discriminators, and how they train."""

    def __init__(self, inputs: InpaintingInputs, settings: InpaintingSettings, run: Run) -> None:
        self.settings, self.streams, self.part = settings, inputs.streams, inputs.part
        device, dtype = torch.device(run.device), getattr(torch, run.precision)
        every = [institution_of(inputs, number, device, dtype) for number in range(len(inputs.institutions))]
        self.institutions = [institution for institution in every if len(institution.members)]
        self.k = inputs.graph_settings.k
        count, width = len(self.institutions), inputs.features.shape[1]
        self.generators = StackedModules(lambda: new_generator(inputs, settings), count, device, dtype)
        self.discriminators = (
            StackedModules(lambda: new_discriminator(inputs), count, device, dtype) if settings.discriminator else None
        )
        self.wide = WideLayers(Products(settings.precision), CPU_BLOCK if device.type == "cpu" else width)
        self.ledger = Ledger(crossings_by(settings), axes_of(width, self.generators.modules[0]), "inpainting")
        self._optimisers = [
            [
                Adam(list(stack.modules[place].parameters()), settings.learning_rate)
                for stack in (self.generators, self.discriminators)
                if stack is not None
            ]
            for place in range(count)
        ]

    def train_locally(self, number: int) -> NDArray[np.float64]:
        """(M, measures) means over the local epochs of round `number`; NaN where every mask was skipped,
        and for the losses of a discriminator that is not there.
        """
        return np.stack([self._train(place, number) for place in range(len(self.institutions))])

    def _train(self, place: int, number: int) -> NDArray[np.float64]:
        settings, institution = self.settings, self.institutions[place]
        generator = self.generators.modules[place]
        discriminator = None if self.discriminators is None else self.discriminators.modules[place]
        for optimiser in self._optimisers[place]:
            optimiser.reset()
        sums: dict[str, Tensor] = {}
        steps = 0
        hidden = 0.0
        for epoch in range(number * settings.local_epochs, (number + 1) * settings.local_epochs):
            masked, fraction = hide(institution, epoch, self.part, self.streams, settings)
            hidden += fraction / settings.local_epochs
            if masked is None:
                continue
            _forget_gradients(generator, discriminator)
            losses = train_step(generator, discriminator, institution.nodes, masked, settings, self.k, self.wide)
            self._optimisers[place][0].step()
            if discriminator is not None and epoch % settings.d_interval == 0:
                self._optimisers[place][1].step()
            steps += 1
            for name, loss in losses.items():
                sums[name] = sums[name] + loss.double() if name in sums else loss.double()
        # A GPU is waited for once a round.
        means = [float(sums[name]) / steps if name in sums else np.nan for name in MEASURES[:-1]]
        return np.array([*means, hidden])


def train(inputs: InpaintingInputs, settings: InpaintingSettings, run: Run) -> TrainedGenerator:
    """Train the generator on one repeat (or one fold of it).

    Returns:
        arrays: `generator/NAME` (1 or M, ...), M where generators are not averaged; M counts institutions with
        subjects to learn from.
    """
    federation = Federation(inputs, settings, run)
    measures = np.full((settings.rounds, len(federation.institutions), len(MEASURES)), np.nan)
    start = _resume(federation, measures, run.checkpoint)
    pace = Pace(least=0)
    for number in whole(range(start, settings.rounds)):
        measures[number] = federation.train_locally(number)
        exchange_weights(
            federation.generators,
            federation.discriminators,
            federation.institutions,
            settings,
            inputs.streams,
            inputs.part,
            number,
            federation.ledger,
        )
        run.progress(number + 1, settings.rounds, f"reconstruction {_mean_reconstruction(measures[number])}, round")
        if stop_asked() or (number + 1 < settings.rounds and pace.due()):
            with pace.writing():
                _save(federation, measures, run.checkpoint, number)
    counts = {
        "parameters": federation.generators.parameters,
        "discriminator_parameters": 0 if federation.discriminators is None else federation.discriminators.parameters,
        "rounds": settings.rounds,
        "local_epochs": settings.local_epochs,
        "operations": federation.wide.products.operations,
    }
    arrays = federation.generators.state(shared=_is_shared(settings, "generator"))
    return TrainedGenerator(
        {f"generator/{name}": array for name, array in arrays.items()},
        history_of(measures, [inputs.institutions[institution.number] for institution in federation.institutions]),
        counts,
        federation.ledger.rows(),
        _held_out(federation, inputs),
    )


def _held_out(federation: Federation, inputs: InpaintingInputs) -> tuple[dict[str, float | str | None], ...]:
    found = []
    for place, institution in enumerate(federation.institutions):
        generator = federation.generators.modules[place].eval()
        measured = held_out(institution, generator, federation.settings, federation.k, inputs.part, inputs.streams)
        name = inputs.institutions[institution.number]
        if measured == NOTHING_HIDDEN:
            logger.warning(
                "institution %r: each of its masks hides fewer than two edges, so its generator is not measured on "
                "fresh masks",
                name,
            )
        found.append({"institution": name, **asdict(measured)})
    return tuple(found)


def _mean_reconstruction(measures: NDArray[np.float64]) -> str:
    values = measures[:, MEASURES.index("reconstruction")]
    seen = values[np.isfinite(values)]
    return f"{seen.mean():.5f}" if len(seen) else "of nothing: every mask was empty"


def _is_shared(settings: InpaintingSettings, module: str) -> bool:
    return settings.federated in (module, "both")


def _save(federation: Federation, measures: NDArray[np.float64], checkpoint: Checkpoint, number: int) -> None:
    if checkpoint.path is None:
        return
    arrays: dict[str, NDArray[Any]] = {"measures": measures[: number + 1]}
    shared = _is_shared(federation.settings, "generator")
    arrays |= {f"generator/{name}": array for name, array in federation.generators.state(shared=shared).items()}
    if federation.discriminators is not None:
        state = federation.discriminators.state(shared=False)
        arrays |= {f"discriminator/{name}": array for name, array in state.items()}
    operations = federation.wide.products.operations
    checkpoint.save(number, arrays, {"crossings": list(federation.ledger.rows()), "operations": operations})


def _resume(federation: Federation, measures: NDArray[np.float64], checkpoint: Checkpoint) -> int:
    """Take up the state after the last kept round; the number of the first round that is still to run."""
    found = checkpoint.load(of=len(measures))
    if found is None:
        return 0
    number, arrays, metadata = found
    measures[: number + 1] = arrays["measures"]
    federation.generators.load(_below("generator/", arrays))
    if federation.discriminators is not None:
        federation.discriminators.load(_below("discriminator/", arrays))
    federation.ledger.restore(metadata["crossings"])
    federation.wide.products.operations = int(metadata["operations"])
    return number + 1


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _forget_gradients(generator: Generator, discriminator: Discriminator | None) -> None:
    """Those of the wide layers are overwritten in place; the others start from nothing."""
    judged = () if discriminator is None else discriminator.named_parameters()
    for name, parameter in (*generator.named_parameters(), *judged):
        if name not in (*WIDE, FIRST_WEIGHT):
            parameter.grad = None
