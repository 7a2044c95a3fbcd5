"""GAHFL's recurrent classifiers (Table II), one by one and F folds side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from brainfed.models._classifier import derivative_of, uniform_start
from brainfed.runtime import Streams

# GAHFL's recurrent classifiers of region series (Table II): LSTM, GRU, bidirectional LSTM and the shallower SLSTM.
#
# The recurrent layer reads one time point after the other, its outputs are averaged over time (global average pooling),
# and fully connected layers turn the mean into logits. The stacked networks below compute the same for many
# folds at once.

Kind = Literal["lstm", "gru", "bilstm", "slstm"]

KINDS: tuple[Kind, ...] = get_args(Kind)


class RecurrentClassifier(nn.Module):
    """Recurrent layer -> mean over time -> dropout -> FC 10 -> FC 20 -> FC 10 -> FC(C), ReLU between the FC.

    `slstm` has FC 10 -> FC 20 -> FC(C) behind its LSTM. The paper's softmax is not part of the network. The series have
    R regions; `hidden` is the width of the recurrent layer, in each direction.
    """

    def __init__(self, kind: Kind, regions: int, classes: int = 2, hidden: int = 32) -> None:
        super().__init__()
        self.pooled = 2 * hidden if kind == "bilstm" else hidden
        """Width of the mean over time."""
        layer = nn.GRU if kind == "gru" else nn.LSTM
        self.recurrent = layer(regions, hidden, batch_first=True, bidirectional=kind == "bilstm")
        widths = [self.pooled, *((10, 20) if kind == "slstm" else (10, 20, 10)), classes]
        self.connected = nn.ModuleList(nn.Linear(*width) for width in pairwise(widths))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (B, C) from region series (B, T, R).

        `keep` (B, `pooled`) are dropout factors of the mean, 0 or 1 / share kept; None in scoring.
        """
        outputs, _ = self.recurrent(x)
        hidden: Tensor = outputs.mean(dim=1)
        if keep is not None:
            hidden = hidden * keep
        for number, layer in enumerate(self.connected):
            hidden = layer(torch.relu(hidden) if number else hidden)
        return hidden

    @torch.no_grad()
    def start(self, streams: Streams, *parts: int | str) -> None:
        """Set the initial weights: torch's distribution, uniform in +- 1 / sqrt(hidden) and in +- 1 / sqrt(inputs).

        Equal `parts` of the streams' key, such as the fold, give equal weights.
        """
        weights = dict(self.named_parameters())
        for name, weight in weights.items():
            layer = name.rpartition(".")[0]
            inputs = self.recurrent.hidden_size if layer == "recurrent" else weights[f"{layer}.weight"].shape[1]
            bound = inputs**-0.5
            weight.copy_(uniform_start(streams, weight.shape, bound, *parts, name, *weight.shape))


# The same networks for F folds side by side, with derivatives written out.
#
# Activations are (folds, width, samples): each gate of a fold is one piece of memory, and at every time point one
# batched product serves all folds, and both directions of a BiLSTM. The gates of a time point are computed while they
# are in the processor's cache: the product with the series, the product with the state, the activations. A state ends
# with a row of ones, so that the last column of the recurrent weight is the bias. The series need no gradient.

SCORED = 512
"""Samples that are scored at a time: their gates stay in the cache."""

_sigmoid_backward, _tanh_backward = derivative_of("sigmoid"), derivative_of("tanh")


