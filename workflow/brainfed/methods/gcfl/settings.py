"""Settings of the networks of whole graphs, and the tensors that they send (Xie et al. 2021, Sec. 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.federation.noise_settings import NOISE_DESCRIPTION
from brainfed.federation.schedule import FederationSettings
from brainfed.runtime.settings import setting

LAYERS = 3
"""Convolutions of the network."""

CONVOLUTIONS: Mapping[str, tuple[str, ...]] = {
    name: axes
    for layer in range(LAYERS)
    for linear in (0, 2)
    for name, axes in (
        (f"convs.{layer}.nn.{linear}.weight", ("hidden", "hidden")),
        (f"convs.{layer}.nn.{linear}.bias", ("hidden",)),
    )
}
"""What institutions share: the perceptrons of the convolutions."""

OWN_LAYERS: Mapping[str, tuple[str, ...]] = {
    "pre.weight": ("hidden", "features"),
    "pre.bias": ("hidden",),
    "post.weight": ("hidden", "hidden"),
    "post.bias": ("hidden",),
    "readout.weight": ("classes", "hidden"),
    "readout.bias": ("classes",),
}
"""What stays at home, except under leave-one-site-out: the others' whole networks score the unseen site."""


@dataclass(frozen=True)
class GINSettings:
    """A linear layer, three GIN convolutions, the sum over the nodes, and two linear layers."""

    hidden: int = setting(64, "Width of all layers.", minimum=1)
    dropout: float = setting(0.5, "Share of the activations that each training step drops.", minimum=0, maximum=0.95)


@dataclass(frozen=True)
class SoloGINSettings(GINSettings):
    """Training of a network without rounds."""

    epochs: int = setting(50, "Epochs.", minimum=1)
    batch: int = setting(128, "At most so many graphs a step; 0: all.", minimum=0)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    weight_decay: float = setting(5e-4, "Adam's L2 penalty.", minimum=0)

    def schedule(self) -> FederationSettings:
        """One round an epoch, without exchange or noise."""
        return FederationSettings(
            rounds=self.epochs,
            local_epochs=1,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            noise=0.0,
            batch=self.batch,
            optimiser_state="keep",
        )


@dataclass(frozen=True)
class FederatedGINSettings(GINSettings, FederationSettings):
    """Training of a network of which institutions share the convolutions."""

    rounds: int = setting(200, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(1, "Local epochs E between two communications.", minimum=1)
    weight_decay: float = setting(5e-4, "Adam's L2 penalty.", minimum=0)
    noise: float = setting(0.0, NOISE_DESCRIPTION, minimum=0)
    batch: int = setting(128, "At most so many graphs a local step; 0: all.", minimum=0)
    weighting: Literal["equal", "subjects"] = setting("subjects", "Average with weights 1/M, or n_m/n.")
    optimiser_state: Literal["reset", "keep"] = setting("keep", "What a client's Adam does between rounds.")

    def schedule(self) -> FederationSettings:
        """The rounds."""
        return self
