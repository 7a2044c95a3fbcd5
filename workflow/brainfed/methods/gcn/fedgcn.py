"""FedGCN: FedAvg over the institutions' graph convolutional classifiers (FedNI Table IV, Sec. 9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from brainfed.federation.robustness_settings import NOT_OF_TWINS
from brainfed.methods.classifier_settings import (
    BETWEEN_SITES,
    CHOICE_TENSORS,
    NETWORK_TENSORS,
    QUICK_ROUNDS,
    SIZES_TENSORS,
    SUMMED_MOMENTS_TENSORS,
    FederatedClassifierSettings,
)
from brainfed.methods.method import Method, Twins
from brainfed.runtime.settings import setting

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


METHOD = Method(
    name="fedgcn",
    title="FedGCN",
    settings=FedGCNSettings,
    entry="brainfed.methods.gcn.train:train_fedgcn",
    family="federated",
    topology="federated",
    between_sites=BETWEEN_SITES,
    leaves_out=True,
    twins=Twins("localgcn", "centralgcn", apart=NOT_OF_TWINS),
    needs=("features", "graph"),
    gpu=True,
    shared_tensors={**NETWORK_TENSORS, **SKIP_TENSORS, **SIZES_TENSORS, **SUMMED_MOMENTS_TENSORS, **CHOICE_TENSORS},
    quick=QUICK_ROUNDS,
    variants={"fedgcn": {}, "fedgcn-skip": {"skip": "linear"}},
)
