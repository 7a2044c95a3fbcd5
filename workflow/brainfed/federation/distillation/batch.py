"""One minibatch of the server's public samples, of all folds side by side."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class PublicBatch:
    """Public samples, what the global model says of them and what the institutions' models say.

    A fold with fewer samples than the largest is padded. Padded samples have weight 0, any finite logits, any class
    and any valid position; they have no effect.

    Attributes:
        logits: (F, B, C) of the global model, with gradient.
        labels: (F, B) int64 in {0, ..., C - 1}.
        weight: (F, B) 1 for a sample, 0 for padding.
        rows: (F, B) int64 position of each sample among the fold's P public samples. No sample is in a batch twice.
        teachers: (K, F, B, C) logits of the institutions' models, detached; of an absent institution any finite value.
        present: (K, F) bool, institutions that took part in the fold.
    """

    logits: Tensor
    labels: Tensor
    weight: Tensor
    rows: Tensor
    teachers: Tensor
    present: Tensor
