"""Central GIN: the network of the pooled graphs, which a federation may not train: an upper reference."""

from dataclasses import dataclass

from brainfed.methods.gcfl.settings import SoloGINSettings
from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class CentralGINSettings(SoloGINSettings):
    """Training on pooled graphs."""

    epochs: int = setting(200, "Epochs.", minimum=1)


METHOD = Method(
    name="central-gin",
    title="Central GIN",
    settings=CentralGINSettings,
    entry="brainfed.methods.gcfl.train:train_central",
    family="graph",
    topology="central",
    needs=("connectomes",),
    gpu=True,
    shared_tensors={"nodes": ("nodes", "features"), "edges": ("edges", "ends"), "labels": ("subjects",)},
    quick={"epochs": 3},
    variants={"central-gin": {}},
)
