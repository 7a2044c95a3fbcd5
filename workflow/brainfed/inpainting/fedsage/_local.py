"""One owner's generator in FedSage+: its impaired graph, losses and local training (Zhang et al. 2021, Sec. 4.2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import smooth_l1_loss

from brainfed.federation import Adam, Arrays, Message, normal
from brainfed.graphs import Graph, dense_block
from brainfed.inpainting import FedSageSettings, InpaintingInputs, scaling_of
from brainfed.inpainting.fedni import carried
from brainfed.models import ENCODER_WIDTH, FeatureGenerator, GeneratorShape, MissingNeighbourGenerator
from brainfed.runtime import BoolArray, Float64, FloatArray, IntArray, Streams, below


@dataclass(frozen=True)
class Draws:
    """The draws of one part of a repeat.

    Attributes:
        part: `all`, or `fold-f`.
        dropout: the rate.
    """

    streams: Streams
    part: str
    dropout: float

    def noise(self, like: Tensor, *key: int | str) -> Tensor:
        """Standard normal numbers with the shape, type and device of `like`."""
        return normal(self.streams, like.shape, "fedsage-noise", self.part, *key).to(like)

    def keep(self, like: Tensor, width: int, *key: int | str) -> Tensor:
        """(n, width) factors 0 or 1 / (1 - rate) for the n rows of `like`."""
        random = torch.Generator().manual_seed(self.streams.key("fedsage-dropout", self.part, *key))
        kept = torch.rand(len(like), width, generator=random) >= self.dropout
        return kept.to(like) / (1 - self.dropout)

    def expanded(self, fgen: FeatureGenerator, embeddings: Tensor, *key: int | str) -> Tensor:
        """(t, fgen_width) inputs of fGen's last layer for noisy `embeddings` (t, 128), with dropout."""
        noisy = embeddings + self.noise(embeddings, *key)
        return fgen.expand(noisy, self.keep(noisy, fgen.shape.fgen_width, "fgen", *key))


def arrays_of(module: torch.nn.Module, prefix: str = "") -> dict[str, NDArray[Any]]:
    """All weights, `{prefix}{name}`, on the host."""
    return {f"{prefix}{name}": value.detach().cpu().numpy() for name, value in module.state_dict().items()}


