"""Ridge classifier of a federation: conjugate gradients on sums over institutions, equal to ridge on pooled data."""

from brainfed.methods.fedtangent.settings import (
    APART,
    BETWEEN_SITES,
    RIDGE_TENSORS,
    SCALING_TENSORS,
    FederatedRidgeSettings,
)
from brainfed.methods.method import Method, Twins

METHOD = Method(
    name="ridge-federated",
    title="Ridge, federated",
    settings=FederatedRidgeSettings,
    entry="brainfed.methods.fedtangent.train:train_ridge_federated",
    family="federated",
    topology="federated",
    between_sites=BETWEEN_SITES,
    inner_grid="alphas",
    leaves_out=True,
    twins=Twins(
        "ridge-local",
        "ridge-central",
        "The twins choose their penalty by leave-one-out, the federated ridge by inner folds.",
        apart=APART,
    ),
    views=True,
    patterns=True,
    model="brainfed.engines.linear.kept:score",
    shared_tensors={**RIDGE_TENSORS, **SCALING_TENSORS},
    quick={"alphas": (0.1, 1.0, 10.0)},
    variants={"ridge-federated": {}},
)
