"""Tensors that owners share in FedSage+'s generator training: name -> axes. Light: the methods declare them.

Under `exchange: gradients`, owner i sends fGen's parameters, and owner j returns their gradient, summed over its nodes
(`visits`). The sum gives a patient no formal privacy guarantee. Under `exchange: raw`, owner j sends the embeddings of
its nodes, owner i the vectors generated from them, and j returns one gradient a vector, which reveals its patients'
features (`raw_visits`).
"""

from collections.abc import Mapping
from itertools import pairwise

_LAYERS = ("first", "second", "output")
_WIDTHS = ("latent", "fgen-0", "fgen-1", "slots-features")


def _parameters(name: str) -> dict[str, tuple[str, ...]]:
    axes: dict[str, tuple[str, ...]] = {}
    for layer, (columns, rows) in zip(_LAYERS, pairwise(_WIDTHS), strict=True):
        axes |= {f"{name}.{layer}.weight": (rows, columns), f"{name}.{layer}.bias": (rows,)}
    return axes


SUMMED_TENSORS: Mapping[str, tuple[str, ...]] = {**_parameters("fgen"), **_parameters("fgen-gradient")}

RAW_TENSORS: Mapping[str, tuple[str, ...]] = {
    "embedding": ("subjects", "latent"),
    "generated": ("subjects", "slots", "features"),
    "generated-gradient": ("subjects", "slots", "features"),
}

FEDSAGE_TENSORS: Mapping[str, tuple[str, ...]] = {**SUMMED_TENSORS, **RAW_TENSORS}
