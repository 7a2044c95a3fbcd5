"""FedSage+: FedAvg over GraphSAGE classifiers on graphs mended by FedSage+'s generators (Zhang et al. 2021)."""

from dataclasses import dataclass

from brainfed.federation.schedule import FederationSettings
from brainfed.inpainting.fedsage.crossings import FEDSAGE_TENSORS
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.methods.classifier_settings import (
    DROPOUT_DESCRIPTION,
    HIGHEST_DROPOUT,
    MOMENTS_TENSORS,
    NETWORK_TENSORS,
    SIZES_TENSORS,
    STANDARDISE_DESCRIPTION,
    Standardise,
)
from brainfed.methods.inpainter import Inpainter
from brainfed.methods.method import Method, Twins
from brainfed.runtime.precision import PRECISION_DESCRIPTION, Precision
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedSagePlusSettings(FederationSettings):
    """The classifier's settings; `inpainting` and `fusing` are stages of their own."""

    hidden: tuple[int, int] = setting((64, 32), "Widths of the two GraphSAGE layers.")
    standardise: Standardise = setting("institution", STANDARDISE_DESCRIPTION)
    precision: Precision = setting("float32", PRECISION_DESCRIPTION)
    dropout: float = setting(0.0, DROPOUT_DESCRIPTION, minimum=0, maximum=HIGHEST_DROPOUT)


FEDSAGE = Inpainter(
    name="fedsage",
    settings=FedSageSettings,
    train="brainfed.inpainting.fedsage.training:train",
    load="brainfed.inpainting.fedsage.training:load",
    shared_tensors=FEDSAGE_TENSORS,
    max_generated="targets",
)

METHOD = Method(
    name="fedsage-plus",
    title="FedSage+",
    settings=FedSagePlusSettings,
    entry="brainfed.methods.fedsage.train:train",
    family="federated",
    topology="federated",
    twins=Twins(
        "localgcn",
        "centralgcn",
        "Their model is another one: FedSage+ trains GraphSAGE, and its twins are graph convolutional networks.",
        other_model="another model",
    ),
    needs=("features", "fused"),
    options={"inpainting": FEDSAGE, "fused": {"cap": None, "rounding": "truncate", "edges": "binary"}},
    gpu=True,
    shared_tensors={
        **NETWORK_TENSORS,
        "weight-own-0": ("features", "hidden-0"),
        "weight-own-1": ("hidden-0", "hidden-1"),
        **SIZES_TENSORS,
        **MOMENTS_TENSORS,
    },
    variants={"fedsage-plus": {}},
)
