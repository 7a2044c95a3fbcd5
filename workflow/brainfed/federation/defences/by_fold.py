"""A rule on the uploads of one fold, applied to all folds."""

from collections.abc import Callable

from torch import Tensor

Rule = Callable[[Tensor], Tensor]
"""Uploads (m, ...) of the institutions that take part -> the server's (...)."""


def by_fold(stack: Tensor, present: Tensor, rule: Rule) -> Tensor:
    """(F, ...) results of a rule; zeros in a fold in which no institution takes part.

    Args:
        stack: (M, F, ...) uploads.
        present: (M, F) whether an institution takes part.
        rule: of one fold.
    """
    found = stack.new_zeros(stack.shape[1:])
    for fold, own in enumerate(present.to(stack.device).T):
        if own.any():
            found[fold] = rule(stack[own, fold])
    return found
