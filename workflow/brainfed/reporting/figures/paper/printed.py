"""Accuracies that a paper prints, as its figures mark them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class PrintedAccuracy:
    """A paper's accuracy of one variant.

    Attributes:
        value: the accuracy.
        source: `FedNI in the paper, Table V`, for the method of a paper as it is; empty for any other variant.
    """

    value: float
    source: str = ""


Printed = Mapping[str, PrintedAccuracy]
"""Variant -> what a paper prints; a variant without a printed number is absent."""
NOTHING_PRINTED: Printed = MappingProxyType({})
