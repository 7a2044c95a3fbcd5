"""Settings of the FedAvg core: rounds, selection and noise (McMahan et al. 2017; FedNI Sec. III-C)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.federation.noise_settings import NOISE, NOISE_DESCRIPTION
from brainfed.runtime.settings import setting

Topology = Literal["local", "federated", "central"]
"""One model an institution, one model shared by all institutions, or one on pooled data."""


@dataclass(frozen=True)
class FederationSettings:
    """Federated training of one model."""

    rounds: int = setting(10, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(10, "Local epochs E between two communications.", minimum=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    weight_decay: float = setting(0.0, "Adam's L2 penalty.", minimum=0)
    proximal: float = setting(
        0.0,
        "Strength mu of FedProx's proximal term, which holds local weights near those that the round began with "
        "(Li et al. 2020, eq. 2).",
        minimum=0,
    )
    noise: float = setting(NOISE, NOISE_DESCRIPTION, minimum=0)
    fraction: float = setting(1.0, "Fraction C of the institutions drawn in each round.", minimum=0, maximum=1)
    batch: int = setting(
        0,
        "At most so many labelled subjects a local step (FedAvg's B), equally many steps everywhere; 0: all.",
        minimum=0,
    )
    weighting: Literal["equal", "subjects"] = setting("equal", "Average with weights 1/M, or n_m/n.")
    optimiser_state: Literal["reset", "keep"] = setting("reset", "What a client's Adam does between rounds.")

    def __post_init__(self) -> None:
        if self.optimiser_state == "keep" and self.fraction < 1:
            raise ValueError("optimiser_state: keep needs fraction: 1, a client that sits out has no state to keep")
