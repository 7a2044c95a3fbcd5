"""The torch side of private logistic regression and private FedMLP."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from brainfed.engines.private.cohort import Moment, PrivateCohort
from brainfed.engines.private.training import PrivateTraining
from brainfed.engines.training import train_networks
from brainfed.methods.method import Method
from brainfed.methods.private_linear.declaration import (
    FEDMLP_DP,
    LOGISTIC_DP,
    PrivateMLPSettings,
    PrivateNetworkSettings,
)
from brainfed.methods.private_linear.rows import own_rows
from brainfed.models.classifier import Classifier
from brainfed.models.logistic_regression import LogisticRegression
from brainfed.models.mlp import MLP
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import IntArray, MethodInputs, Outcome


def train_logistic_dp(inputs: MethodInputs, settings: PrivateNetworkSettings, run: Run) -> Outcome:
    """Train logistic regression on one repeat."""
    features = inputs.features[0].shape[1]
    make = partial(LogisticRegression, features, inputs.classes)
    return _train(LOGISTIC_DP, make, {}, inputs, settings, run)


def train_fedmlp_dp(inputs: MethodInputs, settings: PrivateMLPSettings, run: Run) -> Outcome:
    """Train the classifier without a graph on one repeat."""
    features = inputs.features[0].shape[1]
    make = partial(MLP, features, settings.hidden, inputs.classes)
    widths = {f"hidden-{layer}": width for layer, width in enumerate(settings.hidden)}
    return _train(FEDMLP_DP, make, widths, inputs, settings, run)


def _train(
    method: Method,
    make: Callable[[], Classifier],
    widths: Mapping[str, int],
    inputs: MethodInputs,
    settings: PrivateNetworkSettings,
    run: Run,
) -> Outcome:
    """Train `make()` on rows that are made from each subject alone.

    Raises:
        UserError: as of `own_rows`, or the privacy settings do not fit the cohort.
    """
    rows = settings.row_norm * torch.from_numpy(own_rows(inputs, settings.centre))

    def network(fold: int, _place: int) -> Classifier:
        module = make()
        module.start(inputs.streams, fold)
        return module

    def cohort(members: Sequence[IntArray]) -> PrivateCohort:
        def arguments(place: int, _position: int, samples: Tensor, _moment: Moment | None) -> tuple[Tensor, ...]:
            return (rows[torch.from_numpy(members[place])[samples]],)

        return PrivateCohort.of(inputs, members, arguments)

    sizes = {"features": rows.shape[1], "classes": inputs.classes, **widths}
    return train_networks(
        PrivateTraining(
            inputs, settings, run, "federated", method.crossing.tensors, network=network, cohort=cohort, axes=sizes
        )
    )
