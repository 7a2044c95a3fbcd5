"""Public samples by what the models know of them (GAHFL Sec. II-C; FedGEMS Sec. 3.3)."""

from dataclasses import dataclass

from torch import Tensor

from brainfed.federation.distillation.batch import PublicBatch


@dataclass(frozen=True)
class Split:
    """The three parts of a batch; padding is in none.

    Attributes:
        right: (F, B) bool, the global model predicts the label now: P_C.
        forgotten: (F, B) bool, it does not, and did before: P_IC*.
        never: (F, B) bool, it never did: P_IC-.
    """

    right: Tensor
    forgotten: Tensor
    never: Tensor


def split(batch: PublicBatch, known: Tensor) -> Split:
    """The parts of `batch`; `known` (F, B) bool marks samples that the global model predicted right before."""
    real = batch.weight > 0
    right = batch.logits.argmax(dim=-1) == batch.labels
    return Split(real & right, real & ~right & known, real & ~right & ~known)


def right_teachers(batch: PublicBatch) -> Tensor:
    """(K, F, B) bool, institutions that took part and whose model predicts the label."""
    return (batch.teachers.argmax(dim=-1) == batch.labels) & batch.present[..., None]
