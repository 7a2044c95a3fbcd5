"""The torch side of private logistic regression and private FedMLP."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.engines.clients import axes_of
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
from brainfed.samples.inputs import MethodInputs, Outcome


@dataclass(frozen=True, kw_only=True)
class RowsTraining(PrivateTraining[MethodInputs]):
    """A classifier on rows that are made from each subject alone.

    Attributes:
        module: the network of one institution.
        rows: (n, d).
    """

    module: Classifier
    rows: Tensor

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of axes that the ledger knows."""
        return axes_of(self.module)

    def network(self, fold: int, place: int) -> Classifier:
        """The classifier; all institutions start alike."""
        del place
        module = deepcopy(self.module)
        module.start(self.inputs.streams, fold)
        return module

    def cohort(self) -> PrivateCohort:
        """The rows of the institutions' subjects."""
        members = self.members

        def arguments(place: int, _position: int, samples: Tensor, _moment: Moment | None) -> tuple[Tensor, ...]:
            return (self.rows[torch.from_numpy(members[place])[samples]],)

        return PrivateCohort.of(self.inputs, members, arguments)


def train_logistic_dp(inputs: MethodInputs, settings: PrivateNetworkSettings, run: Run) -> Outcome:
    """Train logistic regression on one repeat."""
    module = LogisticRegression(inputs.features[0].shape[1], inputs.classes)
    return _train(LOGISTIC_DP, module, inputs, settings, run)


def train_fedmlp_dp(inputs: MethodInputs, settings: PrivateMLPSettings, run: Run) -> Outcome:
    """Train the classifier without a graph on one repeat."""
    module = MLP(inputs.features[0].shape[1], settings.hidden, inputs.classes)
    return _train(FEDMLP_DP, module, inputs, settings, run)


def _train(
    method: Method, module: Classifier, inputs: MethodInputs, settings: PrivateNetworkSettings, run: Run
) -> Outcome:
    """Train `module` on rows of the norm that the settings have.

    Raises:
        UserError: as of `own_rows`, or the privacy settings do not fit the cohort.
    """
    rows = settings.row_norm * torch.from_numpy(own_rows(inputs, settings.centre))
    tensors = method.crossing.tensors
    return train_networks(RowsTraining(inputs, settings, run, "federated", tensors, module=module, rows=rows))
