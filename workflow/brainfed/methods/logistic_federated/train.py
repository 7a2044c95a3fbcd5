"""The torch side of federated logistic regression."""

from brainfed.engines.stacked.training import StackedTraining
from brainfed.engines.training import train_networks
from brainfed.methods.logistic_federated.declaration import LOGISTIC_FEDERATED, FederatedLogisticSettings
from brainfed.methods.logistic_federated.sums import train_sums
from brainfed.models.logistic_regression import LogisticRegression
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: FederatedLogisticSettings, run: Run) -> Outcome:
    """Train logistic regression on one repeat, by sums of gradients or by federated averaging."""
    if settings.solver == "lbfgs":
        return train_sums(inputs, settings, run)
    return train_networks(
        StackedTraining(
            inputs,
            settings,
            run,
            "federated",
            LOGISTIC_FEDERATED.crossing.tensors,
            module=LogisticRegression(inputs.features[0].shape[1], inputs.classes),
            standardise=settings.standardise == "institution",
            precision=settings.precision,
        )
    )
