"""What the server minimises on the public samples."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.distillation.batch import PublicBatch
from brainfed.federation.distillation.split import Visits


class Objective(Protocol):
    """A loss of the global model that may remember earlier batches and train a network of its own.

    Attributes:
        visits: how often institutions teach samples.
    """

    visits: Visits

    def begin(self, predict: Callable[[], Tensor], labels: Tensor, held: Tensor) -> None:
        """Begin a round, as `SelfEvaluation.begin`."""

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) loss of the global model of every fold; 0 in a fold without samples.

        Every term is summed over its samples and divided by the number of samples of the fold's batch. The call also
        updates what the objective remembers, and its own network.
        """

    def state(self) -> dict[str, NDArray[Any]]:
        """What the objective remembers and the weights of its network."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
