"""Federated network inpainting: the institutions, held-out errors, and the training (FedNI Sec. III-C.1)."""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Adam, Arrays, DrawnAhead, Ledger, Message, Pace, WeightNoise, Wire, federate, normal
from brainfed.federation.strategies import FedAvg
from brainfed.inpainting import InpaintingInputs, InpaintingSettings, TrainedGenerator, shared_tensors, wire_name
from brainfed.inpainting.fedni._adversarial_step import (
    MEASURES,
    StackedModules,
    history_of,
    new_discriminator,
    new_generator,
    train_step,
)
from brainfed.inpainting.fedni._losses import CPU_BLOCK, ENCODER_BLOCK, WideLayers
from brainfed.inpainting.fedni._masking import (
    DrawnMask,
    Institution,
    draw_mask,
    drawn_mask,
    institution_of,
    masked_graph,
)
from brainfed.inpainting.fedni._stacked_training import StackedTraining, can_be_stacked, known_phenotypes
from brainfed.models import (
    ENCODER,
    FEATURE,
    FIRST_WEIGHT,
    NOISE,
    PHENOTYPE,
    WIDE,
    WIDTHS,
    Discriminator,
    Generator,
    Products,
)
from brainfed.runtime import BoolArray, Float64, Streams, below
from brainfed.runtime.jobs import Run

# Institutions that each train a generator and a discriminator (FedNI Sec. III-C.1).
#
# In a round every institution trains `local_epochs` epochs, a new mask each, with a fresh Adam. No label is an input.

GENERATOR, DISCRIMINATOR = "generator/", "discriminator/"


