from ._combat import harmonised
from ._rfe import both_classes, elimination_ranks, select_features

__all__ = ["harmonised", "both_classes", "elimination_ranks", "select_features"]
