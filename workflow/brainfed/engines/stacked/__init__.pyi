from ._first_layer import DENSE_NUMBERS, Propagate
from ._stack import record_moments, members
from ._network import score_alone
from ._training import STACK_BYTES, StackedTraining, train_chosen

__all__ = [
    "DENSE_NUMBERS", "Propagate",
    "record_moments", "members",
    "score_alone",
    "STACK_BYTES", "StackedTraining", "train_chosen",
]
