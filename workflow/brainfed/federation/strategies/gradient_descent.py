"""A server that steps along the mean of gradients, after it has weighed the classes by their counts.

Round 0 sums the numbers of subjects of each class, if classes are balanced. With the sums N_c and noise of standard
deviation s, every subject of class c has the weight

    v_c = (min_k N_k + s) / (N_c + s),

at most 1, so that weights raise no subject's gradient. With much noise all weights approach 1. Further rounds step

    w <- w - step sum_m g_m / N

with the sums g_m of the institutions' gradients over N training subjects.
"""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.message import Message


class GradientDescent:
    """One shared model from sums of gradients.

    Args:
        institutions: codes.
        start: (F, K, d) initial weights.
        step: (F,) size of a step.
        class_weights: (F, C) ones.
        count_noise: (F,) standard deviation of the noise on the summed counts of classes; None: no round of counts.
    """

    def __init__(
        self,
        institutions: tuple[int, ...],
        start: Tensor,
        step: Tensor,
        class_weights: Tensor,
        count_noise: Tensor | None,
    ) -> None:
        self.institutions, self.step, self.count_noise = institutions, step, count_noise
        self.weights, self.class_weights = start.clone(), class_weights.clone()

    def choose(self, _number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.institutions

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """Weigh the classes, or step."""
        ordered = [replies[code] for code in sorted(replies)]
        if "class-counts" in ordered[0].tensors:
            self._weigh(torch.stack([reply.tensors["class-counts"] for reply in ordered]).sum(dim=0))
            return
        subjects = torch.stack([reply.samples for reply in ordered]).sum(dim=0).clamp(min=1)
        total = torch.stack([reply.tensors["gradient"] for reply in ordered]).sum(dim=0)
        self.weights -= (self.step.to(total) / subjects.to(total))[:, None, None] * total

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The weights of the classes after their counts, then the model; nothing before the first round."""
        if number == 0:
            return {}
        counted = self.count_noise is not None and number == 1
        tensors = {"class-weights": self.class_weights} if counted else {"weights": self.weights}
        return dict.fromkeys(self.institutions, Message(tensors))

    def state(self) -> dict[str, NDArray[Any]]:
        """The model and the weights of the classes."""
        return {"weights": self.weights.cpu().numpy(), "class-weights": self.class_weights.cpu().numpy()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
        self.weights.copy_(torch.from_numpy(arrays["weights"]))
        self.class_weights.copy_(torch.from_numpy(arrays["class-weights"]))

    def _weigh(self, counts: Tensor) -> None:
        assert self.count_noise is not None
        # One subject beside the noise, so that a class without subjects has a weight.
        level = counts.clamp(min=0) + self.count_noise.to(counts).clamp(min=1)[:, None]
        self.class_weights.copy_(level.min(dim=1, keepdim=True).values / level)
