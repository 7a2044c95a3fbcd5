"""What FedSage+ brings to the report: its citation. Its printed scores are those of FedNI's tables."""

from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.papers.paper import Cited, Paper

FEDSAGE = Citation(
    "Zhang K, Yang C, Li X, Sun L, Yiu SM (2021). Subgraph federated learning with missing neighbor generation. "
    "Advances in Neural Information Processing Systems 34, 6671\u20136682."
)

PAPER = Paper(name="fedsage", cites=(Cited((FEDSAGE,), frozenset({"fedsage-plus"})),))