class InpaintingClients:
    """Generators and discriminators of all institutions, and their local training.

    Attributes:
        members: the institutions with training subjects; `institutions` are their codes.
        measures: (rounds, M, measures) means over a round's local epochs; NaN where every mask was skipped, and for
            the losses of an absent discriminator.
        together: whether all institutions are trained in one step; on a GPU.
    """

    def __init__(self, inputs: InpaintingInputs, settings: InpaintingSettings, run: Run) -> None:
        self.settings, self.streams, self.part = settings, inputs.streams, inputs.part
        self.device = device = torch.device(run.device)
        dtype = getattr(torch, run.precision)
        self.members = [institution_of(inputs, code, device, dtype) for code in inputs.learning]
        self.institutions, self.k = tuple(inputs.learning), inputs.graph_settings.k
        count, width = len(self.members), inputs.features.shape[1]
        self.generators = StackedModules(lambda: new_generator(inputs, settings), count, device, dtype)
        self.discriminators = (
            StackedModules(lambda: new_discriminator(inputs), count, device, dtype) if settings.discriminator else None
        )
        blocks = (CPU_BLOCK, ENCODER_BLOCK) if device.type == "cpu" else (width, width)
        self.wide = WideLayers(Products(settings.precision), *blocks)
        self.measures = np.full((settings.rounds, count, len(MEASURES)), np.nan)
        self.together = self.device.type == "cuda"

    def start(self) -> dict[str, Tensor]:
        """(1, ...) views of the initial shared tensors."""
        return {name: stack[:1] for name, stack in self._shared().items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Local training of the chosen institutions (FedNI Algorithm 1, procedure C).

        One after the other, or on a GPU in one step where all are chosen.
        """
        places = [place for place, code in enumerate(self.institutions) if code in chosen]
        if not places:
            return {}
        first = number * self.settings.local_epochs
        drawn = [
            [drawn_mask(self.members[place], epoch, self.part, self.streams, self.settings) for place in places]
            for epoch in range(first, first + self.settings.local_epochs)
        ]
        hidden = np.mean([[mask.fraction for mask in own] for own in drawn], axis=0)
        everybody = len(places) == len(self.members)
        if self.together and everybody and can_be_stacked(self.members, drawn, self._known, self.settings):
            losses = self._stacked.train(first, drawn)
        else:
            losses = np.stack(
                [self._train(place, first, [own[index] for own in drawn]) for index, place in enumerate(places)]
            )
        self.measures[number, places] = np.column_stack([losses, hidden])
        # Running moments of batch normalisation are averaged without noise.
        shared, plain = self._shared(), frozenset(wire_name(name) for name in self.generators.buffers)
        return {
            self.institutions[place]: Message(
                {name: stack[place : place + 1] for name, stack in shared.items()}, plain=plain
            )
            for place in places
        }

    @torch.no_grad()
    def receive(self, messages: Mapping[int, Message]) -> None:
        """Copy the averages of shared tensors."""
        shared = self._shared()
        for place, code in enumerate(self.institutions):
            for name, tensor in messages[code].tensors.items() if code in messages else ():
                shared[name][place].copy_(tensor[0])

    def score(self, number: int) -> str:
        """The reconstruction loss of the round; `held_out` measures the generators after the last one."""
        values = self.measures[number, :, MEASURES.index("reconstruction")]
        seen = values[np.isfinite(values)]
        return f"reconstruction {f'{seen.mean():.5f}' if len(seen) else 'of nothing: every mask was empty'}"

    def state(self, number: int) -> Arrays:
        """The measures and the modules, a shared generator once; Adam starts anew in every round."""
        arrays: Arrays = {"measures": self.measures[: number + 1]}
        arrays["operations"] = np.array(self.wide.products.operations)
        generators = self.generators.state(shared=self.shares("generator"))
        arrays |= {f"{GENERATOR}{name}": array for name, array in generators.items()}
        if self.discriminators is not None:
            tensors = self.discriminators.state(shared=False)
            arrays |= {f"{DISCRIMINATOR}{name}": array for name, array in tensors.items()}
        return arrays

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.measures[: number + 1] = arrays["measures"]
        self.wide.products.operations = int(arrays["operations"])
        self.generators.load(below(GENERATOR, arrays))
        if self.discriminators is not None:
            self.discriminators.load(below(DISCRIMINATOR, arrays))

    def shares(self, module: str) -> bool:
        """Whether the weights of `generator` or `discriminator` are averaged (FedNI Fig. 3)."""
        return self.settings.federated in (module, "both")

    def _shared(self) -> dict[str, Tensor]:
        """(M, ...) by name on the wire, without the vectors of spectral normalisation, which are no weights."""
        tensors: dict[str, Tensor] = {}
        if self.shares("generator"):
            tensors |= self.generators.weights | self.generators.buffers
        if self.shares("discriminator") and self.discriminators is not None:
            tensors |= self.discriminators.weights
        return {wire_name(name): stack for name, stack in tensors.items()}

    @cached_property
    def _optimisers(self) -> list[list[Adam]]:
        """For each institution, the optimiser of its generator, then that of its discriminator."""
        return [
            [
                Adam(list(stack.modules[place].parameters()), self.settings.learning_rate)
                for stack in (self.generators, self.discriminators)
                if stack is not None
            ]
            for place in range(len(self.members))
        ]

    @cached_property
    def _known(self) -> list[BoolArray] | None:
        generator = self.generators.modules[0]
        return [known_phenotypes(each, generator) for each in self.members] if generator.predicts_phenotypes else None

    @cached_property
    def _stacked(self) -> StackedTraining:
        return StackedTraining(
            self.members, self.generators, self.discriminators, self.settings, self.k, self.wide.products
        )

    def _train(self, place: int, first: int, drawn: Sequence[DrawnMask]) -> Float64:
        """Mean losses of one institution over the epochs of its masks; `first` is the number of the first of them."""
        settings, institution = self.settings, self.members[place]
        generator = self.generators.modules[place]
        discriminator = None if self.discriminators is None else self.discriminators.modules[place]
        for optimiser in self._optimisers[place]:
            optimiser.reset()
        sums: dict[str, Tensor] = {}
        steps = 0
        for epoch, own in enumerate(drawn, first):
            if own.mask is None:
                continue
            masked = masked_graph(own.mask, institution, own.noise)
            _drop_gradients(generator, discriminator)
            losses = train_step(generator, discriminator, institution.nodes, masked, settings, self.k, self.wide)
            self._optimisers[place][0].step()
            if discriminator is not None and epoch % settings.d_interval == 0:
                self._optimisers[place][1].step()
            steps += 1
            for name, loss in losses.items():
                sums[name] = sums[name] + loss.double() if name in sums else loss.double()
        # One synchronisation with the GPU a round.
        return np.array([float(sums[name]) / steps if name in sums else np.nan for name in MEASURES[:-1]])


def _drop_gradients(generator: Generator, discriminator: Discriminator | None) -> None:
    """Drop the gradients of narrow layers; those of wide ones are overwritten in place."""
    product = () if discriminator is None else discriminator.named_parameters()
    for name, parameter in (*generator.named_parameters(), *product):
        if name not in (*WIDE, FIRST_WEIGHT):
            parameter.grad = None


# Errors of a trained FedNI generator on fresh masks, without labels and without the cut edges.

MASKS = 20

HELD_OUT = (
    "count_error", "degree_error", "reconstruction", "mean_reconstruction", "other_reconstruction", "spread",
)  # fmt: skip
"""Results of `held_out`."""


@torch.no_grad()
def held_out(
    institution: Institution, generator: Generator, settings: InpaintingSettings, k: int, part: str, streams: Streams
) -> dict[str, float | None]:
    """Compare the predictions of a generator in evaluation mode with the nodes that `MASKS` fresh masks hide.

    Returns:
        Means over masks, None if not finite; empty if no mask hides two edges. count_error: squared error of the
        predicted number of hidden neighbours; degree_error: that of the multiple of the visible degree that fits these
        masks best; reconstruction: squared error of a generated feature, in the generator's units; mean_reconstruction
        and other_reconstruction: those of the institution's mean, and of random subjects, in place of generated nodes;
        spread: standard deviation of generated features over nodes (root mean square over features), as a share of the
        hidden nodes'.
    """
    features, own = institution.nodes.features, len(institution.members)
    mean, product = features.mean(dim=0), generator.project(features)
    predicted, missing, degree, errors, mean_errors, other_errors, generated, hidden = (
        list[Tensor]() for _ in range(8)
    )
    for number in range(MASKS):
        random = streams.numpy("held-out-mask", part, institution.number, number)
        mask = draw_mask(institution.edges, int(random.integers(own)), random, settings)
        if len(mask.target) < 2:
            continue
        noise = normal(streams, (len(mask.target), NOISE), "held-out-noise", part, institution.number, number)
        masked = masked_graph(mask, institution, noise)
        embedding = generator.embed(product, masked.propagation)
        predicted.append(k * generator.missing(embedding[masked.visible], masked.degree))
        missing.append(masked.missing)
        degree.append(masked.degree)
        made = generator.generate(embedding[masked.parent], masked.noise)
        true = features[masked.target]
        errors.append((made - true).square().mean())
        mean_errors.append((mean - true).square().mean())
        others = torch.from_numpy((masked.target.cpu().numpy() + random.integers(1, own, len(true))) % own)
        other_errors.append((features[others.to(features.device)] - true).square().mean())
        generated.append(made)
        hidden.append(true)
    if not predicted:
        return {}
    count, seen = torch.cat(missing), torch.cat(degree)
    slope = (count * seen).sum() / seen.square().sum()
    values = (
        (torch.cat(predicted) - count).square().mean(),
        (slope * seen - count).square().mean(),
        *(torch.stack(each).mean() for each in (errors, mean_errors, other_errors)),
        _spread(generated) / _spread(hidden),
    )
    measured = (float(value) if bool(torch.isfinite(value)) else None for value in values)
    return dict(zip(HELD_OUT, measured, strict=True))


def _spread(pieces: Sequence[Tensor]) -> Tensor:
    """() root mean square over features of the standard deviation over rows."""
    return torch.cat(list(pieces)).var(dim=0, unbiased=False).mean().sqrt()


# Federated network inpainting: train the generator of missing neighbours (FedNI Sec. III-C.1).
#
# In a round every institution trains from the common weights, its upload gets noise, and the server averages with equal
# weights.

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
    pace = inputs.link.pace(Pace(minimum_seconds=0))
    federate(clients, strategy, wire, settings.rounds, run.checkpoint, run.progress, pace, keeps_last=False)
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
    axes = _axes(inputs.features.shape[1], clients.generators.modules[0])
    sizes = {institution.number: len(institution.members) for institution in clients.members}
    ahead = DrawnAhead.on(clients.device, clients.settings.rounds)
    noise = WeightNoise(clients.settings.noise, inputs.streams, (inputs.fold,), ahead=ahead)
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
    rows: list[dict[str, float | str | None]] = []
    for place, institution in enumerate(clients.members):
        generator = clients.generators.modules[place].eval()
        measured = held_out(institution, generator, clients.settings, clients.k, inputs.part, inputs.streams)
        name = inputs.institutions[institution.number]
        if not measured:
            logger.warning(
                "institution %r: each of its masks hides fewer than two edges, so its generator is not measured on "
                "fresh masks",
                name,
            )
        rows.append({"institution": name, **(measured or dict.fromkeys(HELD_OUT))})
    return tuple(rows)
