"""LocalGCN: the classifier of FedNI Table IV in every institution alone (FedNI Sec. 9).

Its graph is cut out of the graph of all subjects. Nothing else crosses institutions except under leave-one-site-out:
the other sites' models score the unseen one.
"""

from dataclasses import dataclass

from brainfed.methods.classifier_settings import MOMENTS_TENSORS, NETWORK_TENSORS, QUICK_EPOCHS, SoloSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class LocalGCNSettings(SoloSettings):
    """Training in one institution."""


METHOD = Method(
    name="localgcn",
    title="LocalGCN",
    settings=LocalGCNSettings,
    entry="brainfed.methods.gcn.train:train_localgcn",
    family="graph",
    topology="local",
    needs=("features", "graph"),
    gpu=True,
    shared_tensors={**NETWORK_TENSORS, **MOMENTS_TENSORS},
    quick=QUICK_EPOCHS,
    variants={"localgcn": {}},
)
