"""FedNI: FedGCN on graphs completed by a federated generator (FedNI Sec. III), or by means of small groups."""

from brainfed.federation import ROBUSTNESS_KEYS
from brainfed.inpainting import (
    CENTROIDS_TENSORS,
    DISCRIMINATOR_TENSORS,
    GENERATOR_TENSORS,
    SIZE_TENSORS,
    CentroidSettings,
    InpaintingSettings,
)
from brainfed.methods import (
    BETWEEN_SITES,
    NETWORK_TENSORS,
    QUICK_ROUNDS,
    ROUNDS_TENSORS,
    Capabilities,
    Comparison,
    Crossing,
    Inpainter,
    Method,
)
from brainfed.methods.gcn.declaration import SKIP_TENSORS, FedGCNSettings

FEDNI_INPAINTER = Inpainter(
    name="fedni",
    settings=InpaintingSettings,
    train="brainfed.inpainting.fedni.training:train",
    load="brainfed.inpainting.fedni.drawing:load",
    shared_tensors={**SIZE_TENSORS, **GENERATOR_TENSORS, **DISCRIMINATOR_TENSORS},
)

FEDNI = Method(
    name="fedni",
    title="FedNI",
    settings=FedGCNSettings,
    entry="brainfed.methods.fedni.train:train",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "localgcn",
        "centralgcn",
        "The counterparts have no generated nodes.",
        other_model="without generated nodes",
        apart=ROBUSTNESS_KEYS,
    ),
    needs=("features", "fused"),
    options={"inpainting": FEDNI_INPAINTER},
    crossing=Crossing({**NETWORK_TENSORS, **SKIP_TENSORS, **ROUNDS_TENSORS}, between_sites=BETWEEN_SITES),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_ROUNDS,
    variants={"fedni": {}, "fedni-skip": {"skip": "linear"}},
)
"""FedGCN on graphs completed by a federated generator of missing neighbours (FedNI Sec. III)."""

CENTROIDS = Inpainter(
    name="centroids",
    settings=CentroidSettings,
    train="brainfed.inpainting.centroids:train",
    load="brainfed.inpainting.centroids:load",
    shared_tensors=CENTROIDS_TENSORS,
)

FEDNI_CENTROIDS = Method(
    name="fedni-centroids",
    title="FedNI's classifier with centroids",
    settings=FedGCNSettings,
    entry=FEDNI.entry,
    family="federated",
    topology="federated",
    comparison=Comparison(
        "localgcn",
        "centralgcn",
        "The counterparts have no centroids.",
        other_model="without centroids",
        apart=ROBUSTNESS_KEYS,
    ),
    needs=("features", "fused"),
    options={"inpainting": CENTROIDS, "fused": {"cap": None, "edges": "k"}},
    crossing=Crossing(FEDNI.crossing.tensors),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_ROUNDS,
    variants={"fedni-centroids": {}},
)
"""FedGCN on graphs that are completed by the means of small groups of subjects of other institutions; no generator."""
