"""Numbers printed in the paper of GCFL, found by a cohort's name and a variant's settings (Xie et al. 2021)."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.variants import ShownVariant, changed_settings

GCFL_PAPER = "gcfl"
"""An experiment's `paper` that has these numbers beside it."""
GCFL_SOURCE = "Xie et al., Federated graph classification over non-IID graphs, NeurIPS 2021"
TABLES = {3: ("nci1", "proteins", "imdb-binary"), 4: ("molecules", "biochem", "mix")}
DIVIDED = {3: "consecutive", 4: "sites"}
"""Table -> `split.institutions`: runs of one data set, or an institution a data set."""


@dataclass(frozen=True)
class PrintedGain:
    """A method on a data set.

    Attributes:
        accuracy: mean over institutions.
        sd: printed beside it; by the authors' code the mean over institutions of an institution's sd over runs.
        min_gain: smallest gain of an institution over self-training; None for self-training.
        improved: number of institutions with a gain, by the authors' code of 0 or more; None for self-training.
    """

    accuracy: float
    sd: float
    min_gain: float | None = None
    improved: int | None = None


GCFL_NUMBERS: Mapping[str, Mapping[str, PrintedGain]] = {
    "nci1": {
        "self-train": PrintedGain(0.6468, 0.053),
        "fedavg": PrintedGain(0.6474, 0.076, -0.1333, 14),
        "fedprox": PrintedGain(0.6437, 0.072, -0.2400, 16),
        "gcfl": PrintedGain(0.7326, 0.052, -0.0462, 26),
        "gcfl+": PrintedGain(0.7422, 0.053, -0.1143, 28),
    },
    "proteins": {
        "self-train": PrintedGain(0.7213, 0.058),
        "fedavg": PrintedGain(0.7490, 0.034, -0.0615, 6),
        "fedprox": PrintedGain(0.7556, 0.036, -0.0923, 7),
        "gcfl": PrintedGain(0.7739, 0.043, -0.0545, 8),
        "gcfl+": PrintedGain(0.7776, 0.037, -0.0154, 9),
    },
    "imdb-binary": {
        "self-train": PrintedGain(0.7654, 0.057),
        "fedavg": PrintedGain(0.7596, 0.049, -0.0800, 5),
        "fedprox": PrintedGain(0.7746, 0.048, -0.0600, 6),
        "gcfl": PrintedGain(0.8256, 0.059, 0.0182, 10),
        "gcfl+": PrintedGain(0.8299, 0.052, 0.0167, 10),
    },
    "molecules": {
        "self-train": PrintedGain(0.7543, 0.017),
        "fedavg": PrintedGain(0.7524, 0.026, -0.0132, 3),
        "fedprox": PrintedGain(0.7668, 0.032, -0.0054, 5),
        "gcfl": PrintedGain(0.7661, 0.016, 0.0010, 7),
        "gcfl+": PrintedGain(0.7745, 0.030, 0.0010, 7),
    },
    "biochem": {
        "self-train": PrintedGain(0.7129, 0.016),
        "fedavg": PrintedGain(0.6944, 0.027, -0.1467, 4),
        "fedprox": PrintedGain(0.7053, 0.026, -0.1000, 5),
        "gcfl": PrintedGain(0.7172, 0.019, -0.0700, 7),
        "gcfl+": PrintedGain(0.7312, 0.031, -0.0300, 8),
    },
    "mix": {
        "self-train": PrintedGain(0.7001, 0.034),
        "fedavg": PrintedGain(0.6886, 0.023, -0.1233, 5),
        "fedprox": PrintedGain(0.6897, 0.026, -0.1367, 5),
        "gcfl": PrintedGain(0.7056, 0.019, -0.1400, 10),
        "gcfl+": PrintedGain(0.7121, 0.021, -0.0233, 10),
    },
}
"""Cohort -> method of Tables 3 and 4."""

INSTITUTIONS = {"nci1": 30, "proteins": 10, "imdb-binary": 10, "molecules": 7, "biochem": 10, "mix": 13}
THRESHOLDS: Mapping[str, tuple[float, float, int]] = {
    "nci1": (0.04, 0.08, 5),
    "proteins": (0.03, 0.06, 10),
    "imdb-binary": (0.025, 0.045, 5),
    "molecules": (0.07, 0.28, 5),
    "biochem": (0.07, 0.35, 5),
    "mix": (0.08, 0.40, 5),
}
"""Cohort -> eps1, eps2 and the rounds of GCFL+'s sequences."""


def printed_gains(outline: ExperimentOutline, cohort: str) -> dict[str, PrintedGain]:
    """Variant -> its printed numbers, for variants with the settings of a row of a cohort's table.

    Args:
        outline: an experiment; one with another evaluation than the paper's has no printed numbers.
        cohort: name of the cohort, in any case.
    """
    if outline.paper != GCFL_PAPER or not evaluated_as_gcfl(outline, cohort):
        return {}
    rows = GCFL_NUMBERS[cohort.lower()]
    found = {variant.name: printed_method(variant, cohort.lower()) for variant in outline.variants}
    return {name: rows[method] for name, method in found.items() if method in rows}


def evaluated_as_gcfl(outline: ExperimentOutline, cohort: str) -> bool:
    """Whether the evaluation is that of the cohort's table: true labels, one test set, the paper's institutions."""
    number = table_of(cohort)
    alike = number is not None and outline.split["institutions"] == DIVIDED[number]
    return alike and outline.split["validation"] == "holdout" and outline.labels != "permuted"


def table_of(cohort: str) -> int | None:
    """Number of the table that has this cohort; None without one."""
    return next((number for number, names in TABLES.items() if cohort.lower() in names), None)


def printed_method(variant: ShownVariant, cohort: str) -> str:
    """The paper's method with the settings of this variant, thresholds as for this cohort; empty: none.

    Settings of stages do not count: molecules have none, and the paper has no brains.
    """
    changed = {key: value for key, value in changed_settings(variant).items() if "." not in key}
    if variant.method == "selftrain":
        return "" if changed else "self-train"
    if variant.method == "fedavg-gin":
        return {(): "fedavg", (("proximal", 0.01),): "fedprox"}.get(tuple(changed.items()), "")
    if variant.method != "gcfl" or cohort not in THRESHOLDS:
        return ""
    if changed.keys() - {"similarity", "eps1", "eps2", "sequence"}:
        return ""
    *eps, sequence = THRESHOLDS[cohort]
    plus = variant.setting("similarity") == "gradient_norms"
    fits = [variant.setting("eps1"), variant.setting("eps2")] == eps
    return ("gcfl+" if plus else "gcfl") if fits and (not plus or variant.setting("sequence") == sequence) else ""


def gcfl_source(cohort: str, institutions: int) -> str:
    """Where a cohort's numbers are printed, and that the paper has other institutions, where it has."""
    count = INSTITUTIONS[cohort.lower()]
    other = "" if count == institutions else f" It has {count} institutions, we have {institutions}."
    return f"{GCFL_SOURCE}, Table {table_of(cohort)}.{other}"
