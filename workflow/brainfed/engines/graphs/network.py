"""A GIN's gradient and scores without autograd, a block of graphs after the other.

The formulas are those of `models.gin.GIN`. A block's activations stay in a core's cache from layer to layer. Two facts
save passes over them: what is positive after ReLU and dropout passed both, so that no mask is kept; and dropout's factor
multiplies the weights of the next layer instead of the activations.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from brainfed.engines.graphs.batch import Block, Scored
from brainfed.engines.graphs.parameters import Linear, Parameters

ROWS = 2048
"""Rows of an activation that are in work at once in scoring: half a megabyte in float32, 64 wide."""


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
        kept: 1 or 0 for the activations (N, h) of each convolution and (n, h) of the layer after pooling; empty without
            dropout.
    """

    block: Block
    labels: Tensor
    kept: Sequence[Tensor]


@torch.no_grad()
def loss_and_gradient(
    held: Parameters, gradients: Parameters, tasks: Iterable[Task], count: int, scale: float
) -> float:
    """Write the gradient of the mean cross-entropy of a local step; return the loss.

    Args:
        held: parameters.
        gradients: zeros, written.
        tasks: all graphs of the step.
        count: number of these graphs.
        scale: dropout's factor of what is kept.
    """
    network = Network.of(held, scale)
    (inner, outer), *others = gradients.convs
    product = torch.zeros_like(network.convs[0][0].weight)
    sums = gradients._replace(convs=((inner._replace(weight=product), outer), *others))
    loss = sum(_add_gradient(network, sums, task, count) for task in tasks)
    torch.mm(product, network.joint.T, out=inner.weight)
    before = held.convs[0][0].weight.T @ product
    gradients.pre.weight.copy_(before[:, :-1])
    gradients.pre.bias.copy_(before[:, -1])
    return loss


@torch.no_grad()
def scores(held: Parameters, rows: Tensor, scored: Scored) -> Tensor:
    """Logits (n, C) of all graphs, from the rows (u, d + 1) of the first convolution."""
    network = Network.of(held)
    for layer, conv in enumerate(network.convs):
        if layer:
            rows = scored.layers[layer - 1].sums(rows)
        rows = torch.cat([_perceptron(conv, part)[1] for part in rows.split(ROWS)])
    return _linear(network.readout, _rectified(network.post, scored.members.sums(rows)))


def _add_gradient(network: Network, gradients: Parameters, task: Task, count: int) -> float:
    """Add a block's part of the gradient; return its part of the loss, a mean over `count` graphs."""
    block, kept, scale, last = task.block, task.kept, network.scale, len(network.convs) - 1
    read, inner, outer = [block.rows()], [], []
    for layer, conv in enumerate(network.convs):
        middle, found = _perceptron(conv, read[layer])
        if layer == 0 and block.read is not None:
            found = found.index_select(0, block.read)
        if kept:
            found.mul_(kept[layer])
        inner.append(middle)
        outer.append(found)
        read.append((block.messages if layer < last else block.members).sums(found))
    loss, change = _add_head(network, gradients, read.pop(), task, count)
    change = change.index_select(0, block.graph)
    for layer in reversed(range(len(network.convs))):
        change = _where_positive(change, outer.pop())
        if layer == 0 and block.nodes is not None:
            change = block.nodes.sums(change)
        middle = inner.pop()
        _add(gradients.convs[layer][1], middle, change)
        change = _where_positive(change @ network.convs[layer][1].weight, middle)
        _add(gradients.convs[layer][0], read.pop(), change, scale if layer else 1.0)
        if layer:
            change = block.answers.sums(change @ network.convs[layer][0].weight)
    return loss


def _add_head(
    network: Network, gradients: Parameters, pooled: Tensor, task: Task, count: int
) -> tuple[float, Tensor]:
    """Add the gradients of the layers after pooling; return the loss, and the gradient of what is pooled."""
    hidden, labels = _rectified(network.post, pooled), task.labels[:, None]
    if task.kept:
        hidden.mul_(task.kept[-1])
    logs = log_softmax(_linear(network.readout, hidden), dim=1)
    own = logs.gather(1, labels)
    change = logs.exp().scatter_add_(1, labels, torch.full_like(own, -1)).div_(count)
    _add(gradients.readout, hidden, change, network.scale)
    change = _where_positive(change @ network.readout.weight, hidden)
    _add(gradients.post, pooled, change, network.scale)
    return -float(own.sum()) / count, change @ network.post.weight


def _linear(layer: Linear, read: Tensor) -> Tensor:
    return torch.addmm(layer.bias, read, layer.weight.T)


def _rectified(layer: Linear, read: Tensor) -> Tensor:
    return _linear(layer, read).relu_()


def _perceptron(conv: tuple[Linear, Linear], read: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and output activations of a convolution's perceptron, each after its ReLU."""
    middle = _rectified(conv[0], read)
    return middle, _rectified(conv[1], middle)


def _add(gradient: Linear, read: Tensor, change: Tensor, scale: float = 1.0) -> None:
    """Add the gradient of a layer whose weight was multiplied by `scale`."""
    gradient.weight.addmm_(change.T, read, alpha=scale)
    gradient.bias.add_(change.sum(dim=0))


def _where_positive(change: Tensor, activation: Tensor) -> Tensor:
    """`change` where an activation is positive, else 0, in place."""
    found: Tensor = torch.ops.aten.threshold_backward.grad_input(change, activation, 0, grad_input=change)
    return found
