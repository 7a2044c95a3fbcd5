"""Settings of experiments on robustness: institutions that send poison, and a server that expects them."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from brainfed.runtime.settings import setting

NOT_OF_TWINS = ("attack", "attacked", "defence", "trim")
"""Settings that no twin has: twins train on honest data."""

TRIMMING = ("trimmed_mean", "krum", "multi_krum")
"""Defences that read `trim`."""

SHARE = 0.25
"""Of the institutions, if an attack names no other."""

ROUNDING = 9
"""Decimals of share x institutions: 0.07 x 100 is 7.000000000000001."""


@dataclass(frozen=True)
class RobustnessSettings:
    """An attack on the federation, and the server's defence."""

    attack: Literal["none", "paf", "ofom", "sign_flip", "scale", "label_flip"] = setting(
        "none",
        "What poisoned institutions do. paf: they send the mean of the others plus a vector ten times as long, in a "
        "random direction (GAHFL eq. 8). ofom: one does so, all others send the mean with it (GAHFL eq. 9). sign_flip, "
        "scale: they send their update times -1, or 10. label_flip: they train on labels in reverse order, which of "
        "two classes are the wrong ones.",
    )
    attacked: float = setting(
        SHARE,
        "Share of the institutions that are poisoned, rounded up; a larger share adds to the same ones.",
        minimum=0,
        maximum=1,
    )
    defence: Literal["none", "median", "trimmed_mean", "krum", "multi_krum", "geometric_median", "norm_clipping"] = (
        setting(
            "none",
            "What takes the place of the server's mean. median, trimmed_mean: of every number for itself. krum, "
            "multi_krum: the model, or mean of models, with the nearest others. geometric_median: the smallest sum "
            "of distances. norm_clipping: the mean of updates, none longer than their median length.",
        )
    )
    trim: float = setting(
        0.25,
        "Share of the institutions, rounded up, that trimmed_mean leaves out at each end, and that krum and multi_krum "
        "take for poisoned.",
        minimum=0,
        maximum=0.5,
    )

    def __post_init__(self) -> None:
        if self.attack == "none" and self.attacked != SHARE:
            raise ValueError(
                f"attacked: expected an attack, found attacked: {self.attacked:g} without one, which poisons nobody; "
                "add `attack`, or remove `attacked`"
            )
        if self.defence in TRIMMING and not 0 < self.trim < 0.5:
            raise ValueError(
                f"trim: expected a share above 0 and below 0.5 for defence: {self.defence}, found {self.trim:g}; 0.25 "
                "is the default"
            )

    @property
    def poisons(self) -> bool:
        """Whether any institution is poisoned."""
        return self.attack != "none" and self.attacked > 0


def share_of(share: float, institutions: int) -> int:
    """Number of institutions of a share, rounded up."""
    return ceil(round(share * institutions, ROUNDING))
