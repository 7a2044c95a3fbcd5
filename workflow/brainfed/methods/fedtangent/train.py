"""The torch side of FedTangent and of federated ridge."""

from functools import partial

from brainfed.engines.linear import RidgeTask, train_ridge
from brainfed.methods import Method, poisoned_inputs
from brainfed.methods.fedtangent.declaration import FEDTANGENT, RIDGE_FEDERATED, FederatedRidgeSettings
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome


def train(method: Method, inputs: MethodInputs, settings: FederatedRidgeSettings, run: Run) -> Outcome:
    """Train and score every fold of one repeat."""
    task = RidgeTask(
        settings.alphas,
        settings.solver,
        settings.rounds,
        settings.local_steps,
        settings.tolerance,
        settings.zscore,
        method.crossing.tensors,
        settings,
    )
    return train_ridge(task, poisoned_inputs(inputs, settings), run)


train_fedtangent = partial(train, FEDTANGENT)
train_ridge_federated = partial(train, RIDGE_FEDERATED)
