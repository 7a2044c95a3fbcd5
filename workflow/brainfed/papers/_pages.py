"""What families add to the page of the report. A new one is one `Paper` in its module, and one line below."""

from brainfed.papers._fedni_tables import PAPER as FEDNI
from brainfed.papers._fglbc import PAPER as FGLBC
from brainfed.papers._gahfl import PAPER as GAHFL
from brainfed.papers._gcfl import PAPER as GCFL
from brainfed.reporting import Citation, Cited, Paper

# What FedSage+ brings to the report: its citation. Its printed scores are those of FedNI's tables.

FEDSAGE = Citation(
    "Zhang K, Yang C, Li X, Sun L, Yiu SM (2021). Subgraph federated learning with missing neighbor generation. "
    "Advances in Neural Information Processing Systems 34, 6671\u20136682."
)

PAPER = Paper(name="fedsage", cites=(Cited((FEDSAGE,), frozenset({"fedsage-plus"})),))


# What families bring to the page of the report. A new one is one `Paper` in its folder, and one line below.

PAPERS: tuple[Paper, ...] = (FEDNI, PAPER, GCFL, FGLBC, GAHFL)
"""In the order of the page at each place, and of the list of citations."""
