"""What FedNI brings to the page: generated nodes, readings of the paper, and the numbers of its tables beside ours."""

from jinja2 import PackageLoader

from brainfed.methods.fedni.paper.panels import PANELS
from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.papers.paper import Cited, Paper

FEDNI = Citation(
    "Peng L, Wang N, Dvornek N, Zhu X, Li X (2023). FedNI: federated graph learning with network inpainting for "
    "population-based disease prediction. IEEE Transactions on Medical Imaging 42, 2032\u20132043.",
    "10.1109/TMI.2022.3188728",
)
MICROAGGREGATION = Citation(
    "Domingo-Ferrer J, Torra V (2005). Ordinal, continuous and heterogeneous k-anonymity through microaggregation. "
    "Data Mining and Knowledge Discovery 11, 195\u2013212.",
    "10.1007/s10618-005-0007-5",
)

PAPER = Paper(
    name="fedni",
    templates=PackageLoader("brainfed.methods.fedni.paper"),
    panels=PANELS,
    # The workflow grew from this paper: every report cites it.
    cites=(Cited((FEDNI,)), Cited((MICROAGGREGATION,), frozenset({"fedni-centroids"}))),
)
