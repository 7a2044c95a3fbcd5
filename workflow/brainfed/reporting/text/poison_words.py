"""Sentences on poisoned institutions and on a server that defends itself."""

from collections.abc import Sequence

from brainfed.federation.robustness_settings import share_of
from brainfed.reporting.variants import ShownVariant


def poison_sentences(variants: Sequence[ShownVariant], institutions: int) -> list[str]:
    """`1 of 4 institutions poisoned (paf), defence median: FedMLP (...).`, one for each attack and defence."""
    named: dict[str, list[str]] = {}
    for variant in variants:
        if variant.is_poisoned or variant.is_defended:
            named.setdefault(_state(variant, institutions), []).append(variant.title)
    return [f"{state}: {', '.join(titles)}." for state, titles in named.items()]


def _state(variant: ShownVariant, institutions: int) -> str:
    defence = f"defence {variant.setting('defence')}" if variant.is_defended else "no defence"
    if not variant.is_poisoned:
        return f"No institution poisoned, {defence}"
    count = share_of(float(variant.setting("attacked")), institutions)
    return f"{count} of {institutions} institutions poisoned ({variant.setting('attack')}), {defence}"
