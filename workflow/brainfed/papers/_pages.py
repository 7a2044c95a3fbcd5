"""What families add to the page of the report. A new one is one `Paper` in its module, and one line below."""

from brainfed.papers._fedni_tables import PAPER as FEDNI
from brainfed.papers._fglbc import PAPER as FGLBC
from brainfed.papers._gahfl import PAPER as GAHFL
from brainfed.papers._gcfl import PAPER as GCFL
from brainfed.reporting import Citation, Cited, Paper

_FEDSAGE_PLUS = Citation(
    "Zhang K, Yang C, Li X, Sun L, Yiu SM (2021). Subgraph federated learning with missing neighbor generation. "
    "Advances in Neural Information Processing Systems 34, 6671\u20136682."
)
FEDSAGE = Paper(name="fedsage", cites=(Cited((_FEDSAGE_PLUS,), frozenset({"fedsage-plus"})),))
"""A citation alone: the printed scores of FedSage+ are those of FedNI's tables."""

PAPERS: tuple[Paper, ...] = (FEDNI, FEDSAGE, GCFL, FGLBC, GAHFL)
"""In the order of the page at each place, and of the list of citations."""
