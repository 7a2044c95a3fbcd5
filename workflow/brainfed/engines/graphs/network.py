"""A GIN's gradient and scores without autograd, a block of graphs after the other.

The formulas are those of `models.gin.GIN`. Two facts save passes over the activations: what is positive after ReLU
and dropout passed both, so that no mask is kept; and dropout's factor multiplies the weights of the next layer instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from brainfed.engines.graphs.batch import Block, Scored
from brainfed.engines.graphs.dropout import KeyedDropout
from brainfed.engines.graphs.parameters import Linear, Parameters
from brainfed.engines.graphs.workspace import Workspace


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
    def of(cls, held: Parameters, scale: float = 1.0) -> "Network":
        """Multiply the factors in."""

        def scaled(layer: Linear) -> Linear:
            return layer if scale == 1.0 else layer._replace(weight=layer.weight * scale)

        joint = torch.cat([held.pre.weight, held.pre.bias[:, None]], dim=1)
        (inner, outer), *others = held.convs
        first = inner._replace(weight=inner.weight @ joint), outer
        convs = first, *((scaled(inner), outer) for inner, outer in others)
        return cls(joint, convs, scaled(held.post), scaled(held.readout), scale)


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
        dropout: of all networks.
    """

    def __init__(self, like: Tensor, dropout: KeyedDropout) -> None:
        self.dropout, self._space = dropout, Workspace(like)

    @torch.no_grad()
    def loss_and_gradient(self, held: Parameters, gradients: Parameters, tasks: Sequence[Task]) -> float:
        """Write the gradient of the mean cross-entropy of a local step; return the loss.

        Args:
            held: parameters.
            gradients: zeros, written.
            tasks: all graphs of the step.
        """
        network, count = Network.of(held, self.dropout.scale), sum(len(task.labels) for task in tasks)
        (inner, outer), *others = gradients.convs
        product = torch.zeros_like(network.convs[0][0].weight)
        sums = gradients._replace(convs=((inner._replace(weight=product), outer), *others))
        loss = sum(self._add_gradient(network, sums, task, count) for task in tasks)
        torch.mm(product, network.joint.T, out=inner.weight)
        before = held.convs[0][0].weight.T @ product
        gradients.pre.weight.copy_(before[:, :-1])
        gradients.pre.bias.copy_(before[:, -1])
        return loss

    @torch.no_grad()
    def scores(self, held: Parameters, blocks: Sequence[Scored]) -> Tensor:
        """Logits (n, C) of the graphs of all blocks."""
        network, found = Network.of(held), []
        for block in blocks:
            rows = self._gathered(block.table, block.row, "rows")
            for layer, conv in enumerate(network.convs):
                if layer:
                    rows = block.layers[layer - 1].sums(rows)
                rows = self._perceptron(conv, rows, layer)[1]
            pooled = self._rectified(network.post, block.members.sums(rows), "post")
            found.append(self._linear(network.readout, pooled, "logits").clone())
        return torch.cat(found)

    def _add_gradient(self, network: Network, gradients: Parameters, task: Task, count: int) -> float:
        """Add a block's part of the gradient; return its part of the loss, a mean over `count` graphs."""
        block, last = task.block, len(network.convs) - 1
        read, inner, outer = [self._gathered(block.table, block.row, "rows")], [], []
        for layer, conv in enumerate(network.convs):
            middle, found = self._perceptron(conv, read[layer], layer)
            if layer == 0 and block.read is not None:
                found = self._gathered(found, block.read, "spread")
            self._drop(found, task, layer)
            inner.append(middle)
            outer.append(found)
            read.append((block.messages if layer < last else block.members).sums(found))
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


def _where_above(values: Tensor, deciding: Tensor, bound: int = 0) -> Tensor:
    """`values` where the deciding number is above a bound, else 0, in place."""
    found: Tensor = torch.ops.aten.threshold_backward.grad_input(values, deciding, bound, grad_input=values)
    return found
