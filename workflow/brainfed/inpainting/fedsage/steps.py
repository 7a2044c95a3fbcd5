"""The two losses that FedSage+'s generators descend: the owner's own, then fGen's at every other owner's.

Zhang et al. 2021, eq. 2 and 4 with weights of one. The mended classifier's cross-entropy is left out, so that the
generator sees no label: it is trained once a repeat and shared by the folds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.federation.ledger import Ledger
from brainfed.federation.privacy import normal
from brainfed.inpainting.fedsage.losses import count_loss
from brainfed.inpainting.fedsage.owner import Owner
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.fedsage.visit import record_visit, sent_copy, wearing
from brainfed.inpainting.fedsage.wide import Targets, WideOutput
from brainfed.models.fedsage_generator import ENCODER_WIDTH, FeatureGenerator, MissingNeighbourGenerator
from brainfed.runtime.streams import Streams


@dataclass(frozen=True)
class Draws:
    """Noise and dropout of one part of a repeat, from keyed streams, drawn on the CPU.

    Attributes:
        streams: of the repeat.
        part: `all`, or `fold-f`.
        dropout: the rate.
    """

    streams: Streams
    part: str
    dropout: float

    def noise(self, like: Tensor, *key: int | str) -> Tensor:
        """Standard normal numbers in the shape, type and place of `like`."""
        return normal(self.streams, like.shape, "fedsage-noise", self.part, *key).to(like)

    def keep(self, like: Tensor, width: int, *key: int | str) -> Tensor:
        """(n, width) factors 0 or 1 / (1 - rate) for the n rows of `like`."""
        random = torch.Generator().manual_seed(self.streams.key("fedsage-dropout", self.part, *key))
        kept = torch.rand(len(like), width, generator=random) >= self.dropout
        return kept.to(like) / (1 - self.dropout)


def local_gradient(
    generator: MissingNeighbourGenerator,
    owner: Owner,
    draws: Draws,
    settings: FedSageSettings,
    epoch: int,
    wide: WideOutput,
) -> dict[str, float]:
    """Fill the gradients of one local epoch; the owner's `count` and `feature` losses."""
    key = (owner.institution, "local", epoch)
    keep = draws.keep(owner.propagated, ENCODER_WIDTH, "encoder", *key)
    embeddings = generator.encoder(owner.propagated, owner.propagation, keep)
    count = count_loss(generator.dgen(embeddings), owner.counts)
    expanded = _expanded(generator.fgen, embeddings[owner.targeted], draws, settings, key)
    feature, back = wide.add_gradients(generator.fgen.output, expanded.detach(), _targets(owner))
    torch.autograd.backward([count, expanded], [torch.ones_like(count), back])
    return {"count": float(count.detach()), "feature": float(feature)}


@torch.no_grad()
def target_embeddings(generator: MissingNeighbourGenerator, owner: Owner) -> Tensor:
    """(t, 128) of the owner's nodes that miss neighbours, by its own encoder, which no longer trains."""
    embeddings: Tensor = generator.encoder(owner.propagated, owner.propagation)
    return embeddings[owner.targeted]


def federated_gradient(
    fgen: FeatureGenerator,
    visitor: Owner,
    owners: Sequence[Owner],
    embeddings: Mapping[int, Tensor],
    draws: Draws,
    settings: FedSageSettings,
    number: int,
    ledger: Ledger,
    wide: WideOutput,
) -> dict[str, float]:
    """Add to fGen's gradient that of its loss at home and at every other owner that has something to compare.

    To others it goes with noise on its weights, and the gradients of that copy come back.

    Args:
        fgen: of `visitor`.
        visitor: whose feature generator trains.
        owners: all of them.
        embeddings: institution -> (t, 128), each by its own encoder.
        draws: of the repeat.
        settings: of the training.
        number: of the round.
        ledger: records what crosses.
        wide: forms the products of fGen's last layer.

    Returns:
        `feature`: the loss at home; `feature_elsewhere`: the sum of the others'.
    """
    values = {"feature": 0.0, "feature_elsewhere": 0.0}
    sent = sent_copy(fgen, visitor, settings, draws.streams, draws.part, number)
    for host in owners:
        if len(host.targeted) == 0:
            continue
        key = (visitor.institution, "federated", number, host.institution)
        with wearing(fgen, {} if host is visitor else sent):
            expanded = _expanded(fgen, embeddings[host.institution], draws, settings, key)
            loss, back = wide.add_gradients(fgen.output, expanded.detach(), _targets(host))
            expanded.backward(back)  # type: ignore[no-untyped-call]
        if host is visitor:
            values["feature"] = float(loss)
        else:
            values["feature_elsewhere"] += float(loss)
            record_visit(fgen, visitor, host, settings, number, ledger)
    return values


def _expanded(
    fgen: FeatureGenerator, embeddings: Tensor, draws: Draws, settings: FedSageSettings, key: tuple[int | str, ...]
) -> Tensor:
    noisy = embeddings + draws.noise(embeddings, *key)
    return fgen.expand(noisy, draws.keep(noisy, settings.fgen_width, "fgen", *key))


def _targets(host: Owner) -> Targets:
    return Targets(host.missing, host.neighbours, host.visible)
