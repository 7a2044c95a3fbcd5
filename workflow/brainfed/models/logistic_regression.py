"""Logistic regression as a network without hidden layers."""

from collections.abc import Sequence

from torch import Tensor

from brainfed.models.classifier import Classifier, Matrix, Products, matrix, vector


class LogisticRegression(Classifier):
    """FC(d, C).

    Args:
        features: d.
        classes: C.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__((features, classes), {"weight_0": "own"})
        self.weight_0, self.bias_0 = matrix(features, classes), vector(classes)

    def logits(self, products: Products, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:  # noqa: ARG002
        """(..., n, C); see `Classifier`."""
        return products["weight_0"] + self.bias_0
