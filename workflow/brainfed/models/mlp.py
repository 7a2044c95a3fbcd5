"""FedNI's classifier without a graph (Sec. IV): the multilayer perceptron of FedMLP."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import elu

from brainfed.models.classifier import Classifier, Matrix, Products, dropped, matrix, vector


class MLP(Classifier):
    """FC(d, 64) ELU -> FC(64, 32) -> FC(32, C).

    Args:
        features: d.
        hidden: widths of the two hidden layers.
        classes: C.
    """

    def __init__(self, features: int, hidden: tuple[int, int], classes: int) -> None:
        super().__init__((features, *hidden, classes), {"weight_0": "own"})
        self.weight_0, self.bias_0 = matrix(features, hidden[0]), vector(hidden[0])
        self.weight_1, self.bias_1 = matrix(*hidden), vector(hidden[1])
        self.weight_2, self.bias_2 = matrix(hidden[1], classes), vector(classes)

    def logits(self, products: Products, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:  # noqa: ARG002
        """(..., n, C); see `Classifier`."""
        hidden = elu(products["weight_0"] + self.bias_0)
        hidden = dropped(hidden, kept, 0) @ self.weight_1 + self.bias_1
        return dropped(hidden, kept, 1) @ self.weight_2 + self.bias_2
