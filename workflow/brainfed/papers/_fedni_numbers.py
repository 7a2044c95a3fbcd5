"""Numbers that FedNI's paper prints, found for a variant by its settings, and costs of phases beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brainfed.reporting import ExperimentOutline, ShownVariant, changed_settings, short
from brainfed.reporting.charts import PrintedAccuracy
from brainfed.runtime import read_arrays, read_json, read_table

# Numbers printed in the papers, for comparison with ours (FedNI Sec. IV, Tables V and VI, Fig. 2 to 9).

PAPER_METRICS = ("accuracy", "auc", "precision", "recall", "f1")


@dataclass(frozen=True)
class PaperColumn:
    """One of our metrics and the printed metric of the same column; empty without one."""

    ours: str
    paper: str = ""


PAPER_COLUMNS = (
    PaperColumn("accuracy", "accuracy"),
    PaperColumn("balanced_accuracy", "auc"),
    PaperColumn("auc"),
    PaperColumn("precision", "precision"),
    PaperColumn("recall", "recall"),
    PaperColumn("f1", "f1"),
)
"""The printed AUC is probably a balanced accuracy (`hard_labels`), so it stands beside ours."""
FEDNI_SOURCE = (
    "Peng et al., FedNI, IEEE Transactions on Medical Imaging 2023, Table V: mean (standard deviation), "
    "five institutions at random, 5-fold cross-validation, five repeats"
)
FEDNI_COHORTS: Mapping[str, str] = {
    "abide": "ABIDE I and II, 485 patients and 544 controls",
    "adni": "ADNI, 375 patients with Alzheimer's disease and 536 with mild cognitive impairment",
}

FEDNI_TABLE_V: Mapping[str, Mapping[str, tuple[tuple[float, float], ...]]] = {
    "abide": {
        "localgcn": ((0.600, 0.012), (0.598, 0.011), (0.580, 0.012), (0.559, 0.017), (0.560, 0.012)),
        "centralgcn": ((0.655, 0.008), (0.654, 0.008), (0.635, 0.010), (0.633, 0.015), (0.633, 0.011)),
        "fedmlp": ((0.630, 0.011), (0.627, 0.011), (0.618, 0.017), (0.573, 0.029), (0.591, 0.015)),
        "fedgcn": ((0.644, 0.009), (0.643, 0.009), (0.625, 0.011), (0.616, 0.022), (0.613, 0.012)),
        "fedsage-plus": ((0.658, 0.006), (0.655, 0.008), (0.641, 0.013), (0.627, 0.017), (0.626, 0.009)),
        "fedni": ((0.667, 0.006), (0.663, 0.007), (0.647, 0.009), (0.640, 0.014), (0.637, 0.007)),
    },
    "adni": {
        "localgcn": ((0.703, 0.016), (0.695, 0.018), (0.666, 0.022), (0.637, 0.037), (0.643, 0.028)),
        "centralgcn": ((0.757, 0.007), (0.750, 0.006), (0.734, 0.013), (0.691, 0.014), (0.710, 0.008)),
        "fedmlp": ((0.731, 0.026), (0.721, 0.030), (0.625, 0.081), (0.631, 0.077), (0.625, 0.079)),
        "fedgcn": ((0.742, 0.007), (0.735, 0.009), (0.704, 0.010), (0.693, 0.014), (0.692, 0.009)),
        "fedsage-plus": ((0.751, 0.008), (0.744, 0.009), (0.722, 0.008), (0.699, 0.015), (0.700, 0.010)),
        "fedni": ((0.758, 0.007), (0.754, 0.007), (0.725, 0.008), (0.721, 0.017), (0.717, 0.011)),
    },
}
"""Cohort -> method -> (mean, standard deviation) of `PAPER_METRICS`."""


@dataclass(frozen=True)
class PrintedRow:
    """One bar group of a figure: its name in the paper, its changes to FedNI, and (accuracy, AUC) by cohort."""

    label: str
    abide: tuple[float, float]
    adni: tuple[float, float]
    differs: Mapping[str, str | bool] = field(default_factory=dict)

    def value(self, cohort: str, metric: str) -> float:
        """The printed accuracy or AUC."""
        return (self.adni if cohort == "adni" else self.abide)[("accuracy", "auc").index(metric)]


FEDNI_FULL = PrintedRow("FedNI", (0.667, 0.663), (0.758, 0.754))
FEDNI_FIGURES: Mapping[str, tuple[PrintedRow, ...]] = {
    "fig2": (
        PrintedRow("w/o BFS", (0.658, 0.655), (0.752, 0.744), {"inpainting.masking": "random"}),
        PrintedRow("w/o Edge", (0.650, 0.646), (0.750, 0.745), {"fusing.edges": "binary"}),
        PrintedRow("w/o Discriminator", (0.660, 0.657), (0.753, 0.749), {"inpainting.discriminator": False}),
    ),
    "fig3": (
        PrintedRow("NoFL-G-D", (0.651, 0.645), (0.753, 0.747), {"inpainting.federated": "none"}),
        PrintedRow("FL-D", (0.655, 0.653), (0.752, 0.747), {"inpainting.federated": "discriminator"}),
        PrintedRow("FL-G-D", (0.665, 0.661), (0.756, 0.753), {"inpainting.federated": "both"}),
    ),
    "fig4": (PrintedRow("random inpainting", (0.649, 0.647), (0.744, 0.738), {"fusing.nodes": "random"}),),
}
"""Figures with legible numbers; FedNI itself, `FEDNI_FULL`, is in each."""

FEDNI_TABLE_VI: Mapping[str, Mapping[str, float]] = {
    "inpainting": {"operations": 0.98e9, "parameters": 3.1e6, "seconds": 66.0},
    "classifier": {"operations": 0.26e9, "parameters": 0.47e6, "seconds": 11.0},
}
"""Phase -> floating-point operations, parameters, seconds of training; 7,381 features, a server with 8 GeForce 3090."""

FEDNI_SAYS: Mapping[str, str] = {
    "fig2": "FedNI loses accuracy without breadth-first masking, without predicted edges and without discriminator",
    "fig3": "averaging the generator is best; averaging the discriminator too makes no significant difference",
    "fig4": "FedNI beats inpainting at random by .018 in accuracy on ABIDE",
    "fig5": "with its discriminator, generated features are distributed more like the real ones",
    "fig6": "accuracy hardly depends on \u03b1 and \u03b2 and is always above the best of FedSage+ (.658 on ABIDE)",
    "fig7": "accuracy rises with the number of institutions, from 2 to 10, each with a tenth of the subjects",
    "fig8": "accuracy rises from k = 3 to k = 10 and falls slightly from k = 15 to k = 40",
    "fig9": "the loss falls with the rounds for every E; a large E needs fewer rounds and ends at a lower accuracy",
    "table6": "inpainting takes 66 s and the classifier 11 s on a server with 8 NVIDIA GeForce 3090 GPUs",
}
"""The paper's conclusions from its figures; the curves of Fig. 6 to 9 have no printed numbers."""


