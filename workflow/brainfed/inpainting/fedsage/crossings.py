"""What FedSage+'s generator training sends between owners: name -> axes. Light: the methods declare it.

Under `exchange: gradients`, owner i sends fGen's parameters, and owner j returns their gradient, summed over its
own nodes (`visits`). Under `exchange: raw`, owner j sends the embeddings of its nodes, owner i the vectors that it
generates from them, and j returns one gradient a vector, which is as good as its patients' features (`raw_visits`).
The sum hides one patient among others only by their number: it carries no formal guarantee.
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
