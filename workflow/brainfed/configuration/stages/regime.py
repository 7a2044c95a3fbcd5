"""Conditions under which two variants are comparable: the tests of subjects, and the visible data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Regime:
    """Split, protocol and labels of an evaluation.

    `unseen`: whether tested institutions take no part in training (leave-one-site-out). `partial`: whether the split
    leaves subjects out (`split.share`, `split.held_back`).
    """

    name: str
    split: str
    protocol: str
    labels: str
    unseen: bool
    partial: bool = False

    @property
    def generates(self) -> bool:
        """Whether a generator may be trained: False if an unseen institution's features would train it."""
        return not self.unseen or self.protocol == "inductive"
