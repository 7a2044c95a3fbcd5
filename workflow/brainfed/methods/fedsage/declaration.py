"""FedSage+: FedAvg over GraphSAGE classifiers on graphs completed by FedSage+'s generators (Zhang et al. 2021)."""

from brainfed.federation import ROBUSTNESS_KEYS
from brainfed.inpainting import FEDSAGE_TENSORS, FedSageSettings
from brainfed.methods import (
    CHOICE_TENSORS,
    NETWORK_TENSORS,
    QUICK_ROUNDS,
    SIZES_TENSORS,
    SUMMED_MOMENTS_TENSORS,
    Capabilities,
    Comparison,
    Crossing,
    FederatedClassifierSettings,
    Inpainter,
    Method,
)

FEDSAGE = Inpainter(
    name="fedsage",
    settings=FedSageSettings,
    train="brainfed.inpainting.fedsage.training:train",
    load="brainfed.inpainting.fedsage.training:load",
    shared_tensors=FEDSAGE_TENSORS,
    max_generated="targets",
)

FEDSAGE_PLUS = Method(
    name="fedsage-plus",
    title="FedSage+",
    settings=FederatedClassifierSettings,
    entry="brainfed.methods.fedsage.train:train",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "localgcn",
        "centralgcn",
        "FedSage+ trains GraphSAGE; its counterparts are graph convolutional networks.",
        other_model="another model",
        apart=ROBUSTNESS_KEYS,
    ),
    needs=("features", "fused"),
    options={"inpainting": FEDSAGE, "fused": {"cap": None, "rounding": "truncate", "edges": "binary"}},
    crossing=Crossing(
        {
            **NETWORK_TENSORS,
            "weight-own-0": ("features", "hidden-0"),
            "weight-own-1": ("hidden-0", "hidden-1"),
            **SIZES_TENSORS,
            **CHOICE_TENSORS,
            **SUMMED_MOMENTS_TENSORS,
        }
    ),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_ROUNDS,
    variants={"fedsage-plus": {}},
)
"""FedAvg over GraphSAGE classifiers on graphs completed by FedSage+'s generators (Zhang et al. 2021)."""
