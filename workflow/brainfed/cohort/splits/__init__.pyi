from ._folds import require_own, draw_public
from ._institutions import split, draw_institutions
from ._training_labels import require_agreement, training_labels, read_acquisition

__all__ = [
    "require_own", "draw_public",
    "split", "draw_institutions",
    "require_agreement", "training_labels", "read_acquisition",
]