@torch.no_grad()
def load_arrays(module: torch.nn.Module, arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> None:
    """Copy weights from `arrays_of`."""
    for name, value in module.state_dict().items():
        value.copy_(torch.from_numpy(arrays[f"{prefix}{name}"]))


def feature_generator(shape: GeneratorShape, weights: Mapping[str, Tensor]) -> FeatureGenerator:
    """A module with these tensors as its parameters, without copies."""
    with torch.device("meta"):
        fgen = FeatureGenerator(shape)
    fgen.load_state_dict(dict(weights), assign=True)
    return fgen


def count_loss(predicted: Tensor, true: Tensor) -> Tensor:
    """FedSage+ L^d: mean smooth-L1 distance of (v,) predicted and true numbers of missing neighbours."""
    return smooth_l1_loss(predicted, true)


def nearest_missing(products: Tensor, squares: Tensor, neighbours: Tensor) -> Tensor:
    """(t, slots) rows of the missing neighbours nearest to each generated vector.

    ||x - y||^2 = ||x||^2 - 2 x.y + ||y||^2 with the same first term for all candidates: one matrix product, and no
    tensor (t, slots, slots, d).

    Args:
        products: (t, slots, h) of generated vectors with missing nodes, x.y.
        squares: (h,) of the missing nodes, ||y||^2.
        neighbours: (t, h) bool, at least one in each row.
    """
    if len(products) == 0:
        return torch.zeros(products.shape[:2], dtype=torch.int64, device=products.device)
    return (squares - 2 * products).masked_fill(~neighbours[:, None, :], float("inf")).argmin(dim=2)


# The last layer of FedSage+'s fGen and its loss, in blocks of features that stay in the cache.
#
# The layer is slots x d wide, 99,500 numbers a node at d = 19,900, and holds nearly all of the arithmetic. Autograd
# would read tensors of that width a dozen times at each owner, and allocate each gradient anew.

CPU_BLOCK = 1024
FEW_NODES = 64
"""For at most this many nodes a block has twice the features."""


@dataclass(frozen=True)
class Targets:
    """Targets of the generated features at one owner.

    Attributes:
        missing: (h, d) true features of hidden nodes.
        neighbours: (t, h) bool mask of each node's missing neighbours, at least one in each row.
        visible: number of visible nodes v >= t; those without missing neighbours have a loss of 0.
    """

    missing: Tensor
    neighbours: Tensor
    visible: int


@dataclass
class WideOutput:
    """Forward, loss and backward of the layer; one object serves all owners of a device.

    Attributes:
        block: number of features at a time, for more than `FEW_NODES` nodes.
    """

    block: int = CPU_BLOCK
    _made: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    _gradients: tuple[Tensor, ...] = ()

    @torch.no_grad()
    def add_gradients(self, output: Linear, hidden: Tensor, targets: Sequence[Targets]) -> tuple[Tensor, Tensor]:
        """FedSage+ L^f of some owners, and the gradients of their sum, added to the layer's where it has some.

        L^f = 1/|V| sum_v sum_p min_u |x~_v^p - x_u|^2 over generated vectors p and missing neighbours u of v; here a
        mean over visible nodes, slots and features.

        Args:
            output: the layer, (slots * d, w).
            hidden: (t, w) its inputs at all owners, one owner after the other.
            targets: of tanh of its output, one an owner.

        Returns:
            (owners,) losses, and the gradient of their sum by `hidden` (t, w).
        """
        d = targets[0].missing.shape[1]
        rows = [len(each.neighbours) for each in targets]
        missing = torch.cat([each.missing for each in targets])
        entries = hidden.new_tensor([each.visible * len(output.bias) for each in targets])
        scale = (2 / entries).repeat_interleave(hidden.new_tensor(rows, dtype=torch.int64))[:, None]
        back, squares = torch.zeros_like(hidden), hidden.new_zeros(len(hidden))
        weight_gradient, bias_gradient, are_new = self._buffers(output)
        for slot in range(len(output.bias) // d):
            made = self._generate(output, hidden, slot * d, d)
            nearest = _nearest(made, targets)
            for block in self._blocks(d, len(hidden)):
                columns = slice(slot * d + block.start, slot * d + block.stop)
                vectors = made[:, block]
                error = vectors - missing[:, block].index_select(0, nearest)
                squares += error.square().sum(dim=1)
                error.mul_(scale)
                error.addcmul_(error, vectors.square(), value=-1)
                if are_new:
                    torch.mm(error.T, hidden, out=weight_gradient[columns])
                    torch.sum(error, dim=0, out=bias_gradient[columns])
                else:
                    weight_gradient[columns].addmm_(error.T, hidden)
                    bias_gradient[columns].add_(error.sum(dim=0))
                back.addmm_(error, output.weight[columns])
        return torch.stack([own.sum() for own in torch.split(squares, rows)]) / entries, back

    def _generate(self, output: Linear, hidden: Tensor, start: int, width: int) -> Tensor:
        """(t, width) features in (-1, 1), which the next call overwrites."""
        kept = self._made
        if (kept.shape[1], kept.dtype, kept.device) != (width, hidden.dtype, hidden.device) or len(kept) < len(hidden):
            self._made = hidden.new_empty(len(hidden), width)
        made = self._made[: len(hidden)]
        for block in self._blocks(width, len(hidden)):
            rows = slice(start + block.start, start + block.stop)
            # A product is faster into one piece of memory than into rows that lie far apart.
            product = made if self.block >= width else hidden.new_empty(len(hidden), block.stop - block.start)
            torch.mm(hidden, output.weight[rows].T, out=product)
            torch.tanh(product.add_(output.bias[rows]), out=made[:, block])
        return made

    def _buffers(self, output: Linear) -> tuple[Tensor, Tensor, bool]:
        """The gradients of weight and bias, and whether they are to be written; `zero_grad` keeps their memory."""
        are_new = output.weight.grad is None or output.bias.grad is None
        if are_new:
            if not self._gradients:
                self._gradients = torch.empty_like(output.weight), torch.empty_like(output.bias)
            output.weight.grad, output.bias.grad = self._gradients
        assert output.weight.grad is not None and output.bias.grad is not None
        return output.weight.grad, output.bias.grad, are_new

    def _blocks(self, width: int, nodes: int) -> Iterator[slice]:
        size = self.block if nodes > FEW_NODES else 2 * self.block
        for start in range(0, width, size):
            yield slice(start, min(start + size, width))


def _nearest(made: Tensor, targets: Sequence[Targets]) -> Tensor:
    """(t,) rows of all owners' missing nodes, one owner after the other, for generated vectors (t, d)."""
    rows, before, first = [], 0, 0
    for each in targets:
        own = made[before : before + len(each.neighbours)]
        squares = each.missing.square().sum(dim=1)
        products = (own @ each.missing.T)[:, None]
        rows.append(nearest_missing(products, squares, each.neighbours)[:, 0] + first)
        before, first = before + len(own), first + len(each.missing)
    return torch.cat(rows)


# The impaired graph of one institution, a random tenth of its nodes hidden (Zhang et al. 2021, Sec. 4.1).
#
# The impaired graph is induced on the visible nodes. The count target of a visible node is the number of its hidden
# neighbours; a random choice of them are its feature targets.


@dataclass(frozen=True)
class Owner:
    """An institution's impaired graph and its hidden nodes.

    Attributes:
        institution: its code.
        subjects: number of its nodes, hidden ones included.
        propagation: (v, v) row-normalised impaired adjacency.
        propagated: (v, d) propagation times features.
        counts: (v,) number of hidden neighbours.
        targeted: (t,) positions of visible nodes with hidden neighbours.
        missing: (h, d) features of the hidden nodes.
        neighbours: (t, h) bool mask of each node's targets among the hidden nodes.

    Features are scaled by the institution.
    """

    institution: int
    subjects: int
    propagation: Tensor
    propagated: Tensor
    counts: Tensor
    targeted: Tensor
    missing: Tensor
    neighbours: Tensor

    @property
    def visible(self) -> int:
        """Number of visible nodes v."""
        return len(self.counts)

    @property
    def targets(self) -> Targets:
        """Targets of generated features at this owner."""
        return Targets(self.missing, self.neighbours, self.visible)


def owners_of(
    inputs: InpaintingInputs, settings: FedSageSettings, device: torch.device, dtype: torch.dtype
) -> list[Owner]:
    """One owner for each institution with training subjects, in order of code."""
    return [_owner(inputs, code, settings, device, dtype) for code in inputs.learning]


def row_normalised(graph: Graph, members: IntArray) -> Float64:
    """(m, m) D^-1 A of the graph induced on `members`; an empty row stays 0."""
    block = dense_block(graph.row, graph.column, graph.weight, members, graph.nodes)
    degree = block.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(block, degree, out=np.zeros_like(block), where=degree > 0), dtype=np.float64)


def scaled_members(inputs: InpaintingInputs, institution: int) -> FloatArray:
    """The members' features (m, d), scaled into the range of tanh."""
    return scaling_of(inputs, institution).apply(inputs.features[inputs.members(institution)])


def hidden_nodes(inputs: InpaintingInputs, institution: int, fraction: float) -> IntArray:
    """Positions of the institution's hidden nodes, ascending; at least one node stays visible."""
    members = inputs.members(institution)
    count = min(round(fraction * len(members)), len(members) - 1)
    order = inputs.streams.numpy("fedsage-hidden", inputs.part, institution).permutation(members)
    return np.asarray(np.sort(order[:count]), dtype=np.int64)


def _owner(
    inputs: InpaintingInputs, institution: int, settings: FedSageSettings, device: torch.device, dtype: torch.dtype
) -> Owner:
    members = inputs.members(institution)
    features = torch.from_numpy(scaled_members(inputs, institution)).to(device, dtype)
    hidden = hidden_nodes(inputs, institution, settings.hidden_fraction)
    visible = np.setdiff1d(members, hidden)
    has_edge = _edges(inputs.graph, visible, hidden)
    order = inputs.streams.numpy("fedsage-targets", inputs.part, institution).permutation(len(hidden))
    chosen = np.zeros_like(has_edge)
    chosen[:, order] = has_edge[:, order] & (has_edge[:, order].cumsum(axis=1) <= settings.targets)
    targeted = np.flatnonzero(has_edge.any(axis=1))
    propagation = torch.from_numpy(row_normalised(inputs.graph, visible)).to(device, dtype)
    return Owner(
        institution=institution,
        subjects=len(members),
        propagation=propagation,
        propagated=propagation @ features[np.searchsorted(members, visible)],
        counts=torch.from_numpy(has_edge.sum(axis=1)).to(device, dtype),
        targeted=torch.from_numpy(targeted).to(device),
        missing=features[np.searchsorted(members, hidden)],
        neighbours=torch.from_numpy(chosen[targeted]).to(device),
    )


def _edges(graph: Graph, receivers: IntArray, senders: IntArray) -> BoolArray:
    """(receivers, senders) bool mask of edges."""
    row_place, column_place = np.full(graph.nodes, -1), np.full(graph.nodes, -1)
    row_place[receivers] = np.arange(len(receivers))
    column_place[senders] = np.arange(len(senders))
    row, column = row_place[graph.row], column_place[graph.column]
    inside = (row >= 0) & (column >= 0)
    joined = np.zeros((len(receivers), len(senders)), dtype=bool)
    joined[row[inside], column[inside]] = True
    return joined


# Local training of an owner's generator (Zhang et al. 2021, Sec. 4.2).
#
# The cross-entropy of the classifier on the mended graph, L^c, is left out. So the generator uses no label, and all
# folds share it.

GENERATOR, OPTIMISER = "generator/", "adam/"
LOSSES = ("count", "feature")


class LocalOwner:
    """One institution that trains encoder, dGen and fGen on its own data.

    Attributes:
        losses: (epochs, 2) of `LOSSES`.
    """

    def __init__(
        self,
        owner: Owner,
        generator: MissingNeighbourGenerator,
        settings: FedSageSettings,
        draws: Draws,
        wide: WideOutput,
    ) -> None:
        self.owner, self.generator, self.draws, self.wide = owner, generator, draws, wide
        self.institutions = (owner.institution,)
        self.optimiser = Adam(list(generator.parameters()), settings.learning_rate)
        self.losses = np.zeros((settings.local_epochs, len(LOSSES)))

    def fit(self, number: int, _chosen: Sequence[int]) -> Mapping[int, Message]:
        """One epoch, without a reply."""
        self.losses[number] = local_gradient(self.generator, self.owner, self.draws, number, self.wide)
        self.optimiser.step()
        self.generator.zero_grad()
        return {}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Nothing arrives: the owner trains alone."""

    def score(self, number: int) -> str:
        """The sum of the losses."""
        return f"loss {self.losses[number].sum():.4f}"

    def state(self, number: int) -> Arrays:
        """The weights, the losses, and Adam's moments where another epoch follows."""
        more = number + 1 < len(self.losses)
        moments = {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()} if more else {}
        return arrays_of(self.generator, GENERATOR) | {"losses": self.losses[: number + 1]} | moments

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        load_arrays(self.generator, arrays, GENERATOR)
        self.losses[: number + 1] = arrays["losses"]
        if number + 1 < len(self.losses):
            self.optimiser.load(below(OPTIMISER, arrays))


def local_gradient(
    generator: MissingNeighbourGenerator, owner: Owner, draws: Draws, epoch: int, wide: WideOutput
) -> tuple[float, float]:
    """FedSage+ L^n = L^d + L^f of one local epoch: both losses; fills the generator's gradients."""
    key = (owner.institution, "local", epoch)
    keep = draws.keep(owner.propagated, ENCODER_WIDTH, "encoder", *key)
    embeddings = generator.encoder(owner.propagated, owner.propagation, keep)
    count = count_loss(generator.dgen(embeddings), owner.counts)
    expanded = draws.expanded(generator.fgen, embeddings[owner.targeted], *key)
    feature, back = wide.add_gradients(generator.fgen.output, expanded.detach(), [owner.targets])
    (count + carried(back, expanded)).backward()  # type: ignore[no-untyped-call]
    return float(count.detach()), float(feature)


@torch.no_grad()
def target_embeddings(generator: MissingNeighbourGenerator, owner: Owner) -> Tensor:
    """(t, 128) embeddings of the owner's nodes with missing neighbours, by its own trained encoder."""
    embeddings: Tensor = generator.encoder(owner.propagated, owner.propagation)
    return embeddings[owner.targeted]
