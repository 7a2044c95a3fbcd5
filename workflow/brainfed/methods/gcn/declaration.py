"""The graph convolutional classifier of FedNI Table IV: in every institution, on pooled data, and by FedAvg."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from brainfed.federation import ROBUSTNESS_KEYS
from brainfed.methods import (
    BETWEEN_SITES,
    MOMENTS_TENSORS,
    NETWORK_TENSORS,
    QUICK_EPOCHS,
    QUICK_ROUNDS,
    ROUNDS_TENSORS,
    Capabilities,
    Comparison,
    Crossing,
    FederatedClassifierSettings,
    Method,
    SoloSettings,
)
from brainfed.runtime import setting

LOCALGCN = Method(
    name="localgcn",
    title="LocalGCN",
    settings=SoloSettings,
    entry="brainfed.methods.gcn.train:train_localgcn",
    family="graph",
    topology="local",
    needs=("features", "graph"),
    crossing=Crossing({**NETWORK_TENSORS, **MOMENTS_TENSORS}),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_EPOCHS,
    variants={"localgcn": {}},
)
"""The classifier of FedNI Table IV in every institution alone (FedNI Sec. 9).

Its graph is cut out of the graph of all subjects. Nothing else crosses institutions except under leave-one-site-out:
the other sites' models score the unseen one.
"""

CENTRALGCN = Method(
    name="centralgcn",
    title="CentralGCN",
    settings=SoloSettings,
    entry="brainfed.methods.gcn.train:train_centralgcn",
    family="graph",
    topology="central",
    needs=("features", "graph"),
    crossing=Crossing({"features": ("subjects", "features"), "labels": ("subjects",)}),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_EPOCHS,
    variants={"centralgcn": {}},
)
"""The classifier of FedNI Table IV on the population graph of all patients (FedNI Sec. 9)."""

SKIP_TENSORS: Mapping[str, tuple[str, ...]] = {"weight-skip": ("features", "classes")}
"""Sent with `skip: linear` alone."""


@dataclass(frozen=True)
class FedGCNSettings(FederatedClassifierSettings):
    """The federation's settings and the classifier's."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "neighbours": "training reads the whole graph, which fits into memory with 50,000 subjects; delete the key"
    }

    skip: Literal["none", "linear"] = setting(
        "none",
        "linear: the logits of a linear classifier on the subject's own features are added to the GCN's, so that a "
        "graph that misleads can be bypassed.",
    )


FEDGCN = Method(
    name="fedgcn",
    title="FedGCN",
    settings=FedGCNSettings,
    entry="brainfed.methods.gcn.train:train_fedgcn",
    family="federated",
    topology="federated",
    comparison=Comparison("localgcn", "centralgcn", apart=ROBUSTNESS_KEYS),
    needs=("features", "graph"),
    crossing=Crossing(
        {**NETWORK_TENSORS, **SKIP_TENSORS, **ROUNDS_TENSORS}, between_sites=BETWEEN_SITES, leaves_out=True
    ),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_ROUNDS,
    variants={"fedgcn": {}, "fedgcn-skip": {"skip": "linear"}},
)
"""FedAvg over the institutions' graph convolutional classifiers (FedNI Table IV, Sec. 9)."""
