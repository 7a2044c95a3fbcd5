"""Which institutions take part in a round: FedAvg's client fraction C."""

import torch
from torch import Tensor

from brainfed.runtime.streams import Streams


def choose(institutions: int, fraction: float, streams: Streams, round_index: int) -> Tensor:
    """(M,) bool with max(round(C M), 1) institutions set, drawn without replacement."""
    count = max(round(fraction * institutions), 1)
    chosen = torch.zeros(institutions, dtype=torch.bool)
    order = streams.numpy("client-selection", round_index).permutation(institutions)
    chosen[torch.from_numpy(order[:count])] = True
    return chosen