@dataclass
class Workspace:
    """Memory that passes through the networks use again: new pages would take a fifth of a step.

    A piece is lent from a forward pass to the end of its backward pass. A second backward pass on the same graph
    raises torch's error about changed tensors if the piece has been lent again.
    """

    _free: list[Tensor] = field(default_factory=list)

    def lend(self, like: Tensor, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
        """The piece, to be given back, and uninitialised tensors of the shapes in it."""
        sizes = [math.prod(shape) for shape in shapes]
        piece = self._free.pop() if self._free else like.new_empty(0)
        if len(piece) < sum(sizes) or (piece.dtype, piece.device) != (like.dtype, like.device):
            piece = like.new_empty(sum(sizes))
        parts = torch.split(piece[: sum(sizes)], sizes)
        return piece, *(part.view(shape) for part, shape in zip(parts, shapes, strict=True))

    def give_back(self, piece: Tensor) -> None:
        """Take back what was lent."""
        self._free.append(piece)


def fold_logits(
    kind: Kind,
    parameters: Mapping[str, Tensor],
    x: Tensor,
    keep: Tensor | None = None,
    workspace: Workspace | None = None,
) -> Tensor:
    """Logits (F, B, C) of F networks, differentiable in the parameters.

    Without gradients no gates are kept, and a batch of any size takes little memory.

    Args:
        parameters: name in `RecurrentClassifier` -> (F, ...), the weights of the folds.
        x: (F, B, T, R) region series; (1, B, T, R) or (B, T, R) where all folds read the same.
        keep: (F, B, pooled) dropout factors; None in scoring.

    Raises:
        ValueError: x has neither one entry nor F.
    """
    folds = len(parameters["recurrent.weight_ih_l0"])
    x = x.detach() if x.dim() == 4 else x.detach()[None]
    if len(x) not in (1, folds):
        raise ValueError(f"expected series of 1 or {folds} folds, found {tuple(x.shape)}")
    suffixes = ("_l0", "_l0_reverse") if kind == "bilstm" else ("_l0",)
    inputs, states, biases, state_biases = (
        torch.stack([parameters[f"recurrent.{what}{suffix}"] for suffix in suffixes])
        for what in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    layer, weights = (_GRU, _gru_weights) if kind == "gru" else (_LSTM, _lstm_weights)
    pooled = _pooled(layer, x, weights(inputs, states, biases, state_biases), workspace or Workspace())
    hidden = pooled.view(-1, folds, *pooled.shape[1:]).permute(1, 3, 0, 2).flatten(2)
    if keep is not None:
        hidden = hidden * keep
    for number in range(sum(name.startswith("connected.") for name in parameters) // 2):
        weight, bias = parameters[f"connected.{number}.weight"], parameters[f"connected.{number}.bias"]
        hidden = torch.baddbmm(bias[:, None], torch.relu(hidden) if number else hidden, weight.mT)
    return hidden


def _lstm_weights(inputs: Tensor, states: Tensor, biases: Tensor, state_biases: Tensor) -> tuple[Tensor, ...]:
    """(D, F, 4 H, R) and (D F, 4 H, H + 1)."""
    return inputs, torch.cat([states, (biases + state_biases)[..., None]], dim=-1).flatten(0, 1)


def _gru_weights(inputs: Tensor, states: Tensor, biases: Tensor, state_biases: Tensor) -> tuple[Tensor, ...]:
    """(D, F, 3 H, R), (D F, 3 H, H + 1) and the new gate's input bias (D F, H, 1), which r does not multiply."""
    hidden = states.shape[-1]
    both = torch.cat([(biases + state_biases)[..., : 2 * hidden], state_biases[..., 2 * hidden :]], dim=-1)
    recurrent = torch.cat([states, both[..., None]], dim=-1).flatten(0, 1)
    return inputs, recurrent, biases[..., 2 * hidden :, None].flatten(0, 1)


def _pooled(layer: Any, x: Tensor, weights: tuple[Tensor, ...], workspace: Workspace) -> Tensor:
    """(D F, H, B): mean of the states over time."""
    if torch.is_grad_enabled() and any(weight.requires_grad for weight in weights):
        pooled: Tensor = layer.apply(x, workspace, *weights)
        return pooled
    means = []
    for part in torch.split(x, SCORED, dim=1):
        mean, piece, *_ = layer.run(_Series(part), workspace, *weights)
        workspace.give_back(piece)
        means.append(mean)
    return torch.cat(means, dim=-1)


@dataclass(frozen=True)
class _Series:
    """Region series x (F or 1, B, T, R) as factors of one time point's products."""

    x: Tensor

    @property
    def steps(self) -> int:
        return self.x.shape[2]

    def at(self, direction: int, step: int) -> Tensor:
        """(F or 1, B, R) at a step; the second direction reads from the end."""
        return self.x[:, :, -1 - step if direction else step]

    def project(self, weights: Tensor, step: int, out: Tensor) -> None:
        """Out (D F, G, B) = weights (D, F, G, R) with the time point."""
        for direction, (weight, product) in enumerate(zip(weights, out.view(*weights.shape[:3], -1), strict=True)):
            here = self.at(direction, step)
            if len(here) == 1:
                torch.mm(weight.flatten(0, 1), here[0].mT, out=product.flatten(0, 1))
            else:
                torch.bmm(weight, here.mT, out=product)

    def add_gradient(self, gradient: Tensor, gates: Tensor, step: int) -> None:
        """Gradient (D, F, G, R) += gates (D F, G, B) with the time point."""
        by_direction = gates.chunk(len(gradient))
        for direction, (total, gate) in enumerate(zip(gradient, by_direction, strict=True)):
            here = self.at(direction, step)
            if len(here) == 1:
                total.flatten(0, 1).addmm_(gate.flatten(0, 1), here[0])
            else:
                total.baddbmm_(gate, here)


class _LSTM(torch.autograd.Function):
    """i, f, o = sigmoid, g = tanh of (W x + U h); c' = f c + i g; h' = o tanh(c'). In torch's order i, f, g, o."""

    @staticmethod
    def run(
        series: _Series, workspace: Workspace, inputs: Tensor, recurrent: Tensor, *, kept: bool = False
    ) -> tuple[Tensor, ...]:
        """(D F, H, B) mean over time and the piece lent; by step if kept: gates, tanh(c), c and h from step -1 on."""
        layers, width, samples, steps = len(recurrent), recurrent.shape[-1] - 1, series.x.shape[1], series.steps
        stored = steps if kept else 1
        piece, gates, bounded, cells, states = workspace.lend(
            recurrent,
            (stored, layers, 4 * width, samples),
            (stored, layers, width, samples),
            (stored + kept, layers, width, samples),
            (stored + kept, layers, width + 1, samples),
        )
        total = torch.zeros_like(bounded[0])
        cells[0] = 0.0
        states[:, :, width] = 1.0
        states[0, :, :width] = 0.0
        for step in range(steps):
            here, after = (step, step + 1) if kept else (0, 0)
            gate, cell, state = gates[here], cells[after], states[after][:, :width]
            series.project(inputs, step, gate)
            gate.baddbmm_(recurrent, states[here])
            enter, forget, new, leave = gate.chunk(4, dim=1)
            new.mul_(2)
            gate.sigmoid_()
            new.mul_(2).sub_(1)
            torch.mul(forget, cells[here], out=cell)
            cell.addcmul_(enter, new)
            _tanh(cell, bounded[here])
            torch.mul(leave, bounded[here], out=state)
            total.add_(state)
        return total.div_(steps), piece, gates, bounded, cells, states

    @staticmethod
    def forward(ctx: Any, x: Tensor, workspace: Workspace, inputs: Tensor, recurrent: Tensor) -> Tensor:
        pooled, ctx.piece, *kept = _LSTM.run(_Series(x), workspace, inputs, recurrent, kept=True)
        ctx.workspace = workspace
        ctx.save_for_backward(x, inputs, recurrent, *kept)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, inputs, recurrent, gates, bounded, cells, states = ctx.saved_tensors
        series, width = _Series(x), bounded.shape[2]
        pooled = (gradients[0] / series.steps).contiguous()
        d_state, d_cell, part = pooled.clone(), torch.zeros_like(pooled), torch.empty_like(pooled)
        d_gate = torch.empty_like(gates[0])
        d_inputs, d_recurrent = torch.zeros_like(inputs), torch.zeros_like(recurrent)
        back = recurrent[..., :width].mT
        d_enter, d_forget, d_new, d_leave = d_gate.chunk(4, dim=1)
        for step in reversed(range(series.steps)):
            enter, forget, new, leave = gates[step].chunk(4, dim=1)
            torch.mul(d_state, bounded[step], out=d_leave)
            torch.mul(d_state, leave, out=part)
            d_cell.add_(_tanh_backward(part, bounded[step], grad_input=part))
            torch.mul(d_cell, new, out=d_enter)
            torch.mul(d_cell, cells[step], out=d_forget)
            torch.mul(d_cell, enter, out=d_new)
            d_cell.mul_(forget)
            both = slice(0, 2 * width)
            _sigmoid_backward(d_gate[:, both], gates[step][:, both], grad_input=d_gate[:, both])
            _tanh_backward(d_new, new, grad_input=d_new)
            _sigmoid_backward(d_leave, leave, grad_input=d_leave)
            series.add_gradient(d_inputs, d_gate, step)
            d_recurrent.baddbmm_(d_gate, states[step].mT)
            torch.baddbmm(pooled, back, d_gate, out=d_state)
        ctx.workspace.give_back(ctx.piece)
        return None, None, d_inputs, d_recurrent


class _GRU(torch.autograd.Function):
    """r, z = sigmoid(W x + U h), n = tanh(W x + b + r (U h)), h' = n + z (h - n). In torch's order r, z, n."""

    @staticmethod
    def run(
        series: _Series, workspace: Workspace, inputs: Tensor, recurrent: Tensor, bias: Tensor, *, kept: bool = False
    ) -> tuple[Tensor, ...]:
        """(D F, H, B) mean over time and the piece lent; by step if kept: gates, U h, and h from step -1 on."""
        layers, width, samples, steps = len(recurrent), recurrent.shape[-1] - 1, series.x.shape[1], series.steps
        stored = steps if kept else 1
        piece, gates, products, states = workspace.lend(
            recurrent,
            (stored, layers, 3 * width, samples),
            (stored, layers, 3 * width, samples),
            (stored + kept, layers, width + 1, samples),
        )
        total, part = (recurrent.new_zeros(layers, width, samples) for _ in range(2))
        states[:, :, width] = 1.0
        states[0, :, :width] = 0.0
        for step in range(steps):
            here, after = (step, step + 1) if kept else (0, 0)
            gate, product, state = gates[here], products[here], states[after][:, :width]
            series.project(inputs, step, gate)
            torch.bmm(recurrent, states[here], out=product)
            both, (reset, update, new) = gate[:, : 2 * width], gate.chunk(3, dim=1)
            both.add_(product[:, : 2 * width]).sigmoid_()
            new.add_(bias).addcmul_(reset, product[:, 2 * width :])
            _tanh(new, new)
            torch.sub(states[here][:, :width], new, out=part)
            torch.addcmul(new, update, part, out=state)
            total.add_(state)
        return total.div_(steps), piece, gates, products, states

    @staticmethod
    def forward(ctx: Any, x: Tensor, workspace: Workspace, inputs: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
        pooled, ctx.piece, *kept = _GRU.run(_Series(x), workspace, inputs, recurrent, bias, kept=True)
        ctx.workspace = workspace
        ctx.save_for_backward(x, inputs, recurrent, bias, *kept)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, inputs, recurrent, bias, gates, products, states = ctx.saved_tensors
        series, width = _Series(x), bias.shape[1]
        pooled = (gradients[0] / series.steps).contiguous()
        d_state, part = pooled.clone(), torch.empty_like(pooled)
        # The gates' derivatives in the order (r n), r, z, n: U meets the first three, W the last three.
        d_gate = gates.new_empty(len(recurrent), 4 * width, pooled.shape[-1])
        d_product, d_reset, d_update, d_new = d_gate.chunk(4, dim=1)
        of_states, of_inputs = d_gate[:, : 3 * width], d_gate[:, width:]
        order = torch.arange(3 * width, device=x.device).roll(width)
        turned = recurrent[:, order]
        back = turned[..., :width].mT
        d_inputs, d_turned, d_bias = torch.zeros_like(inputs), torch.zeros_like(turned), torch.zeros_like(bias)
        for step in reversed(range(series.steps)):
            reset, update, new = gates[step].chunk(3, dim=1)
            torch.sub(states[step][:, :width], new, out=part)
            torch.mul(d_state, part, out=d_update)
            _sigmoid_backward(d_update, update, grad_input=d_update)
            torch.mul(d_state, update, out=part)
            torch.sub(d_state, part, out=d_new)
            _tanh_backward(d_new, new, grad_input=d_new)
            torch.mul(d_new, products[step][:, 2 * width :], out=d_reset)
            _sigmoid_backward(d_reset, reset, grad_input=d_reset)
            torch.mul(d_new, reset, out=d_product)
            series.add_gradient(d_inputs, of_inputs, step)
            d_turned.baddbmm_(of_states, states[step].mT)
            d_bias.add_(d_new.sum(dim=-1, keepdim=True))
            torch.baddbmm(part.add_(pooled), back, of_states, out=d_state)
        ctx.workspace.give_back(ctx.piece)
        return None, None, d_inputs, d_turned.roll(-width, dims=1), d_bias


def _tanh(values: Tensor, out: Tensor) -> None:
    """Out = tanh(values) = 2 sigmoid(2 values) - 1, which takes half the time of torch's tanh."""
    torch.mul(values, 2, out=out)
    out.sigmoid_().mul_(2).sub_(1)
