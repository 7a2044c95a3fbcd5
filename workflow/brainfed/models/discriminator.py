"""FedNI's discriminator: three linear layers under spectral normalisation (Miyato et al. 2018).

SN-Linear(d, 128) ReLU -> SN-Linear(128, 32) ReLU -> SN-Linear(32, 1)
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu
from torch.nn.utils.parametrizations import spectral_norm

WIDTHS = (128, 32)
FIRST_WEIGHT = "judge_0.parametrizations.weight.original"
EPSILON = 1e-12
"""Epsilon of the power iteration; the default of torch."""


@dataclass(frozen=True)
class FirstWeight:
    """The first layer's weight W / sigma without the (128, d) quotient: W, and sigma = u W v.

    Attributes:
        original: W (128, d), a parameter.
        sigma: () estimate of its largest singular value by the power iteration.
        left, right: u (128,) and v (d,), constants of the derivative.
    """

    original: nn.Parameter
    sigma: Tensor
    left: Tensor
    right: Tensor


class Discriminator(nn.Module):
    """FedNI Table III: the discriminator f_d of one institution; d = `features`.

    Each reading of `judge_0.weight` in training mode makes one step of the power iteration.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.judge_0 = nn.Linear(features, WIDTHS[0])
        self.judge_1 = nn.Linear(WIDTHS[0], WIDTHS[1])
        self.judge_2 = nn.Linear(WIDTHS[1], 1)
        for layer in (self.judge_0, self.judge_1, self.judge_2):
            spectral_norm(layer)

    @torch.no_grad()
    def first_weight(self) -> FirstWeight:
        """Make one step of the power iteration, like reading `judge_0.weight`, and return the result in parts."""
        original = self.get_parameter(FIRST_WEIGHT)
        left, right = (self.get_buffer(f"judge_0.parametrizations.weight.0.{name}") for name in ("_u", "_v"))
        normalize(original @ right, dim=0, eps=EPSILON, out=left)
        normalize(original.T @ left, dim=0, eps=EPSILON, out=right)
        return FirstWeight(original, torch.dot(left, original @ right), left.clone(), right.clone())

    def decide(self, product: Tensor) -> Tensor:
        """Logits (p,) of being real, from the first layer's product (p, 128) without its bias."""
        logits: Tensor = self.judge_2(relu(self.judge_1(relu(product + self.judge_0.bias))))
        return logits[:, 0]

    def forward(self, features: Tensor) -> Tensor:
        """Logits (p,) of features (p, d) being real."""
        return self.decide(features @ self.judge_0.weight.T)
