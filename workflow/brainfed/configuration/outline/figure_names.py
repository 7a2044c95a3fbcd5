"""Names of the figures of a cohort, of its graphs, of an experiment, and of the paper."""

COHORT_FIGURES = ("flow", "sites", "ages", "series", "motion", "quality")
MEASURED_COHORT_FIGURES = ("flow", "sites", "ages")
"""Figures of a cohort without scans: FreeSurfer's measures have no time points."""

CONNECTIVITY_FIGURES = ("means", "effects", "strongest")
MEASURE_FIGURES = ("measures",)
GRAPH_COHORT_FIGURES = ("sizes",)
"""Figures of a cohort of graphs, which have no age, no sex and no scan."""
GRAPH_FIGURES = ("graph", "homophily", "degrees")
EXPERIMENT_FIGURES = (
    "headline", "forest", "differences", "roc", "calibration", "confusion", "operating", "subgroups", "traffic", "gain",
    "learning",
)  # fmt: skip
LEAKAGE = "leakage"
"""Figure of every experiment: score, leakage and traffic."""
PATTERNS = "patterns"
"""Figure of an experiment with a linear model that leaves patterns behind."""
CLUSTERS = "clusters"
"""Figure of an experiment with a variant whose server parts the institutions into clusters."""
PAPER_FIGURES = {
    "bars": "scores side by side",
    "line": "scores against a setting",
    "surface": "scores against two settings",
    "rounds": "loss and accuracy by round",
    "distribution": "real and generated features",
    "clients": "scores against the number of institutions",
    "cost": "what training takes",
    "fidelity": "generated and true neighbours",
    "dose": "scores against the dose of a simulation",
    "readings": "readings of the paper",
}


def figures_of(kind: str, graphs: bool) -> list[str]:
    """The figures of a cohort with this kind of features; `graphs`: whether its population graphs are drawn."""
    if kind == "graphs":
        return [*GRAPH_COHORT_FIGURES]
    scanned = kind == "connectivity"
    return [
        *(COHORT_FIGURES if scanned else MEASURED_COHORT_FIGURES),
        *(CONNECTIVITY_FIGURES if scanned else MEASURE_FIGURES),
        *(GRAPH_FIGURES if graphs else ()),
    ]
