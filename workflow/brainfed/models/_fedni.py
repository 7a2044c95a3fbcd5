"""FedNI's networks: classifier (Table IV), generator (Table II), discriminator (Table III), and the MLP of FedMLP."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, cat, nn, tanh
from torch.nn.functional import elu, normalize, relu, rms_norm
from torch.nn.utils.parametrizations import spectral_norm

from brainfed.models._classifier import Classifier, Matrix, NamedProducts, Read, dropped, parameter

# FedNI's classifier (Table IV): two graph convolutions and a linear layer.


class GCN(Classifier):
    """G-conv(d, 64) ELU -> G-conv(64, 32) -> FC(32, C), where G-conv(X) = D^-1/2 A D^-1/2 X W + b.

    `propagation` is D^-1/2 A D^-1/2 (FedNI Sec. III-A), d the number of features, and C that of classes. With `skip`
    the logits of a linear classifier on the subject's own features, X W_skip, are added.
    """

    def __init__(self, features: int, hidden: tuple[int, int], classes: int, *, skip: bool = False) -> None:
        reads: dict[str, Read] = {"weight_0": "propagated"}
        super().__init__(
            (features, *hidden, classes), reads | ({"weight_skip": "own"} if skip else {}), zero=("weight_skip",)
        )
        self.weight_0, self.bias_0 = parameter(features, hidden[0]), parameter(hidden[0])
        self.weight_1, self.bias_1 = parameter(*hidden), parameter(hidden[1])
        self.weight_2, self.bias_2 = parameter(hidden[1], classes), parameter(classes)
        self.weight_skip = parameter(features, classes) if skip else None

    def logits(self, products: NamedProducts, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(..., n, C); see `Classifier`."""
        assert propagation is not None
        hidden = elu(products["weight_0"] + self.bias_0)
        hidden = propagation @ (dropped(hidden, kept, 0) @ self.weight_1) + self.bias_1
        logits = dropped(hidden, kept, 1) @ self.weight_2 + self.bias_2
        return logits + products["weight_skip"] if "weight_skip" in products else logits


# FedNI's classifier without a graph (Sec. IV): the multilayer perceptron of FedMLP.


