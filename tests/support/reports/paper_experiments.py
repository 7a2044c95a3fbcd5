"""Made-up experiments that repeat a paper's figure, one for each kind of figure, and their charts."""

from brainfed.papers import FIGURES, PRINTINGS
from brainfed.reporting import ExperimentOutline, PageTests, read_scored
from brainfed.reporting.charts import Chart
from brainfed.reporting.charts import _of_papers as of_papers
from support.reports.report_experiments import experiment, some_readings, variant_outline, write_fidelity

KS = (3, 5, 10, 40)
WEIGHTS = (0.01, 1.0, 5.0)


def bars(folder):
    off = {"inpainting": {"discriminator": False}}
    rows = [
        (variant_outline(folder, "fedni", "fedni"), 0.66, 0.70),
        (variant_outline(folder, "fedni-no-edge", "fedni", fusing={"edges": "binary"}), 0.61, 0.70),
        (variant_outline(folder, "fedni-no-discriminator", "fedni", **off), 0.66, 0.69),
        (variant_outline(folder, "fedgcn", "fedgcn"), 0.655, 0.69),
    ]
    return experiment(folder, "bars", rows, name="fig2", paper="fig2")


def line(folder):
    rows = [
        (variant_outline(folder, f"{method}-k-k{k}", method, graph={"k": k}), 0.64 + shift + bump, 0.68 + shift + bump)
        for method, shift in (("fedni", 0.01), ("fedgcn", 0.0))
        for k, bump in zip(KS, (-0.05, 0.0, 0.01, 0.02), strict=True)
    ]
    rows.append((variant_outline(folder, "ridge-central", "ridge"), 0.68, 0.74))
    return experiment(folder, "line", rows, name="fig8", axes=["graph.k"], reference="fedni-k-k10")


def plane(folder):
    rows = [
        (
            variant_outline(folder, f"fedni-weights-alpha{a}-beta{b}", "fedni", inpainting={"alpha": a, "beta": b}),
            0.60 + 0.01 * row + 0.02 * column,
            0.7,
        )
        for row, a in enumerate(WEIGHTS)
        for column, b in enumerate(WEIGHTS)
    ]
    rows.append((variant_outline(folder, "fedsage-plus", "fedsage-plus"), 0.615, 0.66))
    axes = ["inpainting.alpha", "inpainting.beta"]
    return experiment(folder, "surface", rows, name="fig6", axes=axes, reference="fedsage-plus")


def rounds(folder):
    rows = [
        (
            variant_outline(folder, f"fedni-local-epochs{e}", "fedni", settings={"rounds": 30, "local_epochs": e}),
            0.65,
            0.7,
        )
        for e in (1, 5, 20)
    ]
    return experiment(folder, "rounds", rows, name="fig9", axes=["local_epochs"])


def distribution(folder):
    off = {"inpainting": {"discriminator": False}, "spread": 0.1}
    rows = [
        (variant_outline(folder, "fedni", "fedni", spread=0.5), 0.66, 0.7),
        (variant_outline(folder, "fedni-no-discriminator", "fedni", **off), 0.66, 0.7),
    ]
    return experiment(folder, "distribution", rows, name="fig5")


def clients(folder):
    members = [
        experiment(
            folder, "clients",
            [(variant_outline(folder, "fedni", "fedni"), 0.6 + 0.01 * count, 0.62 + 0.01 * count),
             (variant_outline(folder, "fedgcn", "fedgcn"), 0.6, 0.62)],
            name=f"fig7-count{count}", count=count,
        ) | {"group": "fig7"}
        for count in (2, 6, 10)
    ]  # fmt: skip
    return members[0] | {"name": "fig7", "members": members}


def cost(folder):
    rows = [(variant_outline(folder, name, name), 0.66, 0.7) for name in ("fedgcn", "fedsage-plus", "fedni")]
    return experiment(folder, "cost", rows, name="table6")


def fidelity(folder):
    rows = []
    for name, generated in (("fedni-cut", 0.12), ("fedni-cut-no-discriminator", 0.25)):
        outline = variant_outline(folder, name, "fedni", graph={"scope": "global_cut"})
        outline["fidelity"] = [write_fidelity(folder / f"{name}-{repeat}.json", generated) for repeat in range(2)]
        rows.append((outline, 0.66, 0.7))
    return experiment(folder, "fidelity", rows, name="fidelity")


DOSES = {0.0: (0.55, 0.55, 0.55), 0.5: (0.60, 0.70, 0.62), 1.0: (0.70, 0.90, 0.75)}
"""Dose -> accuracy on the cut graph, on pooled data, and with generated nodes."""


def dose(folder):
    members = []
    for value, (cut, pooled, generated) in DOSES.items():
        name = f"dose-{100 * value:.0f}"
        own = folder / name
        rows = [
            (variant_outline(own, "localgcn", "localgcn"), cut - 0.02, 0.6),
            (variant_outline(own, "centralgcn", "centralgcn"), pooled, 0.7),
            (variant_outline(own, "fedgcn", "fedgcn"), cut, 0.6),
            (variant_outline(own, "fedni", "fedni"), generated, 0.6),
            (variant_outline(own, "fedni-mean-nodes", "fedni", fusing={"nodes": "mean"}), cut, 0.6),
            (variant_outline(own, "fedni-four-nodes", "fedni", fusing={"cap": 4}), generated, 0.6),
            (variant_outline(own, "fedni-four-true", "fedni", fusing={"cap": 4, "nodes": "true"}), pooled, 0.7),
            (variant_outline(own, "fedsage-plus", "fedsage-plus"), cut, 0.6),
        ]
        axes = ["simulate.group_agreement"]
        outline = experiment(own, "dose", rows, name="dose", axes=axes, reference="fedgcn")
        members.append(outline | {"cohort": name, "simulate": {"group_agreement": value}})
    return members[0] | {"members": members[::-1]}


def readings(folder):
    return experiment(folder, "readings", some_readings(folder), name="readings", reference="fedgcn")


EXPERIMENTS = {"bars": bars, "line": line, "surface": plane, "rounds": rounds, "distribution": distribution,
               "clients": clients, "cost": cost, "fidelity": fidelity, "dose": dose, "readings": readings}  # fmt: skip


def chart_of(outline: ExperimentOutline) -> Chart:
    """The chart of an experiment, with the kinds and printed numbers of all families."""
    return of_papers.chart_of(outline.figure, outline, FIGURES, PRINTINGS)


def page_tests(outline: ExperimentOutline) -> PageTests:
    """Every comparison of an experiment's page."""
    return PageTests(read_scored(outline), outline.variants, outline.reference)


def drawn_words(outline: ExperimentOutline) -> str:
    """The title of a chart."""
    return " ".join(chart_of(outline).to_dict()["title"]["text"])


def diamonds(outline: ExperimentOutline) -> int:
    """Number of printed numbers in a chart: marks beside ours in rows, and marks of their own in panels of lines."""
    specification = chart_of(outline).to_dict()
    rows = [row for table in specification["datasets"].values() for row in table]
    alone = str(specification).count("'filled': False, 'opacity': 1, 'shape': 'diamond'")
    beside = sum(row.get("beside") is not None for row in rows)
    return beside or alone
