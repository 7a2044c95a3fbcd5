"""What FGLBC brings to the report: scores at privacy budgets, its server's weights, and its printed accuracies."""

from jinja2 import PackageLoader

from brainfed.methods.fglbc.paper.budgets import read_budgets
from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.papers.paper import Cited, Paper

FGLBC = (
    Citation(
        "Chen C, Su S (2024). A federated graph learning framework for brain connectome. Proceedings of the Annual "
        "Meeting of the Cognitive Science Society 46."
    ),
    Citation(
        "Gadgil S, Zhao Q, Pfefferbaum A, Sullivan EV, Adeli E, Pohl KM (2020). Spatio-temporal graph convolution for "
        "resting-state fMRI analysis. Medical Image Computing and Computer Assisted Intervention, 528\u2013538.",
        "10.1007/978-3-030-59728-3_52",
    ),
)

PAPER = Paper(
    name="fglbc",
    templates=PackageLoader("brainfed.methods.fglbc.paper"),
    panels=(Panel("budgets", Place.AFTER_SCORES, read_budgets, "fglbc/budgets.html.j2"),),
    cites=(Cited(FGLBC, frozenset({"fglbc", "fedavg-stgcn", "fedgnn", "stgcn-local", "stgcn-central"})),),
)