class MLP(Classifier):
    """FC(d, 64) ELU -> FC(64, 32) -> FC(32, C) of d features and C classes."""

    def __init__(self, features: int, hidden: tuple[int, int], classes: int) -> None:
        super().__init__((features, *hidden, classes), {"weight_0": "own"})
        self.weight_0, self.bias_0 = parameter(features, hidden[0]), parameter(hidden[0])
        self.weight_1, self.bias_1 = parameter(*hidden), parameter(hidden[1])
        self.weight_2, self.bias_2 = parameter(hidden[1], classes), parameter(classes)

    def logits(self, products: NamedProducts, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:  # noqa: ARG002
        """(..., n, C); see `Classifier`."""
        hidden = elu(products["weight_0"] + self.bias_0)
        hidden = dropped(hidden, kept, 0) @ self.weight_1 + self.bias_1
        return dropped(hidden, kept, 1) @ self.weight_2 + self.bias_2


# FedNI's missing-node generator.
#
#     encoder    G-conv(d, 256) ELU -> G-conv(256, 64) ELU -> z
#     count      FC(64, 1), a sigmoid: missing neighbours as a share of k; FC(65, 1) where it sees the visible degree
#     feature    [z ; N(0, I) in R^4] -> Linear(68, 128) ReLU BN -> Linear(128, 256) ReLU BN -> FC(256, d) tanh
#     phenotype  generated feature -> Linear(d, 32) ReLU -> FC(32, outputs)
#
# G-conv(X) = P X W + b with P = D^-1/2 A D^-1/2. Every part is a method of its own, because training
# runs the layers of width d apart from the narrow ones (`inpainting.fedni._adversarial_step`).

ENCODER = (256, 64)
NOISE = 4
FEATURE = (128, 256)
PHENOTYPE = 32
SEXES = 2
WIDE = ("encoder_0.weight", "feature_2.weight", "feature_2.bias", "phenotype_0.weight")
"""The learnable tensors with an axis of d; all others are small."""


class Generator(nn.Module):
    """FedNI Table II: the missing-node generator of one institution.

    Args:
        features: d.
        sex, age: whether the phenotype head predicts them: logits of `SEXES` classes, then a number.
        hidden: mean share of the nodes that a mask hides.
        k: number of neighbours k of the graph.
        sees_degree: whether the count head sees the visible degree, and trains apart from the encoder.
        proportional: whether its initial value is proportional to the visible degree + 1.

    The count head starts at the mean loss of neighbours under such a mask: of k neighbours, or of the visible ones
    and one. From torch's default it would first fall from one half, along the norm of z. It would then predict the
    fewest neighbours where most are missing.
    """

    def __init__(
        self,
        features: int,
        *,
        sex: bool = True,
        age: bool = True,
        hidden: float = 0.125,
        k: int = 10,
        sees_degree: bool = True,
        proportional: bool = False,
    ) -> None:
        super().__init__()
        self.sex, self.age, self.sees_degree = sex, age, sees_degree
        self.encoder_0 = nn.Linear(features, ENCODER[0])
        self.encoder_1 = nn.Linear(ENCODER[0], ENCODER[1])
        self.count = nn.Linear(ENCODER[1] + sees_degree, 1)
        nn.init.zeros_(self.count.weight)
        odds = hidden / (1 - hidden)
        nn.init.constant_(self.count.bias, math.log(odds / k if proportional else odds))
        if proportional:
            nn.init.ones_(self.count.weight[:, -1])
        self.feature_0 = nn.Linear(ENCODER[1] + NOISE, FEATURE[0])
        self.normal_0 = nn.BatchNorm1d(FEATURE[0])
        self.feature_1 = nn.Linear(FEATURE[0], FEATURE[1])
        self.normal_1 = nn.BatchNorm1d(FEATURE[1])
        self.feature_2 = nn.Linear(FEATURE[1], features)
        outputs = SEXES * sex + age
        if outputs:
            self.phenotype_0 = nn.Linear(features, PHENOTYPE)
            self.phenotype_1 = nn.Linear(PHENOTYPE, outputs)

    @property
    def predicts_phenotypes(self) -> bool:
        """Whether there is a phenotype head."""
        return self.sex or self.age

    def embed(self, product: Tensor, propagation: Tensor) -> Tensor:
        """Embeddings z (n, 64) from X W of the first layer (n, 256) and P (n, n).

        FedNI eq. 5, two layers: f_g(Z, A) = elu(D^-1/2 A D^-1/2 Z W).
        """
        first = elu(propagation @ product + self.encoder_0.bias)
        return elu(propagation @ (first @ self.encoder_1.weight.T) + self.encoder_1.bias)

    def project(self, features: Tensor) -> Tensor:
        """X W of the first layer (n, 256), of X (n, d); the same on every graph of these nodes."""
        return features @ self.encoder_0.weight.T

    def encode(self, features: Tensor, propagation: Tensor) -> Tensor:
        """FedNI eq. 4: Z = f_g(X-, A-), embeddings (n, 64) of X (n, d) on the graph P (n, n)."""
        return self.embed(self.project(features), propagation)

    def missing(self, embedding: Tensor, degree: Tensor) -> Tensor:
        """(n,) sigmoid(f_n(z)), missing neighbours as a share of k, from z (n, 64) and visible neighbours (n,)."""
        known = embedding
        if self.sees_degree:
            # At a share of a few per cent the sigmoid is exponential: a weight of 1 is proportional to the degree.
            known = cat([rms_norm(embedding.detach(), ENCODER[1:]), degree.log1p()[:, None]], dim=1)
        logits: Tensor = self.count(known)
        return logits[:, 0].sigmoid()

    def expand(self, embedding: Tensor, noise: Tensor) -> Tensor:
        """Inputs of the last feature layer (p, 256), from z (p, 64) and noise (p, 4)."""
        hidden = self.normal_0(relu(self.feature_0(cat([embedding, noise], dim=1))))
        expanded: Tensor = self.normal_1(relu(self.feature_1(hidden)))
        return expanded

    def generate(self, embedding: Tensor, noise: Tensor) -> Tensor:
        """FedNI eq. 7: x~ = f_z(R(z)), features of missing neighbours (p, d) in (-1, 1); R appends the noise."""
        return tanh(self.feature_2(self.expand(embedding, noise)))

    def predict_phenotype(self, product: Tensor) -> Tensor:
        """Phenotype outputs (p, outputs) from the phenotype head's first product (p, 32)."""
        outputs: Tensor = self.phenotype_1(relu(product + self.phenotype_0.bias))
        return outputs

    def phenotypes(self, features: Tensor) -> Tensor:
        """u~ = f_u(x~): phenotype outputs (p, outputs) of generated features (p, d), sex logits, then age."""
        return self.predict_phenotype(features @ self.phenotype_0.weight.T)


# FedNI's discriminator: three linear layers under spectral normalisation (Miyato et al. 2018).
#
# SN-Linear(d, 128) ReLU -> SN-Linear(128, 32) ReLU -> SN-Linear(32, 1)

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
