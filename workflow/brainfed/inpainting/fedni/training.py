"""Federated network inpainting: train the generator of missing neighbours (FedNI Sec. III-C.1).

In a round every institution trains from the common weights, its upload gets noise, and the server averages with equal
weights.
"""

import logging
from dataclasses import asdict

from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.pace import Pace
from brainfed.federation.privacy.drawn_ahead import DrawnAhead
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.federation.wire import Wire
from brainfed.inpainting.fedni.clients import GENERATOR, InpaintingClients
from brainfed.inpainting.fedni.held_out import NOTHING_HIDDEN, held_out
from brainfed.inpainting.fedni.records import history_of
from brainfed.inpainting.fedni.shared_tensors import shared_tensors
from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.inpainting.trained import TrainedGenerator
from brainfed.models.discriminator import WIDTHS
from brainfed.models.generator import ENCODER, FEATURE, NOISE, PHENOTYPE, Generator
from brainfed.runtime.jobs.run import Run

logger = logging.getLogger(__name__)


def train(inputs: InpaintingInputs, settings: InpaintingSettings, run: Run) -> TrainedGenerator:
    """Train the generator on one repeat, or one fold of it (FedNI Algorithm 1, procedures A and C).

    Returns:
        arrays: `generator/NAME` (1, ...), or (M, ...) where generators are not averaged, for M institutions with
        training subjects.
    """
    clients = InpaintingClients(inputs, settings, run)
    wire = wire_of(clients, inputs)
    strategy = inputs.link.server(FedAvg(clients.institutions, clients.start()), settings.rounds)
    federate(
        clients,
        strategy,
        wire,
        settings.rounds,
        run.checkpoint,
        run.progress,
        inputs.link.pace(Pace(minimum_seconds=0)),
        keeps_last=False,
    )
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
    """The wire of the settings' shared tensors, with noise on weights."""
    fold = -1 if inputs.part == "all" else int(inputs.part.removeprefix("fold-"))
    axes = _axes(inputs.features.shape[1], clients.generators.modules[0])
    sizes = {institution.number: len(institution.members) for institution in clients.members}
    ahead = DrawnAhead.on(clients.device, clients.settings.rounds)
    noise = WeightNoise(clients.settings.noise, inputs.streams, (fold,), ahead=ahead)
    return Wire(Ledger(shared_tensors(clients.settings), axes, "inpainting"), sizes, noise, reported=sizes)


def _axes(features: int, generator: Generator) -> dict[str, int]:
    """Sizes of the axes of shared tensors."""
    outputs = {"phenotypes": generator.phenotype_1.out_features} if generator.predicts_phenotypes else {}
    return {
        "features": features,
        "encoder-0": ENCODER[0],
        "encoder-1": ENCODER[1],
        "embedding-and-degree": ENCODER[1] + generator.sees_degree,
        "embedding-and-noise": ENCODER[1] + NOISE,
        "feature-0": FEATURE[0],
        "feature-1": FEATURE[1],
        "phenotype-0": PHENOTYPE,
        "judge-0": WIDTHS[0],
        "judge-1": WIDTHS[1],
        "one": 1,
        **outputs,
    }


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
