"""FedGCN on graphs that are completed by the means of small groups of subjects of other institutions; no generator."""

from brainfed.federation.robustness_settings import NOT_OF_TWINS
from brainfed.inpainting.centroids.settings import CENTROIDS_TENSORS, CentroidSettings
from brainfed.methods.classifier_settings import QUICK_ROUNDS
from brainfed.methods.fedni.fedni import METHOD as FEDNI
from brainfed.methods.fedni.fedni import FedNISettings
from brainfed.methods.inpainter import Inpainter
from brainfed.methods.method import Method, Twins

CENTROIDS = Inpainter(
    name="centroids",
    settings=CentroidSettings,
    train="brainfed.inpainting.centroids.training:train",
    load="brainfed.inpainting.centroids.training:load",
    shared_tensors=CENTROIDS_TENSORS,
)

METHOD = Method(
    name="fedni-centroids",
    title="FedNI's classifier with centroids",
    settings=FedNISettings,
    entry=FEDNI.entry,
    family="federated",
    topology="federated",
    twins=Twins(
        "localgcn", "centralgcn", "The twins have no centroids.", other_model="without centroids", apart=NOT_OF_TWINS
    ),
    needs=("features", "fused"),
    options={"inpainting": CENTROIDS, "fused": {"cap": None, "edges": "k"}},
    gpu=True,
    shared_tensors=FEDNI.shared_tensors,
    quick=QUICK_ROUNDS,
    variants={"fedni-centroids": {}},
)
