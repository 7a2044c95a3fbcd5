"""What the search chooses among: federated settings, and as many penalties for each central linear model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from brainfed.federation import FederationSettings
from brainfed.methods import FederatedClassifierSettings
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.methods.linear.declaration import LogisticSettings, RidgeSettings
from brainfed.methods.linear.train import train_logistic, train_ridge
from brainfed.methods.logistic_federated import train as logistic_federated
from brainfed.methods.logistic_federated.declaration import FederatedLogisticSettings
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome

REFERENCE = "ridge-central"
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
COSTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

Train = Callable[[MethodInputs, Any, Run], Outcome]


@dataclass(frozen=True)
class Candidate:
    """One setting of one method.

    Attributes:
        search: in which search it competes; the kind of score is the same for all of a search.
        name: how the tables call it.
        train: the method's entry point.
        settings: of the method.
    """

    search: str
    name: str
    train: Train
    settings: Any


def candidates() -> tuple[Candidate, ...]:
    """Eight federated settings without noise, and as many penalties for each central model."""
    often: dict[str, Any] = {"noise": 0.0, "rounds": 100, "local_epochs": 1, "optimiser_state": "keep"}
    seldom: dict[str, Any] = {"noise": 0.0, "rounds": 10, "local_epochs": 10}
    linear, mlp, gcn = FederatedLogisticSettings, FederatedClassifierSettings, FedGCNSettings
    federated: list[tuple[str, Train, FederationSettings]] = [
        ("logistic", logistic_federated.train, linear(solver="fedavg", **seldom, learning_rate=1e-3)),
        (
            "logistic",
            logistic_federated.train,
            linear(solver="fedavg", **seldom, learning_rate=3e-4, weight_decay=10.0),
        ),
        ("logistic", logistic_federated.train, linear(solver="fedavg", **often, learning_rate=3e-4, weight_decay=3.0)),
        ("logistic", logistic_federated.train, linear(solver="fedavg", **often, learning_rate=3e-4, weight_decay=30.0)),
        ("fedmlp", train_fedmlp, mlp(**seldom, learning_rate=1e-3)),
        ("fedmlp", train_fedmlp, mlp(**often, learning_rate=1e-4, weight_decay=0.1)),
        ("fedgcn-skip", train_fedgcn, gcn(**often, learning_rate=3e-4, weight_decay=3.0, skip="linear")),
        ("fedgcn-skip", train_fedgcn, gcn(**often, learning_rate=3e-4, weight_decay=30.0, skip="linear")),
    ]
    return (
        *(Candidate("federated", f"{name} {_described(own)}", train, own) for name, train, own in federated),
        *(Candidate(REFERENCE, f"alpha {alpha:g}", train_ridge, RidgeSettings(alphas=(alpha,))) for alpha in PENALTIES),
        *(Candidate("logistic-central", f"C {c:g}", train_logistic, LogisticSettings(costs=(c,))) for c in COSTS),
    )


def _described(settings: FederationSettings) -> str:
    return f"{settings.rounds}x{settings.local_epochs} rate {settings.learning_rate:g} decay {settings.weight_decay:g}"


def hastened(candidate: Candidate) -> Candidate:
    """The candidate with a tenth of its rounds."""
    if not isinstance(candidate.settings, FederationSettings):
        return candidate
    return replace(candidate, settings=replace(candidate.settings, rounds=max(1, candidate.settings.rounds // 10)))
