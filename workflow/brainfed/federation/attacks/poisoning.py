"""The attack of a training on the wire, by its settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from brainfed.federation.attacks.attacked import attacked_institutions
from brainfed.federation.attacks.far import FarUploads
from brainfed.federation.attacks.updates import SCALED, TURNED, FalseUpdates
from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.federation.wire import Attack
from brainfed.runtime.streams import Streams


@dataclass(frozen=True)
class Federation:
    """What an attack has to know of a training.

    Attributes:
        institutions: their number.
        folds: fold number of each position of the fold axis.
        streams: of the repeat.
        start: tensors (F, ...) that all institutions begin with, by name.
        rows: entries of the first axis that each fold has, of tensors that are padded to the largest fold; empty: all.
    """

    institutions: int
    folds: tuple[int, ...]
    streams: Streams
    start: Mapping[str, Tensor]
    rows: tuple[int, ...] = ()


def attack_of(settings: RobustnessSettings, federation: Federation) -> Attack | None:
    """The attack on replies; None without one, and with one on labels, which happens at home."""
    if not settings.poisons or settings.attack == "label_flip":
        return None
    attacked = attacked_institutions(settings.attacked, federation.institutions, federation.streams)
    if settings.attack in ("sign_flip", "scale"):
        start = {name: tensor.clone() for name, tensor in federation.start.items()}
        return FalseUpdates(attacked, TURNED if settings.attack == "sign_flip" else SCALED, start)
    one = settings.attack == "ofom"
    return FarUploads(attacked, federation.streams, federation.folds, one=one, rows=federation.rows)
