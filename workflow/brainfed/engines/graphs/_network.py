"""A GIN without autograd: its parameters in one piece of memory, its dropout, its gradient and its scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from brainfed.engines.graphs._batch import Block, Scored
from brainfed.models import GIN, derivative_of
from brainfed.runtime import Streams


@dataclass(frozen=True)

# Dropout, drawn on the CPU from keyed streams (Srivastava et al. 2014). A draw has 8 bits, or 16: torch's own takes 40
# times as long, which would be half of a round.


class KeyedDropout:
    """Which activations a step keeps.

    Attributes:
        rate: share that is dropped, as a multiple of 1 / 256, else to the nearest 1 / 65,536.
    """

    rate: float
    streams: Streams

    @property
    def scale(self) -> float:
        """Factor of what is kept."""
        return self._levels / self._kept_levels if self.rate else 1.0

    def draws(self, key: tuple[int, ...], shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
        """Integers of a step, uniform over all of their type; none without dropout.

        Args:
            key: institution, fold, round, epoch, step.
            shapes: of the activations of each layer.
        """
        if not self.rate:
            return []
        kind = np.dtype(np.int8 if self._levels == 1 << 8 else np.int16)
        stream = self.streams.numpy("dropout", *key).bit_generator
        draws = []
        for rows, width in shapes:
            words = np.asarray(stream.random_raw(-(-rows * width * kind.itemsize // 8)))
            draws.append(torch.from_numpy(words.view(kind)[: rows * width].reshape(rows, width)))
        return draws

    @property
    def bound(self) -> int:
        """An activation is kept if its draw is above this."""
        return self._levels // 2 - 1 - self._kept_levels

    @property
    def _levels(self) -> int:
        return 1 << 8 if (self.rate * 256).is_integer() else 1 << 16

    @property
    def _kept_levels(self) -> int:
        return min(max(round((1 - self.rate) * self._levels), 1), self._levels - 1)


ALIGNED = 16
"""A parameter starts at a multiple of so many numbers, where processors read fast."""


class Linear(NamedTuple):
    """Weight (out, in) and bias (out,)."""

    weight: Tensor
    bias: Tensor


class Parameters(NamedTuple):
    """Tensors of a GIN: those that it learns, or their gradients."""

    pre: Linear
    convs: tuple[tuple[Linear, Linear], ...]
    post: Linear
    readout: Linear

    @classmethod
    def of(cls, named: Mapping[str, Tensor]) -> "Parameters":
        """Views of the tensors of a `models.GIN` by their names."""

        def linear(name: str) -> Linear:
            return Linear(named[f"{name}.weight"], named[f"{name}.bias"])

        layers = sum(name.startswith("convs.") and name.endswith(".nn.0.bias") for name in named)
        convs = tuple((linear(f"convs.{layer}.nn.0"), linear(f"convs.{layer}.nn.2")) for layer in range(layers))
        return cls(linear("pre"), convs, linear("post"), linear("readout"))


class Copies:
    """F copies of a network's parameters, and their gradients.

    Args:
        modules: (F,) networks that give the initial values.

    Attributes:
        values: (F,) all parameters of a fold in one vector, whose `grad` is their gradient.
        parameters: (F,) views of the values.
        gradients: (F,) views of the gradients.
        named: (F,) values by name.
        named_gradients: (F,) gradients by name.
        stacks: (F, ...) views of the values of all folds, by name.
    """

    def __init__(self, modules: Sequence[GIN]) -> None:
        self._shapes, self._starts, length = {}, {}, 0
        for name, parameter in modules[0].named_parameters():
            self._shapes[name], self._starts[name] = parameter.shape, length
            length += -(-parameter.numel() // ALIGNED) * ALIGNED
        like = modules[0].pre.weight.detach()
        values, gradient = like.new_zeros(len(modules), length), like.new_zeros(len(modules), length)
        self.values, self.stacks = list(values), self._views(values)
        self.named, self.named_gradients = ([self._views(vector) for vector in each] for each in (values, gradient))
        self.parameters, self.gradients = (
            [Parameters.of(views) for views in each] for each in (self.named, self.named_gradients)
        )
        for vector, own in zip(self.values, gradient, strict=True):
            vector.grad = own
        for module, views in zip(modules, self.named, strict=True):
            for name, parameter in module.named_parameters():
                views[name].copy_(parameter.detach())

    def clear(self, position: int) -> None:
        """Set the gradient of a fold to zero."""
        gradient = self.values[position].grad
        assert gradient is not None
        gradient.zero_()

    def _views(self, tensor: Tensor) -> Mapping[str, Tensor]:
        """Views (..., *shape) of vectors (..., length), by name."""
        return {
            name: tensor[..., start : start + shape.numel()].view(*tensor.shape[:-1], *shape)
            for (name, start), shape in zip(self._starts.items(), self._shapes.values(), strict=True)
        }


# Memory that steps write their activations into: new pages would cost a quarter of a round.


class Workspace:
    """Named buffers that grow to the largest size asked for.

    Args:
        like: a tensor of the wanted device and precision.
    """

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self._held: dict[object, Tensor] = {}

    def take(self, name: object, rows: int, width: int) -> Tensor:
        """(rows, width) uninitialised numbers; the same memory for the same name."""
        room = self._held.get(name)
        if room is None or room.numel() < rows * width:
            room = self._held[name] = torch.empty(rows * width, dtype=self._like.dtype, device=self._like.device)
        return room[: rows * width].view(rows, width)


# A GIN's gradient and scores without autograd, a block of graphs after the other.
#
# The formulas are those of `models.GIN`. Two facts save passes over the activations: what is positive after ReLU
# and dropout passed both, so that no mask is kept; and dropout's factor multiplies the weights of the next layer
# instead.


@dataclass(frozen=True)
class Network:
    """The weights as a step multiplies with them: after dropout times its factor `scale`.

    Attributes:
        joint: [P, b] (h, d + 1) of the linear layer before the convolutions.
        convs: of each convolution; the first one's inner weight W is W [P, b].
        post: the layer after pooling.
        readout: the last layer.
        scale: dropout's factor.
    """

    joint: Tensor
    convs: tuple[tuple[Linear, Linear], ...]
    post: Linear
    readout: Linear
    scale: float

    @classmethod
    def of(cls, parameters: Parameters, scale: float = 1.0) -> "Network":
        """The weights of a network, multiplied by the factor of dropout."""

        def scaled(layer: Linear) -> Linear:
            return layer if scale == 1.0 else layer._replace(weight=layer.weight * scale)

        joint = torch.cat([parameters.pre.weight, parameters.pre.bias[:, None]], dim=1)
        (inner, outer), *others = parameters.convs
        first = inner._replace(weight=inner.weight @ joint), outer
        convs = first, *((scaled(inner), outer) for inner, outer in others)
        return cls(joint, convs, scaled(parameters.post), scaled(parameters.readout), scale)


@dataclass(frozen=True)
class Task:
    """Graphs of a step that are in work together.

    Attributes:
        block: n graphs with N nodes.
        labels: (n,) in {0, ..., C - 1}.
        drawn: dropout's draws for the activations (N, h) of each convolution and (n, h) of the layer after pooling;
            empty without dropout.
    """

    block: Block
    labels: Tensor
    drawn: Sequence[Tensor]


class Trainer:
    """The gradient of one network after the other, in the same memory.

    Args:
        like: a tensor of the networks' device and precision.
    """

    def __init__(self, like: Tensor, dropout: KeyedDropout) -> None:
        self.dropout, self._space = dropout, Workspace(like)

    @torch.no_grad()
    def loss_and_gradient(self, parameters: Parameters, gradients: Parameters, tasks: Sequence[Task]) -> float:
        """Write the gradient of the mean cross-entropy of a local step; return the loss.

        Args:
            gradients: zeros, written.
        """
        network, count = Network.of(parameters, self.dropout.scale), sum(len(task.labels) for task in tasks)
        (inner, outer), *others = gradients.convs
        product = torch.zeros_like(network.convs[0][0].weight)
        sums = gradients._replace(convs=((inner._replace(weight=product), outer), *others))
        loss = sum(self._add_gradient(network, sums, task, count) for task in tasks)
        torch.mm(product, network.joint.T, out=inner.weight)
        before = parameters.convs[0][0].weight.T @ product
        gradients.pre.weight.copy_(before[:, :-1])
        gradients.pre.bias.copy_(before[:, -1])
        return loss

    @torch.no_grad()
    def scores(self, parameters: Parameters, blocks: Sequence[Scored]) -> Tensor:
        """Logits (n, C) of the graphs of all blocks."""
        network, logits = Network.of(parameters), []
        for block in blocks:
            rows = self._gathered(block.table, block.row, "rows")
            for layer, conv in enumerate(network.convs):
                if layer:
                    rows = block.layers[layer - 1].sums(rows)
                rows = self._perceptron(conv, rows, layer)[1]
            pooled = self._rectified(network.post, block.members.sums(rows), "post")
            logits.append(self._linear(network.readout, pooled, "logits").clone())
        return torch.cat(logits)

    def _add_gradient(self, network: Network, gradients: Parameters, task: Task, count: int) -> float:
        """Add a block's part of the gradient; return its part of the loss, a mean over `count` graphs."""
        block, last = task.block, len(network.convs) - 1
        read, inner, outer = [self._gathered(block.table, block.row, "rows")], [], []
        for layer, conv in enumerate(network.convs):
            middle, outer_activation = self._perceptron(conv, read[layer], layer)
            if layer == 0 and block.read is not None:
                outer_activation = self._gathered(outer_activation, block.read, "spread")
            self._drop(outer_activation, task, layer)
            inner.append(middle)
            outer.append(outer_activation)
            read.append((block.messages if layer < last else block.members).sums(outer_activation))
        loss, change = self._add_head(network, gradients, read.pop(), task, count)
        change = self._gathered(change, block.graph, "change")
        for layer in reversed(range(len(network.convs))):
            change = _where_above(change, outer.pop())
            if layer == 0 and block.nodes is not None:
                change = block.nodes.sums(change)
            middle = inner.pop()
            _add(gradients.convs[layer][1], middle, change)
            change = _where_above(self._product(change, network.convs[layer][1].weight, "inner"), middle)
            _add(gradients.convs[layer][0], read.pop(), change, network.scale if layer else 1.0)
            if layer:
                change = block.answers.sums(self._product(change, network.convs[layer][0].weight, "read"))
        return loss

    def _add_head(
        self, network: Network, gradients: Parameters, pooled: Tensor, task: Task, count: int
    ) -> tuple[float, Tensor]:
        """Add the gradients of the layers after pooling; return the loss, and the gradient of what is pooled."""
        hidden, labels = self._rectified(network.post, pooled, "post"), task.labels[:, None]
        self._drop(hidden, task, -1)
        logs = log_softmax(self._linear(network.readout, hidden, "logits"), dim=1)
        own = logs.gather(1, labels)
        change = logs.exp().scatter_add_(1, labels, torch.full_like(own, -1)).div_(count)
        _add(gradients.readout, hidden, change, network.scale)
        change = _where_above(change @ network.readout.weight, hidden)
        _add(gradients.post, pooled, change, network.scale)
        return -float(own.sum()) / count, change @ network.post.weight

    def _linear(self, layer: Linear, read: Tensor, name: object) -> Tensor:
        out = self._space.take(name, len(read), len(layer.bias))
        return torch.addmm(layer.bias, read, layer.weight.T, out=out)

    def _rectified(self, layer: Linear, read: Tensor, name: object) -> Tensor:
        return self._linear(layer, read, name).relu_()

    def _perceptron(self, conv: tuple[Linear, Linear], read: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Hidden and output activations of a convolution's perceptron, each after its ReLU."""
        middle = self._rectified(conv[0], read, ("inner", layer))
        return middle, self._rectified(conv[1], middle, ("outer", layer))

    def _drop(self, activation: Tensor, task: Task, layer: int) -> None:
        if task.drawn:
            drawn = self._space.take("drawn", *activation.shape).copy_(task.drawn[layer])
            _where_above(activation, drawn, self.dropout.bound)

    def _gathered(self, rows: Tensor, index: Tensor, name: object) -> Tensor:
        return torch.index_select(rows, 0, index, out=self._space.take(name, len(index), rows.shape[1]))

    def _product(self, change: Tensor, weight: Tensor, name: object) -> Tensor:
        return torch.mm(change, weight, out=self._space.take(("change", name), len(change), weight.shape[1]))


def _add(gradient: Linear, read: Tensor, change: Tensor, scale: float = 1.0) -> None:
    """Add the gradient of a layer whose weight was multiplied by `scale`."""
    gradient.weight.addmm_(change.T, read, alpha=scale)
    gradient.bias.add_(change.sum(dim=0))


_threshold_backward = derivative_of("threshold")


def _where_above(values: Tensor, deciding: Tensor, bound: int = 0) -> Tensor:
    """`values` where the deciding number is above a bound, else 0, in place."""
    _threshold_backward(values, deciding, bound, grad_input=values)
    return values
