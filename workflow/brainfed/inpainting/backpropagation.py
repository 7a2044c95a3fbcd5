"""Gradients that are computed outside of autograd, handed on to it."""

from torch import Tensor


def carried(gradient: Tensor, tensor: Tensor) -> Tensor:
    """A loss () whose gradient by `tensor` is `gradient`, both of one shape.

    `tensor.backward(gradient)` gives the same numbers, but imports SymPy, which takes each job about a second.
    """
    assert gradient.shape == tensor.shape, (gradient.shape, tensor.shape)
    return (tensor * gradient).sum()
