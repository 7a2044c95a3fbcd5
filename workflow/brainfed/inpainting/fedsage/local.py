"""Local training of an owner's generator (Zhang et al. 2021, Sec. 4.2).

The cross-entropy of the classifier on the mended graph, L^c, is left out. So the generator uses no label, and all folds
share it.
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
from brainfed.inpainting.backpropagation import carried
from brainfed.inpainting.fedsage.draws import Draws
from brainfed.inpainting.fedsage.losses import count_loss
from brainfed.inpainting.fedsage.owner import Owner
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.fedsage.weights import arrays_of, load_arrays
from brainfed.inpainting.fedsage.wide import WideOutput
from brainfed.models.fedsage_generator import ENCODER_WIDTH, MissingNeighbourGenerator

GENERATOR, OPTIMISER = "generator/", "adam/"
LOSSES = ("count", "feature")


class LocalOwner:
    """One institution that trains encoder, dGen and fGen on its own data.

    Attributes:
        losses: (epochs, 2) of `LOSSES`.
    """

    def __init__(
        self,
        owner: Owner,
        generator: MissingNeighbourGenerator,
        settings: FedSageSettings,
        draws: Draws,
        wide: WideOutput,
    ) -> None:
        self.owner, self.generator, self.draws, self.wide = owner, generator, draws, wide
        self.optimiser = Adam(list(generator.parameters()), settings.learning_rate)
        self.losses = np.zeros((settings.local_epochs, len(LOSSES)))

    @property
    def institutions(self) -> tuple[int, ...]:
        """The owner's code."""
        return (self.owner.institution,)

    def fit(self, number: int, _chosen: Sequence[int]) -> Mapping[int, Message]:
        """One epoch, without a reply."""
        self.losses[number] = local_gradient(self.generator, self.owner, self.draws, number, self.wide)
        self.optimiser.step()
        self.generator.zero_grad()
        return {}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """No messages."""

    def score(self, number: int) -> str:
        """The sum of the losses."""
        return f"loss {self.losses[number].sum():.4f}"

    def state(self, number: int) -> Arrays:
        """The weights, the losses, and Adam's moments where another epoch follows."""
        more = number + 1 < len(self.losses)
        moments = {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()} if more else {}
        return arrays_of(self.generator, GENERATOR) | {"losses": self.losses[: number + 1]} | moments

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""
        load_arrays(self.generator, arrays, GENERATOR)
        self.losses[: number + 1] = arrays["losses"]
        if number + 1 < len(self.losses):
            self.optimiser.load({name.removeprefix(OPTIMISER): arrays[name] for name in arrays})


def local_gradient(
    generator: MissingNeighbourGenerator, owner: Owner, draws: Draws, epoch: int, wide: WideOutput
) -> tuple[float, float]:
    """FedSage+ L^n = L^d + L^f of one local epoch: both losses; fills the generator's gradients."""
    key = (owner.institution, "local", epoch)
    keep = draws.keep(owner.propagated, ENCODER_WIDTH, "encoder", *key)
    embeddings = generator.encoder(owner.propagated, owner.propagation, keep)
    count = count_loss(generator.dgen(embeddings), owner.counts)
    expanded = draws.expanded(generator.fgen, embeddings[owner.targeted], *key)
    feature, back = wide.add_gradients(generator.fgen.output, expanded.detach(), [owner.targets])
    (count + carried(back, expanded)).backward()  # type: ignore[no-untyped-call]
    return float(count.detach()), float(feature)


@torch.no_grad()
def target_embeddings(generator: MissingNeighbourGenerator, owner: Owner) -> Tensor:
    """(t, 128) embeddings of the owner's nodes with missing neighbours, by its own trained encoder."""
    embeddings: Tensor = generator.encoder(owner.propagated, owner.propagation)
    return embeddings[owner.targeted]
