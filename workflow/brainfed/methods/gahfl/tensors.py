"""Tensors that recurrent networks and their federations send: names on the wire -> axes."""

from collections.abc import Mapping
from itertools import pairwise

from brainfed.methods.gahfl.settings import KINDS


def _of_kind(kind: str) -> dict[str, tuple[str, ...]]:
    gates, pooled = f"{kind}-gates", f"{kind}-pooled"
    found: dict[str, tuple[str, ...]] = {}
    for direction in ("", "-reverse") if kind == "bilstm" else ("",):
        found[f"{kind}.recurrent.weight-ih-l0{direction}"] = (gates, "regions")
        found[f"{kind}.recurrent.weight-hh-l0{direction}"] = (gates, "hidden")
        found[f"{kind}.recurrent.bias-ih-l0{direction}"] = (gates,)
        found[f"{kind}.recurrent.bias-hh-l0{direction}"] = (gates,)
    hidden = 2 if kind == "slstm" else 3
    widths = [pooled, *(f"connected-{number}" for number in range(hidden)), "classes"]
    for number, (before, after) in enumerate(pairwise(widths)):
        found[f"{kind}.connected.{number}.weight"] = (after, before)
        found[f"{kind}.connected.{number}.bias"] = (after,)
    return found


RECURRENT_TENSORS: Mapping[str, tuple[str, ...]] = {
    name: axes for kind in KINDS for name, axes in _of_kind(kind).items()
}
"""Networks of every kind: `KIND.PARAMETER`."""
PUBLIC_TENSORS: Mapping[str, tuple[str, ...]] = {
    "public-series": ("time-points", "regions"),
    "public-labels": ("subjects",),
}
"""Sent once, of the subjects that leave their institution by design."""

DISTILLED_TENSORS: Mapping[str, tuple[str, ...]] = {
    **RECURRENT_TENSORS,
    **PUBLIC_TENSORS,
    "logits": ("public-samples", "classes"),
}
"""An institution uploads logits of the public samples alone, and downloads the global network."""
