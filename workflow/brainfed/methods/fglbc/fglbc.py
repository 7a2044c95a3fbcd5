"""FGLBC: a spatio-temporal graph network, private training, similarity-weighted aggregation (Chen and Su 2024)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.federation.privacy.settings import NOT_OF_TWINS
from brainfed.methods.fglbc.settings import MEAN_ADJACENCY, QUICK_STGCN, STGCN_TENSORS, FederatedSTGCNSettings
from brainfed.methods.method import Method, Twins
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FGLBCSettings(FederatedSTGCNSettings):
    """The network's settings, the federation's, and those of the server's mean."""

    aggregation: Literal["similarity", "printed"] = setting(
        "similarity",
        "similarity: weights by the likeness of an institution's update to the server's last one; the paper compares "
        "projected weights. printed: equation 6 as printed, on weights, which adds their weighted mean to the global "
        "model.",
    )
    temperature: float = setting(10.0, "Factor tau of the likeness in the softmax.", minimum=0)
    components: int = setting(
        0,
        "Principal components of the updates that are compared, the largest first; 0: all, with which the likeness is "
        "that of the updates themselves.",
        minimum=0,
    )


METHOD = Method(
    name="fglbc",
    title="FGLBC",
    settings=FGLBCSettings,
    entry="brainfed.methods.fglbc.train:train_fglbc",
    family="federated",
    topology="federated",
    between_sites={},
    leaves_out=True,
    twins=Twins(
        "stgcn-local",
        "stgcn-central",
        "The twins train without noise.",
        apart=("aggregation", "temperature", "components", *NOT_OF_TWINS),
    ),
    needs=("series",),
    gpu=True,
    on_request=(
        "fglbc",
        "fglbc-no-dp",
        "fglbc-printed-noise",
    ),
    shared_tensors={**STGCN_TENSORS, **MEAN_ADJACENCY},
    quick={"rounds": 2, **QUICK_STGCN},
    variants={"fglbc": {}, "fglbc-no-dp": {"privacy": "none"}, "fglbc-printed-noise": {"privacy": "paper"}},
)
