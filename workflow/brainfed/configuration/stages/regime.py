"""What makes two variants comparable: when subjects are tested, and what may be seen of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Regime:
    """Split, protocol and labels: one row of the evaluation's two axes.

    `unseen` says that whole institutions are tested which nothing was trained on (leave one site out).
    """

    name: str
    split: str
    protocol: str
    labels: str
    unseen: bool

    @property
    def generates(self) -> bool:
        """Whether a generator may be trained: not where an unseen institution's features would train it."""
        return not self.unseen or self.protocol == "inductive"
