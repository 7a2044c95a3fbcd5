"""FedSage+'s networks: the GraphSAGE classifier and the generator NeighGen (Zhang et al. 2021)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.nn.functional import elu, relu

from brainfed.models._classifier import Classifier, Matrix, NamedProducts, dropped, parameter

# FedSage+'s classifier: GraphSAGE with mean aggregation (Hamilton et al. 2017, Alg. 1; Zhang et al. 2021).


class GraphSAGE(Classifier):
    """h_1 = elu(A X W_0 + X V_0 + b_0), h_2 = A h_1 W_1 + h_1 V_1 + b_1, logits = h_2 W_2 + b_2.

    X has d features, and the logits C classes. A averages over a node's neighbours, itself not among them. V is
    `weight_own`.
    """

    def __init__(self, features: int, hidden: tuple[int, int], classes: int) -> None:
        super().__init__((features, *hidden, classes), {"weight_0": "propagated", "weight_own_0": "own"})
        self.weight_0, self.bias_0 = parameter(features, hidden[0]), parameter(hidden[0])
        self.weight_1, self.bias_1 = parameter(*hidden), parameter(hidden[1])
        self.weight_2, self.bias_2 = parameter(hidden[1], classes), parameter(classes)
        self.weight_own_0 = parameter(features, hidden[0])
        self.weight_own_1 = parameter(*hidden)

    def logits(self, products: NamedProducts, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(..., n, C); see `Classifier`."""
        assert propagation is not None
        hidden = dropped(elu(products["weight_0"] + products["weight_own_0"] + self.bias_0), kept, 0)
        hidden = propagation @ (hidden @ self.weight_1) + hidden @ self.weight_own_1 + self.bias_1
        return dropped(hidden, kept, 1) @ self.weight_2 + self.bias_2


# FedSage+'s generator of missing neighbours, NeighGen (Zhang et al. 2021, Sec. 4.1): encoder, dGen and fGen.
#
#     z = relu(P relu(P X W_1 + b_1) W_2 + b_2),   P = D^-1 A with the self-loops in A
#     count = relu(z w + b)
#     features = tanh(W_c relu(W_b relu(W_a (z + noise)))),   `targets` vectors a node
#
# Dropout acts before W_2 and before W_c. The caller draws noise and dropout from keyed streams.

ENCODER_WIDTH = 32
LATENT = 128
FGEN_WIDTH = 256


@dataclass(frozen=True)
class GeneratorShape:
    """d features, `targets` generated neighbours a node, width before fGen's last layer."""

    features: int
    targets: int
    fgen_width: int


class Encoder(Module):
    """Two graph convolutions d -> 32 -> 128 with row-normalised propagation."""

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        self.first = Linear(shape.features, ENCODER_WIDTH)
        self.second = Linear(ENCODER_WIDTH, LATENT)

    def forward(self, propagated: Tensor, propagation: Tensor, keep: Tensor | float = 1.0) -> Tensor:
        """(n, 128) embeddings from P X (n, d), P (n, n) and dropout factors (n, 32)."""
        hidden = relu(self.first(propagated)) * keep
        return relu(propagation @ (hidden @ self.second.weight.T) + self.second.bias)


class CountGenerator(Module):
    """FedSage+ dGen: the number of missing neighbours, n~ = relu(z w + b).

    Its bias starts at one: a ReLU below zero for every subject would never learn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.output = Linear(LATENT, 1)
        torch.nn.init.ones_(self.output.bias)

    def forward(self, embeddings: Tensor) -> Tensor:
        """(n,) counts from embeddings (n, 128)."""
        return relu(self.output(embeddings))[:, 0]


class FeatureGenerator(Module):
    """FedSage+ fGen: the features of missing neighbours, x~ = tanh(MLP(z + N(0, I)))."""

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        self.shape = shape
        self.first = Linear(LATENT, FGEN_WIDTH)
        self.second = Linear(FGEN_WIDTH, shape.fgen_width)
        self.output = Linear(shape.fgen_width, shape.targets * shape.features)

    def expand(self, noisy: Tensor, keep: Tensor | float = 1.0) -> Tensor:
        """(n, fgen_width) inputs of the last layer, from embeddings plus noise (n, 128), with dropout factors."""
        return relu(self.second(relu(self.first(noisy)))) * keep

    def forward(self, noisy: Tensor) -> Tensor:
        """(n, targets, d) features, without dropout."""
        return torch.tanh(self.output(self.expand(noisy))).view(len(noisy), self.shape.targets, self.shape.features)


class MissingNeighbourGenerator(Module):
    """FedSage+ NeighGen: one institution's encoder, dGen and fGen."""

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.dgen = CountGenerator()
        self.fgen = FeatureGenerator(shape)
