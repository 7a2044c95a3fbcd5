"""What GAHFL brings to the report: public subjects with and without institutions, and the numbers of its tables."""

from jinja2 import PackageLoader

from brainfed.methods.gahfl.paper.drops import printed_drops
from brainfed.methods.gahfl.paper.public_sets import public_sets
from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.papers.paper import Cited, Paper

GAHFL = Citation(
    "Hu Y, Liu R, Zhang J, Huang ZA, Song L, Tan KC (2024). Heterogeneous structured federated learning with graph "
    "convolutional aggregation for MRI-based mental disorder diagnosis. International Joint Conference on Neural "
    "Networks."
)
FEDGEMS = Citation(
    "Cheng S, Wu J, Xiao Y, Liu Y, Liu Y (2021). FedGEMS: federated learning of larger server models via selective "
    "knowledge fusion. arXiv 2110.11027."
)
FEDET = Citation(
    "Cho YJ, Manoel A, Joshi G, Sim R, Dimitriadis D (2022). Heterogeneous ensemble knowledge transfer for training "
    "large models in federated learning. International Joint Conference on Artificial Intelligence, 2881\u20132887.",
    "10.24963/ijcai.2022/399",
)

PAPER = Paper(
    name="gahfl",
    templates=PackageLoader("brainfed.methods.gahfl.paper"),
    panels=(
        Panel("printed-drops", Place.AFTER_SCORES, printed_drops, "gahfl/drops.html.j2"),
        Panel("public-sets", Place.AFTER_SCORES, public_sets, "gahfl/public-sets.html.j2"),
    ),
    cites=(
        Cited((GAHFL,), frozenset({"gahfl", "recurrent-local", "recurrent-central", "recurrent-public"})),
        Cited((FEDGEMS,), frozenset({"fedgems"})),
        Cited((FEDET,), frozenset({"fedet"})),
    ),
)
