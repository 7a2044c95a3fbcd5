"""What families bring to the page of the report. A new one is one `Paper` in its folder, and one line below."""

from brainfed.methods.fedni.paper.paper import PAPER as FEDNI
from brainfed.methods.fedsage.paper import PAPER as FEDSAGE
from brainfed.methods.fglbc.paper.paper import PAPER as FGLBC
from brainfed.methods.gahfl.paper.paper import PAPER as GAHFL
from brainfed.methods.gcfl.paper.paper import PAPER as GCFL
from brainfed.reporting.papers.paper import Paper

PAPERS: tuple[Paper, ...] = (FEDNI, FEDSAGE, GCFL, FGLBC, GAHFL)
"""In the order of the page at each place, and of the list of citations."""