class PrintedCohort(NamedTuple):
    """The paper's cohort whose numbers stand beside ours, and whether ours is of the same collection."""

    column: str
    comparable: bool

    @property
    def cohort(self) -> str:
        """It in words."""
        return FEDNI_COHORTS[self.column]


def paper_cohort(cohort: str) -> PrintedCohort:
    """The paper's cohort for one of this name."""
    own = next((name for name in FEDNI_COHORTS if cohort.lower().startswith(name)), None)
    return PrintedCohort(own or "abide", own is not None)


def hard_labels(cohort: str) -> str:
    """Reason to compare the printed AUC with balanced accuracy: it is close to the printed accuracy in every row."""
    rows = FEDNI_TABLE_V[cohort].values()
    accuracy, auc = PAPER_METRICS.index("accuracy"), PAPER_METRICS.index("auc")
    apart = max(abs(row[accuracy][0] - row[auc][0]) for row in rows)
    return (
        f"The paper\u2019s AUC equals its accuracy within {short(apart)} in every row. It is therefore probably "
        "computed from predicted classes and not from scores; such an AUC is the balanced accuracy. It stands beside "
        "our balanced accuracy, and our AUC, computed from scores, has a column of its own."
    )


# The paper's printed number for a variant, found by its resolved settings, not by its name.

