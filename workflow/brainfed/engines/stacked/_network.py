"""A stacked classifier of `models`: one copy an institution and fold, all trained in parallel.

The stack runs the module's own `logits`, on parameters with two leading axes, institutions and folds. Only the
products with the features and their gradients are computed in another way (`_first_layer`).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from brainfed.engines import parameters_by_wire_name, wire_name
from brainfed.engines.stacked._first_layer import FirstLayer
from brainfed.engines.stacked._stack import Stack
from brainfed.models import Classifier, class_probabilities
from brainfed.runtime import Float64, FloatArray, Precision, Streams
from brainfed.samples import Arrays, FittedModel, Scored, with_alike_shared

# Dropout of the hidden activations, drawn on the CPU from keyed streams (Srivastava et al. 2014). Parisot et al. (2018)
# drop 30 % of the inputs of every layer. Here the products A X are formed once for all steps, so the features are not
# dropped: it acts on the inputs of the second convolution and of the last layer.


@dataclass(frozen=True)
class Dropout:
    """Dropout of hidden activations.

    Attributes:
        rate: share of the activations that a step sets to zero; the others are divided by 1 - rate.
        folds: numbers of the stacked folds.
        local_epochs: epochs in a round. Draws are keyed by the epoch since the start of training.
    """

    rate: float
    folds: tuple[int, ...]
    streams: Streams
    local_epochs: int

    def factors(
        self, nodes: Sequence[int], widths: Sequence[int], chosen: Tensor, step: tuple[int, int, int], like: Tensor
    ) -> tuple[Tensor, ...]:
        """(M, F, n, width) factors for each of `widths`: 0 or 1 / (1 - rate); 0 in padding and if not chosen.

        Args:
            nodes: (M,) number of nodes of each institution.
            chosen: (M,) bool, the institutions that train.
            step: round, epoch in the round, step in the epoch.
        """
        round_index, epoch, batch = step
        moment = round_index * self.local_epochs + epoch, batch
        masks = [torch.zeros(len(nodes), len(self.folds), max(nodes), width) for width in widths]
        for layer, kept in enumerate(masks):
            for institution in torch.nonzero(chosen)[:, 0].tolist():
                for position, fold in enumerate(self.folds):
                    key = self.streams.key("dropout", institution, fold, *moment, layer)
                    drawn = torch.rand(nodes[institution], kept.shape[-1], generator=torch.Generator().manual_seed(key))
                    kept[institution, position, : nodes[institution]] = drawn >= self.rate
        return tuple((kept / (1 - self.rate)).to(like) for kept in masks)


class StackedNetwork:
    """M institutions x F folds of one module.

    Args:
        module: the plain network; only its initial values are set, it is not trained.
        streams: random streams of the repeat; they give the initial weights.
        precision: number format of the products with the features.
        dropout: dropout of the inputs of all layers but the first, in training; None: no dropout.

    Attributes:
        step: round, epoch and number of the next step, which key its dropout.
    """

    def __init__(
        self,
        module: Classifier,
        stack: Stack,
        streams: Streams,
        precision: Precision = "float32",
        dropout: Dropout | None = None,
    ) -> None:
        self.stack, self.streams, self.precision, self.dropout = stack, streams, precision, dropout
        self.plain, self.classes = module, module.widths[-1]
        self.step: tuple[int, int, int] = (0, 0, 0)
        self.first: dict[str, FirstLayer] = {}
        self.rest: dict[str, torch.nn.Parameter] = {}
        self.names = [name for name, _ in module.named_parameters()]
        self._biases = {name for name, parameter in module.named_parameters() if parameter.dim() == 1}
        self.module = deepcopy(module)
        institutions = len(stack.members)
        for name, start in self._starts(module).items():
            if name in module.reads:
                self.first[name] = FirstLayer(start, institutions, precision)
                delattr(self.module, name)
            else:
                # A bias is one row of its product.
                rows = start[:, None] if name in self._biases else start
                self.rest[name] = torch.nn.Parameter(rows.repeat(institutions, 1, 1, 1))
                setattr(self.module, name, self.rest[name])
        self._scored: dict[str, Tensor] | None = None

    def _starts(self, module: Classifier) -> dict[str, Tensor]:
        """(F, ...) initial values by name, equal in all institutions."""
        starts = []
        for fold in self.stack.folds:
            module.start(self.streams, fold)
            starts.append({name: parameter.detach().clone() for name, parameter in module.named_parameters()})
        device, dtype = self.stack.labels.device, self.stack.reading.dtype
        return {name: torch.stack([start[name] for start in starts]).to(device, dtype) for name in self.names}

    def on(self, stack: Stack) -> "StackedNetwork":
        """The same network on other institutions, untrained."""
        return StackedNetwork(self.plain, stack, self.streams, self.precision)

    def parameters(self) -> list[torch.nn.Parameter]:
        """All learnable tensors."""
        return [self.first[name].weight if name in self.first else self.rest[name] for name in self.names]

    def stacks(self) -> dict[str, Tensor]:
        """Views (M, F, ...) of the parameters by their names on the wire, without gradient."""
        views = {name: layer.stack() for name, layer in self.first.items()}
        for name, stacked in self.rest.items():
            views[name] = stacked.detach()[:, :, 0] if name in self._biases else stacked.detach()
        return {wire_name(name): views[name] for name in self.names}

    def training_step(self, labels: Tensor, chosen: Tensor) -> Tensor:
        """Fill every gradient from the mean cross-entropy over labelled nodes (FedNI eq. 13).

        Args:
            labels: (M, F, n) in {0, ..., C - 1}, -1 where a node does not count.
            chosen: (M,) bool on the host, the institutions that train.

        Returns:
            (M, F) losses; NaN if an institution has no labelled node or does not train.
        """
        products = self._products(chosen) if self._scored is None else self._scored
        self._scored = None
        for product in products.values():
            product.requires_grad_()
        counted = labels >= 0
        logits = self.module.logits(products, self.stack.propagation, self._kept(chosen))
        entropy = cross_entropy(
            logits.reshape(-1, self.classes), labels.clamp(min=0).reshape(-1), reduction="none"
        ).view(labels.shape)
        losses = (entropy * counted).sum(dim=2) / counted.sum(dim=2).clamp(min=1)
        trains = chosen.to(losses.device, non_blocking=True)[:, None] & counted.any(dim=2)
        for parameter in self.rest.values():
            parameter.grad = None
        (losses * trains).sum().backward()  # type: ignore[no-untyped-call]
        for name, layer in self.first.items():
            gradient = products[name].grad
            assert gradient is not None
            layer.backward(self.stack.designs[self.module.reads[name]], gradient, chosen)
        return losses.detach().masked_fill(~trains, float("nan"))

    @torch.no_grad()
    def probabilities(self) -> Tensor:
        """(M, F, n, C) class probabilities, each institution by its own weights; float64.

        The next training step reuses these products unless `load` is called before.
        """
        self._scored = self._products()
        return class_probabilities(self.module.logits(self._scored, self.stack.propagation))

    @torch.no_grad()
    def load(self, values: dict[str, Tensor]) -> None:
        """Load tensors (F, ...), the same for every institution, or (M, F, ...)."""
        self._scored = None
        for name, view in self.stacks().items():
            view.copy_(values[name])

    def _kept(self, chosen: Tensor) -> Sequence[Tensor]:
        """Dropout factors of the next step, one for each layer but the first; empty without dropout."""
        if self.dropout is None:
            return ()
        nodes = [len(member.nodes) for member in self.stack.members]
        hidden, like = self.module.widths[1:-1], next(iter(self.rest.values()))
        return self.dropout.factors(nodes, hidden, chosen, self.step, like)

    def _products(self, chosen: Tensor | None = None) -> dict[str, Tensor]:
        """Products (M, F, n, width) of the features with each of the weights that read them."""
        nodes = max(len(member.nodes) for member in self.stack.members)
        return {
            name: layer.forward(self.stack.designs[self.module.reads[name]], nodes, chosen)
            for name, layer in self.first.items()
        }


def kept_stack(network: StackedNetwork, *, alone: bool) -> list[FittedModel]:
    """The models of the stack's folds: weights by their names on the wire, and the moments `mean` and `sd` (d,).

    `alone`: whether every institution has a model of its own; one without training subjects then has none.
    """
    models, stack = [], network.stack
    for position in range(len(stack.folds)):
        arrays = {name: view[:, position].cpu().numpy().copy() for name, view in network.stacks().items()}
        for name in ("mean", "sd"):
            moments = [getattr(member, name) for member in stack.members]
            if moments[0] is not None:
                arrays[name] = np.stack([each[position] for each in moments]).astype(np.float32)
        if alone:
            untrained = ~(stack.labels[:, position] >= 0).any(dim=1).cpu().numpy()
            for array in arrays.values():
                array[untrained] = np.nan
        models.append(with_alike_shared({}, arrays))
    return models


@torch.no_grad()
def score_alone(module: Classifier, model: Arrays, features: FloatArray) -> Scored:
    """Probabilities (n, C) of features (n, d) by a module without a graph, in float64.

    Args:
        module: of the shape that was trained; its weights are overwritten.
        features: unscaled.
    """
    rows: Float64 = features.astype(np.float64)
    if "mean" in model:
        rows = (rows - model["mean"]) / model["sd"]
    module.double()
    for name, parameter in parameters_by_wire_name(module).items():
        parameter.copy_(torch.from_numpy(model[name]))
    return Scored(class_probabilities(module(torch.from_numpy(rows))).numpy(), rows)
