"""What GCFL brings to the report: gains of institutions by two scorings, and the numbers of its Tables 3 and 4."""

from jinja2 import PackageLoader

from brainfed.methods.gcfl.paper.gains import read_gains
from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.papers.paper import Cited, Paper

GCFL = Citation(
    "Xie H, Ma J, Xiong L, Yang C (2021). Federated graph classification over non-IID graphs. Advances in Neural "
    "Information Processing Systems 34, 18839\u201318852."
)


def _scored_twice(known: Known) -> bool:
    return "clients" in known.outline.tables


PAPER = Paper(
    name="gcfl",
    templates=PackageLoader("brainfed.methods.gcfl.paper"),
    panels=(
        Panel("gains", Place.AFTER_SCORES, read_gains, "gcfl/gains.html.j2"),
        Panel("two-scorings", Place.PROVENANCE, _scored_twice, "gcfl/scoring.html.j2"),
    ),
    cites=(Cited((GCFL,), frozenset({"gcfl", "fedavg-gin", "selftrain", "central-gin"})),),
)