TABLE_V = "FedNI in the paper, Table V"


def as_in_the_paper(outline: ExperimentOutline) -> bool:
    """Whether the evaluation is FedNI's: true diagnoses, all subjects in random institutions, folds, transductive."""
    split = outline.split
    drawn = split["validation"] == "folds" and split["institutions"] == "random"
    return drawn and not split.get("share") and outline.protocol == "transductive" and outline.labels != "permuted"


def printed_value(variant: ShownVariant, cohort: str, metric: str) -> float | None:
    """The paper's accuracy or AUC of this variant; None without one.

    Args:
        variant: FedNI as shipped or with one part changed, or another method of Table V as shipped.
        cohort: `abide` or `adni`.
        metric: `accuracy` or `auc`.
    """
    if variant.method in FEDNI_TABLE_V[cohort] and not changed_settings(variant):
        return FEDNI_TABLE_V[cohort][variant.method][PAPER_METRICS.index(metric)][0]
    row = printed_row(variant)
    return row.value(cohort, metric) if row else None


def printed_accuracies(outline: ExperimentOutline) -> dict[str, PrintedAccuracy]:
    """Variant -> its printed accuracy, for an experiment that is evaluated as in the paper."""
    if not as_in_the_paper(outline):
        return {}
    cohort = paper_cohort(outline.cohort).column
    return {
        variant.name: PrintedAccuracy(value, TABLE_V if printed_row(variant) is FEDNI_FULL else "")
        for variant in outline.variants
        if (value := printed_value(variant, cohort, "accuracy")) is not None
    }


def printed_row(variant: ShownVariant) -> PrintedRow | None:
    """The bar of this variant in FedNI's ablation, or of FedNI itself; None without one."""
    if variant.method != "fedni":
        return None
    changed = changed_settings(variant)
    rows = [FEDNI_FULL, *(row for rows in FEDNI_FIGURES.values() for row in rows)]
    return next((row for row in rows if dict(row.differs) == changed), None)


# Costs of the two phases of an inpainting method in one run, for comparison with FedNI Table VI.


@dataclass(frozen=True)
class PhaseCost:
    """One phase of one run.

    Attributes:
        phase: `inpainting` or `classifier`.
        operations: multiplications and additions of one pass of the generator, or classifier, over one institution's
            graph: two a weight and node.
        parameters: number that one institution trains: generator and discriminator, or the classifier.
        seconds: seconds of training; for a classifier a share of the job that trains all folds in parallel.
        devices: devices of the training.
        shared: whether all folds of a repeat share this training.
    """

    phase: str
    operations: float
    parameters: float
    seconds: float
    devices: tuple[str, ...]
    shared: bool = False


def phase_costs(outline: ExperimentOutline, variant: ShownVariant) -> tuple[PhaseCost, PhaseCost]:
    """Inpainting and classifier of a variant that generates nodes, means over repeats."""
    split = read_table(outline.splits[0], ["subject", "institution", "fold"])
    institutions, folds = split["institution"].nunique(), split.loc[split["fold"] >= 0, "fold"].nunique()
    generated = len(read_arrays(variant.fused[0], ["parent"]).arrays["parent"])
    subjects, trained = len(split) / institutions, variant.inpainting["timings"]
    shared, nodes = len(trained) == outline.repeats, subjects + generated / institutions
    return (
        _phase("inpainting", variant.inpainting["costs"], trained, subjects, len(trained), shared=shared),
        _phase("classifier", variant.costs, variant.timings, nodes, outline.repeats * folds),
    )


def _phase(
    phase: str, costs: Sequence[str], timings: Sequence[str], nodes: float, runs: int, *, shared: bool = False
) -> PhaseCost:
    counts = read_json(costs[0])["counts"]
    parameters = float(counts["parameters"])
    taken = [read_json(path) for path in timings]
    return PhaseCost(
        phase,
        2 * parameters * nodes,
        parameters + float(counts.get("discriminator_parameters", 0)),
        sum(float(timing["seconds"]) for timing in taken) / runs,
        tuple(sorted({str(timing["device"]) for timing in taken})),
        shared,
    )
