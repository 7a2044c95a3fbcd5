"""Settings of FedSage+'s missing-neighbour generator (Zhang et al. 2021)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.federation.noise_settings import NOISE, NOISE_DESCRIPTION
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedSageSettings:
    """Local training of the generator, then federated rounds that train its feature generator."""

    local_epochs: int = setting(20, "Epochs of the local generator.", minimum=1)
    rounds: int = setting(20, "Federated rounds, in which only the feature generator trains.", minimum=0)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    noise: float = setting(NOISE, NOISE_DESCRIPTION, minimum=0)
    hidden_fraction: float = setting(0.10, "Fraction of the nodes that is hidden.", minimum=0, maximum=1)
    count: Literal["calibrated", "printed"] = setting(
        "calibrated",
        "The number of missing neighbours. printed: on the scale of the hidden tenth; calibrated: under "
        "`scope: global_cut` scaled to the cut.",
    )
    targets: int = setting(
        5, "Largest number of hidden neighbours of a node as targets, and of generated ones.", minimum=1
    )
    dropout: float = setting(0.5, "Dropout of encoder and feature generator.", minimum=0, maximum=0.95)
    fgen_width: int = setting(
        256, "Width of the feature generator's last hidden layer; the authors' code has 2048.", minimum=1
    )
    exchange: Literal["gradients", "raw"] = setting(
        "gradients",
        "Returned by other owners: the generator's parameter gradient, or a gradient for each generated node, which "
        "reveals raw features.",
    )
