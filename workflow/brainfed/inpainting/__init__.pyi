from ._inputs import (
    InpaintingInputs, Generated, rank_among_equals, TrainedGenerator, Scaling, scaling_of, FusedGraph, read_fused,
)
from ._settings import (
    InpaintingSettings, FusingSettings, CentroidSettings, CENTROIDS_TENSORS, FedSageSettings, SIZE_TENSORS,
    GENERATOR_TENSORS, DISCRIMINATOR_TENSORS, shared_tensors, wire_name, SUMMED_TENSORS, RAW_TENSORS, FEDSAGE_TENSORS,
)
from ._fusing import crossings_of, fuse
from ._fidelity import fidelity

__all__ = [
    "InpaintingInputs", "Generated", "rank_among_equals", "TrainedGenerator", "Scaling", "scaling_of", "FusedGraph",
    "read_fused",
    "InpaintingSettings", "FusingSettings", "CentroidSettings", "CENTROIDS_TENSORS", "FedSageSettings", "SIZE_TENSORS",
    "GENERATOR_TENSORS", "DISCRIMINATOR_TENSORS", "shared_tensors", "wire_name", "SUMMED_TENSORS", "RAW_TENSORS",
    "FEDSAGE_TENSORS",
    "crossings_of", "fuse",
    "fidelity",
]
