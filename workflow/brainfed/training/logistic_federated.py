"""The torch side of federated logistic regression: the stacked network without hidden layers."""

from brainfed.methods.logistic_federated import METHOD, FederatedLogisticSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: FederatedLogisticSettings, run: Run) -> Outcome:
    """Train logistic regression by federated averaging on one repeat."""
    return train_stacked(
        inputs,
        settings,
        run,
        hidden=(),
        graph=False,
        standardise=settings.standardise == "institution",
        crosses=METHOD.crosses,
        precision=settings.precision,
    )
