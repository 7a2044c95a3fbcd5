"""Tensors that recurrent networks and their federations send: names on the wire -> axes."""

from collections.abc import Mapping


DIRECTIONS = ("", "-reverse")

RECURRENT_TENSORS: Mapping[str, tuple[str, ...]] = {
    **{
        f"recurrent.{name}-l0{direction}": axes
        for direction in DIRECTIONS
        for name, axes in (
            ("weight-ih", ("gates", "regions")),
            ("weight-hh", ("gates", "hidden")),
            ("bias-ih", ("gates",)),
            ("bias-hh", ("gates",)),
        )
    },
}
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
