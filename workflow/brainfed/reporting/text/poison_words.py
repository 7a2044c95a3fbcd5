"""Sentences on poisoned institutions and on a server that defends itself."""

from collections.abc import Sequence

from brainfed.federation.robustness_settings import share_of
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant

MEANINGS = {
    "paf": "PAF: what they send is replaced by a far point, each in a direction of its own",
    "ofom": "OFOM: one sends a far point, all others the mean with it",
    "sign_flip": "sign flip: they send the opposite of their update",
    "scale": "scale: they send ten times their update",
    "label_flip": "label flip: they train on labels in reverse order",
}
"""Attack -> what it does."""


def poison_sentences(variants: Sequence[ShownVariant], institutions: int) -> list[str]:
    """`Poisoned: 1 and 2 of 4 institutions. PAF: ...`, a sentence for each attack, and one for the defences."""
    counts: dict[str, set[int]] = {}
    for variant in variants:
        if variant.is_poisoned:
            count = share_of(float(variant.setting("attacked")), institutions)
            counts.setdefault(str(variant.setting("attack")), set()).add(count)
    said = [
        f"{listed([str(count) for count in sorted(own)], 'or')} of {institutions} institutions poisoned. "
        f"{MEANINGS[attack]}."
        for attack, own in counts.items()
    ]
    defences = [str(variant.setting("defence")).replace("_", " ") for variant in variants if variant.is_defended]
    return [*said, f"Defences of the server: {listed(list(dict.fromkeys(defences)), 'and')}."] if defences else said
