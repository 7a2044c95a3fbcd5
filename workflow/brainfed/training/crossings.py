"""What leaves an institution beside the weights of the rounds, written into the ledger."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from brainfed.federation.exchange import Ledger
from brainfed.runtime.artefacts import read_arrays
from brainfed.training.inputs import MethodInputs

# Most methods that record here are linear and start twice as fast without torch.
if TYPE_CHECKING:
    from torch import Tensor

    from brainfed.training.stacking import Stack


def record_pooling(inputs: MethodInputs, ledger: Ledger) -> None:
    """A central method takes every patient's features and label out of the institution."""
    d, itemsize = inputs.features[0].shape[1], inputs.features[0].itemsize
    for institution in range(len(inputs.institutions)):
        n = len(inputs.members(institution))
        for name, shape, size in (("features", (n, d), itemsize), ("labels", (n,), 1)):
            ledger.record(name, shape, size, direction="upload", round_index=0, subjects=n)


def record_help_for_unseen(stack: "Stack", weights: "dict[str, Tensor]", ledger: Ledger) -> None:
    """What an institution without training subjects is given by the others, in the stack's first fold.

    The others' means and deviations scale its subjects. Where no global model exists, their models
    score them: `weights` holds (M, F, ...) tensors by name then, and nothing otherwise.
    """
    seen = (stack.labels[:, 0] >= 0).any(dim=1)
    if bool(seen.all()):
        return
    for index in seen.nonzero()[:, 0].tolist():
        member = stack.members[index]
        sent = {"feature-mean": member.mean, "feature-sd": member.sd}
        shapes = {name: (moment.shape[1:], moment.itemsize) for name, moment in sent.items() if moment is not None}
        shapes |= {name: (tuple(view.shape[2:]), view.element_size()) for name, view in weights.items()}
        for name, (shape, size) in shapes.items():
            ledger.record(name, shape, size, direction="upload", round_index=0, subjects=len(member.nodes))


def crossings_of_features(files: Sequence[Path | str]) -> tuple[dict[str, int | str], ...]:
    """What the choice of features sent between institutions, in the first fold; nothing where all are used."""
    return tuple(read_arrays(files[0], []).metadata.get("crossings", ())) if files else ()


def crossings_of_graph(inputs: MethodInputs, scope: str) -> tuple[dict[str, int | str], ...]:
    """A graph over everybody that is cut afterwards has compared patients of different institutions."""
    if scope != "global_cut":
        return ()
    ledger = Ledger({"features": ("subjects", "features")})
    for institution in range(len(inputs.institutions)):
        n = len(inputs.members(institution))
        shape = (n, inputs.features[0].shape[1])
        ledger.record("features", shape, inputs.features[0].itemsize, direction="upload", round_index=0, subjects=n)
    return ledger.rows()
