"""Institutions that each train a generator and a discriminator (FedNI Sec. III-C.1).

In a round every institution trains `local_epochs` epochs, a new mask each, with a fresh Adam. No label is an input.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.adam import Adam
from brainfed.federation.clients import Arrays
from brainfed.federation.message import Message
from brainfed.inpainting.fedni.adversarial_step import train_step
from brainfed.inpainting.fedni.institution import institution_of, mask_of_epoch
from brainfed.inpainting.fedni.records import MEASURES
from brainfed.inpainting.fedni.shared_tensors import wire_name
from brainfed.inpainting.fedni.stacked_modules import StackedModules
from brainfed.inpainting.fedni.starts import new_discriminator, new_generator
from brainfed.inpainting.fedni.wide_layers import CPU_BLOCK, ENCODER_BLOCK, WideLayers
from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.discriminator import FIRST_WEIGHT, Discriminator
from brainfed.models.generator import WIDE, Generator
from brainfed.models.products import Products
from brainfed.runtime.jobs.run import Run

GENERATOR, DISCRIMINATOR = "generator/", "discriminator/"


class InpaintingClients:
    """Generators and discriminators of all institutions, and their local training.

    Attributes:
        members: the institutions with training subjects; `institutions` are their codes.
        measures: (rounds, M, measures) means over a round's local epochs; NaN where every mask was skipped, and for
            the losses of an absent discriminator.
    """

    def __init__(self, inputs: InpaintingInputs, settings: InpaintingSettings, run: Run) -> None:
        self.settings, self.streams, self.part = settings, inputs.streams, inputs.part
        device, dtype = torch.device(run.device), getattr(torch, run.precision)
        every = [institution_of(inputs, number, device, dtype) for number in range(len(inputs.institutions))]
        self.members = [institution for institution in every if len(institution.members)]
        self.k = inputs.graph_settings.k
        count, width = len(self.members), inputs.features.shape[1]
        self.generators = StackedModules(lambda: new_generator(inputs, settings), count, device, dtype)
        self.discriminators = (
            StackedModules(lambda: new_discriminator(inputs), count, device, dtype) if settings.discriminator else None
        )
        blocks = (CPU_BLOCK, ENCODER_BLOCK) if device.type == "cpu" else (width, width)
        self.wide = WideLayers(Products(settings.precision), *blocks)
        self.measures = np.full((settings.rounds, count, len(MEASURES)), np.nan)
        self._optimisers = [
            [
                Adam(list(stack.modules[place].parameters()), settings.learning_rate)
                for stack in (self.generators, self.discriminators)
                if stack is not None
            ]
            for place in range(count)
        ]

    @property
    def institutions(self) -> tuple[int, ...]:
        """Codes."""
        return tuple(institution.number for institution in self.members)

    def start(self) -> dict[str, Tensor]:
        """(1, ...) views of the initial shared tensors."""
        return {name: stack[:1] for name, stack in self._shared().items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Local training of the chosen institutions, one after the other (FedNI Algorithm 1, procedure C)."""
        shared, plain = self._shared(), self._plain()
        replies = {}
        for place, code in enumerate(self.institutions):
            if code in chosen:
                self.measures[number, place] = self._train(place, number)
                own = {name: stack[place : place + 1] for name, stack in shared.items()}
                replies[code] = Message(own, plain=plain)
        return replies

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
        """Copy a `state`."""
        self.measures[: number + 1] = arrays["measures"]
        self.wide.products.operations = int(arrays["operations"])
        self.generators.load(_below(GENERATOR, arrays))
        if self.discriminators is not None:
            self.discriminators.load(_below(DISCRIMINATOR, arrays))

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

    def _plain(self) -> frozenset[str]:
        """Running moments of batch normalisation: averaged, without noise."""
        return frozenset(wire_name(name) for name in self.generators.buffers)

    def _train(self, place: int, number: int) -> NDArray[np.float64]:
        settings, institution = self.settings, self.members[place]
        generator = self.generators.modules[place]
        discriminator = None if self.discriminators is None else self.discriminators.modules[place]
        for optimiser in self._optimisers[place]:
            optimiser.reset()
        sums: dict[str, Tensor] = {}
        steps = 0
        hidden = 0.0
        for epoch in range(number * settings.local_epochs, (number + 1) * settings.local_epochs):
            masked, fraction = mask_of_epoch(institution, epoch, self.part, self.streams, settings)
            hidden += fraction / settings.local_epochs
            if masked is None:
                continue
            _drop_gradients(generator, discriminator)
            losses = train_step(generator, discriminator, institution.nodes, masked, settings, self.k, self.wide)
            self._optimisers[place][0].step()
            if discriminator is not None and epoch % settings.d_interval == 0:
                self._optimisers[place][1].step()
            steps += 1
            for name, loss in losses.items():
                sums[name] = sums[name] + loss.double() if name in sums else loss.double()
        # One synchronisation with the GPU a round.
        means = [float(sums[name]) / steps if name in sums else np.nan for name in MEASURES[:-1]]
        return np.array([*means, hidden])


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _drop_gradients(generator: Generator, discriminator: Discriminator | None) -> None:
    """Drop the gradients of narrow layers; those of wide ones are overwritten in place."""
    product = () if discriminator is None else discriminator.named_parameters()
    for name, parameter in (*generator.named_parameters(), *product):
        if name not in (*WIDE, FIRST_WEIGHT):
            parameter.grad = None
