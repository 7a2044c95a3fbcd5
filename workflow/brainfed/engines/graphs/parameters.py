"""The parameters of one institution in all folds, in one piece of memory a fold."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from brainfed.models.gin import GIN

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
        """Views of the tensors of a `models.gin.GIN` by their names."""

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
        held, gradient = like.new_zeros(len(modules), length), like.new_zeros(len(modules), length)
        self.values, self.stacks = list(held), self._views(held)
        self.named, self.named_gradients = ([self._views(vector) for vector in each] for each in (held, gradient))
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
