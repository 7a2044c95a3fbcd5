"""The gradient of each subject: `torch.func` for any module, products of two vectors for a classifier's wide weights.

One subject with several windows has one gradient, that of the mean loss over its windows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import cross_entropy

from brainfed.engines.private.cohort import Rows
from brainfed.models.classifier import Classifier


@dataclass(frozen=True)
class SubjectGradients:
    """Gradients of b subjects.

    Attributes:
        losses: (b,) of each subject.
        whole: parameter -> (b, ...).
        outer: parameter (d, w) -> inputs (b, d) and gradients (b, w) of their product: the gradient of a subject is
            the outer product of its two rows, which needs no memory of b x d x w.
    """

    losses: Tensor
    whole: Mapping[str, Tensor]
    outer: Mapping[str, tuple[Tensor, Tensor]]

    def norms(self) -> Tensor:
        """(b,) L2 norms over all parameters."""
        squares = [each.flatten(1).square().sum(dim=1) for each in self.whole.values()]
        squares += [
            inputs.square().sum(dim=1) * products.square().sum(dim=1) for inputs, products in self.outer.values()
        ]
        return torch.stack(squares).sum(dim=0).sqrt()

    def weighted_sum(self, factors: Tensor) -> dict[str, Tensor]:
        """The sum of all subjects' gradients, each times its factor (b,)."""
        found = {name: torch.tensordot(factors, each, dims=1) for name, each in self.whole.items()}
        return found | {
            name: inputs.T @ (products * factors[:, None]) for name, (inputs, products) in self.outer.items()
        }


def subject_gradients(module: torch.nn.Module, rows: Rows, labels: Tensor) -> SubjectGradients:
    """The gradients of the subjects with labels (b,); no gradient of the module is written."""
    if rows.owner is None and isinstance(module, Classifier) and set(module.reads.values()) == {"own"}:
        return _of_classifier(module, rows.arguments[0], labels)
    parameters = {name: each.detach() for name, each in module.named_parameters()}

    def loss(weights: dict[str, Tensor], label: Tensor, *arguments: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, weights, tuple(each[None] for each in arguments))
        return cross_entropy(logits, label[None])

    every = (None, 0, *(0 for _ in rows.arguments))
    gradients, losses = vmap(grad_and_value(loss), every)(parameters, rows.of_rows(labels), *rows.arguments)
    whole = {name: rows.of_subjects(each) for name, each in gradients.items()}
    return SubjectGradients(rows.of_subjects(losses), whole, {})


def _of_classifier(module: Classifier, x: Tensor, labels: Tensor) -> SubjectGradients:
    """Of a classifier without a graph, from features x (b, d); its other layers read weights with a leading axis b."""
    parameters = {name: each.detach() for name, each in module.named_parameters()}
    products = {name: (x @ parameters[name])[:, None].requires_grad_() for name in module.reads}
    own = {
        name: each.expand(len(x), *([1] * (2 - each.dim())), *each.shape).requires_grad_()
        for name, each in parameters.items()
        if name not in products
    }
    logits = functional_call(_Logits(module), {f"module.{name}": each for name, each in own.items()}, (products,))
    losses = cross_entropy(logits[:, 0], labels, reduction="none")
    found = torch.autograd.grad(losses.sum(), (*products.values(), *own.values()))
    read = {name: (x, each[:, 0]) for name, each in zip(products, found, strict=False)}
    whole = {
        name: each.view(len(x), *parameters[name].shape) for name, each in zip(own, found[len(products) :], strict=True)
    }
    return SubjectGradients(losses.detach(), whole, read)


class _Logits(torch.nn.Module):
    """The layers of a classifier after its products with the features."""

    def __init__(self, module: Classifier) -> None:
        super().__init__()
        self.module = module

    def forward(self, products: Mapping[str, Tensor]) -> Tensor:
        """(b, 1, C) from products (b, 1, width)."""
        return self.module.logits(products, None)
