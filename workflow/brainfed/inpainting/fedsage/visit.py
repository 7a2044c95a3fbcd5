"""One visit of an owner's fGen to another owner: the noise that it wears there, and its rows in the ledger.

The noise is FedNI's, on the weights that leave: one noisy copy a round, the same for all hosts, for several would be
averaged. At home fGen is trained as it is. The gradients that hosts return carry none: they are orders of
magnitude smaller than weights, and noise of this size would leave nothing of them. Under `exchange: raw` weights stay
at home, and the vectors that leave are the noisy copy's, so that both exchanges give the same numbers.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from brainfed.federation.ledger import Direction, Ledger
from brainfed.federation.privacy import noisy_copy
from brainfed.inpainting.fedsage.crossings import RAW_TENSORS, SUMMED_TENSORS
from brainfed.inpainting.fedsage.owner import Owner
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.models.fedsage_generator import LATENT, FeatureGenerator
from brainfed.runtime.streams import Streams


def crosses_of(settings: FedSageSettings) -> Mapping[str, tuple[str, ...]]:
    """What a training with these settings may send."""
    return SUMMED_TENSORS if settings.exchange == "gradients" else RAW_TENSORS


def sent_copy(
    fgen: FeatureGenerator, visitor: Owner, settings: FedSageSettings, streams: Streams, part: str, number: int
) -> dict[str, Tensor]:
    """The weights that `visitor` sends in round `number`, by name; none where they are sent as they are."""
    if settings.noise == 0:
        return {}
    fold = -1 if part == "all" else int(part.removeprefix("fold-"))
    return noisy_copy(dict(fgen.named_parameters()), settings.noise, streams, visitor.institution, fold, number)


@contextmanager
def wearing(fgen: FeatureGenerator, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Compute with `weights` in place of fGen's own; gradients are added to those of its own."""
    own = {name: parameter.data for name, parameter in fgen.named_parameters()}
    try:
        for name, parameter in fgen.named_parameters():
            parameter.data = weights.get(name, parameter.data)
        yield
    finally:
        for name, parameter in fgen.named_parameters():
            parameter.data = own[name]


def record_visit(
    fgen: FeatureGenerator, visitor: Owner, host: Owner, settings: FedSageSettings, number: int, ledger: Ledger
) -> None:
    """Record the visit of `visitor`'s `fgen` to `host` in round `number`.

    The host's embeddings no longer change, so that they cross once.
    """
    if settings.exchange == "gradients":
        shapes = {name: tuple(parameter.shape) for name, parameter in fgen.named_parameters()}
        sent = {f"fgen.{name}": shape for name, shape in shapes.items()}
        returned = {f"fgen-gradient.{name}": shape for name, shape in shapes.items()}
    else:
        vectors = (len(host.targeted), settings.targets, host.missing.shape[1])
        embedding = {"embedding": (len(host.targeted), LATENT)} if number == 0 else {}
        sent, returned = {"generated": vectors}, {"generated-gradient": vectors, **embedding}
    for shapes, sender, receiver in ((sent, visitor, host), (returned, host, visitor)):
        ends: tuple[tuple[Direction, Owner], ...] = (("upload", sender), ("download", receiver))
        for name, shape in shapes.items():
            for direction, owner in ends:
                ledger.record(
                    name,
                    shape,
                    host.missing.element_size(),
                    direction=direction,
                    round_index=number,
                    institution=owner.institution,
                    subjects=owner.subjects,
                    to="institutions",
                )
