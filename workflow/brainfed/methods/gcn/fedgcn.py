"""FedGCN: FedAvg over the institutions' graph convolutional classifiers (FedNI Table IV, Sec. 9)."""

from dataclasses import dataclass

from brainfed.federation.schedule import FederationSettings
from brainfed.methods.classifier_settings import (
    DROPOUT_DESCRIPTION,
    HIGHEST_DROPOUT,
    MOMENTS_TENSORS,
    NETWORK_TENSORS,
    SIZES_TENSORS,
    SKIP_DESCRIPTION,
    SKIP_TENSORS,
    STANDARDISE_DESCRIPTION,
    Skip,
    Standardise,
)
from brainfed.methods.method import Method, Twins
from brainfed.runtime.precision import PRECISION_DESCRIPTION, Precision
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedGCNSettings(FederationSettings):
    """The federation's settings and the classifier's."""

    hidden: tuple[int, int] = setting((64, 32), "Widths of the two graph convolutions.")
    standardise: Standardise = setting("institution", STANDARDISE_DESCRIPTION)
    skip: Skip = setting("none", SKIP_DESCRIPTION)
    precision: Precision = setting("float32", PRECISION_DESCRIPTION)
    dropout: float = setting(0.0, DROPOUT_DESCRIPTION, minimum=0, maximum=HIGHEST_DROPOUT)
    neighbours: tuple[int, ...] = setting(
        (),
        "For graphs that do not fit into memory: at most so many neighbours that a node hears in each of the two "
        "convolutions, drawn anew each step, 0 for all, as in [10, 5]. Features stay in their file, but for those "
        "of a fused graph; with `batch`, a step reads few of them. None: the whole graph.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours and (len(self.neighbours) != 2 or min(self.neighbours) < 0):
            raise ValueError(f"neighbours: expected two numbers of at least 0, or none, found {list(self.neighbours)}")
        if self.neighbours and self.skip != "none":
            raise ValueError("neighbours: drawing neighbours goes without a skip connection")
        if self.neighbours and self.dropout:
            raise ValueError(f"neighbours: drawing neighbours goes without dropout, found dropout {self.dropout:g}")
        if self.neighbours and self.precision != "float32":
            raise ValueError(f"neighbours: drawing neighbours needs precision float32, found {self.precision}")


METHOD = Method(
    name="fedgcn",
    title="FedGCN",
    settings=FedGCNSettings,
    entry="brainfed.methods.gcn.train_fedgcn:train",
    family="federated",
    topology="federated",
    twins=Twins("localgcn", "centralgcn"),
    needs=("features", "graph"),
    gpu=True,
    shared_tensors={**NETWORK_TENSORS, **SKIP_TENSORS, **SIZES_TENSORS, **MOMENTS_TENSORS},
    variants={"fedgcn": {}, "fedgcn-skip": {"skip": "linear"}},
)
