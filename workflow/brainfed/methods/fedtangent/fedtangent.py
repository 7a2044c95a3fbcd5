"""FedTangent: federated ridge on tangent connectivity with strong shrinkage, and other views of a subject."""

from dataclasses import dataclass

from brainfed.methods.fedtangent.settings import (
    APART,
    BETWEEN_SITES,
    RIDGE_TENSORS,
    SCALING_TENSORS,
    ZSCORE,
    FederatedRidgeSettings,
)
from brainfed.methods.linear.ridge import TANGENT
from brainfed.methods.method import Method, Twins
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedTangentSettings(FederatedRidgeSettings):
    """Settings of federated ridge; tangent features are not z-scored."""

    zscore: bool = setting(
        False,
        ZSCORE,
    )


METHOD = Method(
    name="fedtangent",
    title="FedTangent",
    settings=FedTangentSettings,
    entry="brainfed.methods.fedtangent.train:train_fedtangent",
    family="federated",
    topology="federated",
    between_sites=BETWEEN_SITES,
    inner_grid="alphas",
    leaves_out=True,
    twins=Twins("tangent-local", "tangent-central", apart=APART),
    options={"features": TANGENT},
    views=True,
    patterns=True,
    model="brainfed.engines.linear.kept:score",
    shared_tensors={**RIDGE_TENSORS, **SCALING_TENSORS},
    quick={"alphas": (0.1, 1.0, 10.0)},
    variants={"fedtangent": {}, "fedtangent-fedavg": {"solver": "fedavg", "rounds": 10, "alphas": (0.1,)}},
)
