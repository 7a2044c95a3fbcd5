"""One visit of an owner's fGen to another owner in the ledger: what the visitor sends and the host returns."""

from collections.abc import Mapping

from brainfed.federation.exchange import Direction, Ledger
from brainfed.inpainting.fedsage_crossings import RAW_CROSSES, SUMMED_CROSSES
from brainfed.inpainting.fedsage_owner import Owner
from brainfed.inpainting.fedsage_settings import FedSageSettings
from brainfed.models.fedsage_generator import LATENT, FeatureGenerator


def crosses_of(settings: FedSageSettings) -> Mapping[str, tuple[str, ...]]:
    """What a training with these settings may send."""
    return SUMMED_CROSSES if settings.exchange == "gradients" else RAW_CROSSES


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
                    subjects=owner.subjects,
                )
