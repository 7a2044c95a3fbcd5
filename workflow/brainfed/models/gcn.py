"""FedNI's classifier (Table IV): two graph convolutions and a linear layer."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import elu

from brainfed.models.classifier import Classifier, Matrix, Products, Read, dropped, matrix, vector


class GCN(Classifier):
    """G-conv(d, 64) ELU -> G-conv(64, 32) -> FC(32, C), where G-conv(X) = D^-1/2 A D^-1/2 X W + b.

    `propagation` is D^-1/2 A D^-1/2 (FedNI Sec. III-A).

    Args:
        features: d.
        hidden: widths of the two convolutions.
        classes: C.
        skip: whether the logits of a linear classifier on the subject's own features, X W_skip, are added.
    """

    def __init__(self, features: int, hidden: tuple[int, int], classes: int, *, skip: bool = False) -> None:
        reads: dict[str, Read] = {"weight_0": "propagated"}
        super().__init__(
            (features, *hidden, classes), reads | ({"weight_skip": "own"} if skip else {}), zero=("weight_skip",)
        )
        self.weight_0, self.bias_0 = matrix(features, hidden[0]), vector(hidden[0])
        self.weight_1, self.bias_1 = matrix(*hidden), vector(hidden[1])
        self.weight_2, self.bias_2 = matrix(hidden[1], classes), vector(classes)
        self.weight_skip = matrix(features, classes) if skip else None

    def logits(self, products: Products, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(..., n, C); see `Classifier`."""
        assert propagation is not None
        hidden = elu(products["weight_0"] + self.bias_0)
        hidden = propagation @ (dropped(hidden, kept, 0) @ self.weight_1) + self.bias_1
        found = dropped(hidden, kept, 1) @ self.weight_2 + self.bias_2
        return found + products["weight_skip"] if "weight_skip" in products else found
