"""GCFL and GCFL+: clusters of institutions that share the convolutions of a GIN (Xie et al. 2021)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.methods.classifier_settings import SIZES_TENSORS
from brainfed.methods.gcfl.settings import CONVOLUTIONS, OWN_LAYERS, FederatedGINSettings
from brainfed.methods.method import Method, Twins
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class GCFLSettings(FederatedGINSettings):
    """The federation's settings, the network's, and those of the clusters."""

    similarity: Literal["updates", "gradient_norms"] = setting(
        "updates",
        "Likeness of two institutions when a cluster is cut. updates: cosine of their updates in this round, GCFL; "
        "gradient_norms: distance of their sequences of gradient norms, GCFL+.",
    )
    eps1: float = setting(
        0.04,
        "A cluster is cut if the norm of its mean update is below this and that of one update above `eps2`. The "
        "defaults are the paper's for NCI1. They belong to Adam with a learning rate of 0.001 and to this network: "
        "other data, optimisers or widths need others.",
        minimum=0,
    )
    eps2: float = setting(0.08, "See `eps1`.", minimum=0)
    sequence: int = setting(5, "Last rounds whose gradient norms GCFL+ compares.", minimum=1)
    first_cut: int = setting(20, "Rounds before the first cut.", minimum=0)
    clustering: Literal["minimum_cut", "balanced"] = setting(
        "minimum_cut",
        "minimum_cut: the paper's, which cuts off one institution at a time where all are nearly alike; balanced: by "
        "the second eigenvector of the graph.",
    )

    def __post_init__(self) -> None:
        """Refuse rounds in which some institutions sit out: clusters need the updates of all."""
        super().__post_init__()
        if self.fraction < 1:
            raise ValueError(f"fraction: expected 1, as clusters need the updates of all, found {self.fraction:g}")


METHOD = Method(
    name="gcfl",
    title="GCFL",
    settings=GCFLSettings,
    entry="brainfed.methods.gcfl.train:train_gcfl",
    family="federated",
    topology="federated",
    between_sites={},
    twins=Twins(
        "selftrain",
        "central-gin",
        "Layers before and after the convolutions are every institution's own.",
        apart=("similarity", "eps1", "eps2", "sequence", "first_cut", "clustering"),
    ),
    needs=("connectomes",),
    clusters=True,
    gpu=True,
    shared_tensors={**CONVOLUTIONS, **OWN_LAYERS, **SIZES_TENSORS, "gradient-norm": ()},
    quick={"rounds": 3, "first_cut": 1, "eps1": 10.0, "eps2": 0.0},
    variants={"gcfl": {}, "gcfl-plus": {"similarity": "gradient_norms"}},
)
