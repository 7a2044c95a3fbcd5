"""FedSage+'s classifier: GraphSAGE with mean aggregation (Hamilton et al. 2017, Alg. 1; Zhang et al. 2021)."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import elu

from brainfed.models.classifier import Classifier, Matrix, Products, dropped, matrix, vector


class GraphSAGE(Classifier):
    """h_1 = elu(A X W_0 + X V_0 + b_0), h_2 = A h_1 W_1 + h_1 V_1 + b_1, logits = h_2 W_2 + b_2.

    A averages over a node's neighbours, itself not among them. V is `weight_own`.

    Args:
        features: d.
        hidden: widths of the two GraphSAGE layers.
        classes: C.
    """

    def __init__(self, features: int, hidden: tuple[int, int], classes: int) -> None:
        super().__init__((features, *hidden, classes), {"weight_0": "propagated", "weight_own_0": "own"})
        self.weight_0, self.bias_0 = matrix(features, hidden[0]), vector(hidden[0])
        self.weight_1, self.bias_1 = matrix(*hidden), vector(hidden[1])
        self.weight_2, self.bias_2 = matrix(hidden[1], classes), vector(classes)
        self.weight_own_0 = matrix(features, hidden[0])
        self.weight_own_1 = matrix(*hidden)

    def logits(self, products: Products, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(..., n, C); see `Classifier`."""
        assert propagation is not None
        hidden = dropped(elu(products["weight_0"] + products["weight_own_0"] + self.bias_0), kept, 0)
        hidden = propagation @ (hidden @ self.weight_1) + hidden @ self.weight_own_1 + self.bias_1
        return dropped(hidden, kept, 1) @ self.weight_2 + self.bias_2
