"""The server's objective without institutions: the public labels alone."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.distillation.batch import PublicBatch
from brainfed.federation.distillation.losses import batch_mean, cross_entropy


class LabelsAloneObjective:
    """Cross-entropy on the labels of the public samples; what the institutions send has no effect."""

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) mean cross-entropy."""
        return batch_mean(cross_entropy(batch.logits, batch.labels), batch.weight)

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: no batch depends on an earlier one."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to copy."""
