"""Federated network inpainting: train a generator of missing neighbours (FedNI Sec. III-C.1, Algorithm 1).

A round: every institution trains from the common weights, its upload gets noise, and the server averages with equal
weights.
"""

import logging
from dataclasses import asdict

from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.pace import Pace
from brainfed.federation.privacy import WeightNoise
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.federation.wire import Wire
from brainfed.inpainting.fedni.clients import GENERATOR, InpaintingClients
from brainfed.inpainting.fedni.held_out import NOTHING_HIDDEN, held_out
from brainfed.inpainting.fedni.records import history_of
from brainfed.inpainting.fedni.shared_tensors import axes_of, crossings_by
from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.inpainting.trained import TrainedGenerator
from brainfed.runtime.jobs.run import Run

logger = logging.getLogger(__name__)


def train(inputs: InpaintingInputs, settings: InpaintingSettings, run: Run) -> TrainedGenerator:
    """Train the generator on one repeat (or one fold of it).

    Returns:
        arrays: `generator/NAME` (1 or M, ...), M where generators are not averaged; M counts institutions with
        subjects to learn from.
    """
    clients = InpaintingClients(inputs, settings, run)
    wire = wire_of(clients, inputs)
    strategy = FedAvg(clients.institutions, clients.start())
    federate(clients, strategy, wire, settings.rounds, run.checkpoint, run.progress, Pace(least=0), keeps_last=False)
    counts = {
        "parameters": clients.generators.parameters,
        "discriminator_parameters": 0 if clients.discriminators is None else clients.discriminators.parameters,
        "rounds": settings.rounds,
        "local_epochs": settings.local_epochs,
        "operations": clients.wide.products.operations,
    }
    arrays = clients.generators.state(shared=clients.shares("generator"))
    return TrainedGenerator(
        {f"{GENERATOR}{name}": array for name, array in arrays.items()},
        history_of(clients.measures, [inputs.institutions[code] for code in clients.institutions]),
        counts,
        wire.ledger.rows(),
        _held_out(clients, inputs),
    )


def wire_of(clients: InpaintingClients, inputs: InpaintingInputs) -> Wire:
    """What may cross under the settings, with noise on weights."""
    fold = -1 if inputs.part == "all" else int(inputs.part.removeprefix("fold-"))
    axes = axes_of(inputs.features.shape[1], clients.generators.modules[0])
    return Wire(
        Ledger(crossings_by(clients.settings), axes, "inpainting"),
        {institution.number: len(institution.members) for institution in clients.members},
        WeightNoise(clients.settings.noise, inputs.streams, (fold,)),
    )


def _held_out(clients: InpaintingClients, inputs: InpaintingInputs) -> tuple[dict[str, float | str | None], ...]:
    found = []
    for place, institution in enumerate(clients.members):
        generator = clients.generators.modules[place].eval()
        measured = held_out(institution, generator, clients.settings, clients.k, inputs.part, inputs.streams)
        name = inputs.institutions[institution.number]
        if measured == NOTHING_HIDDEN:
            logger.warning(
                "institution %r: each of its masks hides fewer than two edges, so its generator is not measured on "
                "fresh masks",
                name,
            )
        found.append({"institution": name, **asdict(measured)})
    return tuple(found)
