"""The torch side of federated logistic regression: the stacked network without hidden layers."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.linear.logistic_federated import METHOD, FederatedLogisticSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: FederatedLogisticSettings, run: Run) -> Outcome:
    """Train logistic regression by federated averaging on one repeat."""
    return train_stacked(
        inputs,
        settings,
        run,
        hidden=(),
        graph=False,
        standardise=settings.standardise == "institution",
        shared_tensors=METHOD.shared_tensors,
        precision=settings.precision,
    )
