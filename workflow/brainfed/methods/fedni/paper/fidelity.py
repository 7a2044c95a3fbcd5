"""Generated neighbours against the true ones that the cut removed, mean over repeats, with baselines.

`inpainting.fidelity.comparison` defines the numbers. The true neighbours are known after a cut alone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import ShownVariant

NORMAL_95 = 1.96
COSINE_ROWS = {
    "generated": "generated nodes",
    "mean_neighbour": "baseline: mean of the visible neighbours",
    "institution_mean": "baseline: mean of the institution",
    "parent": "baseline: the subject itself",
}
AGREEMENT_ROWS = {"generated": "generated nodes", "parent": "baseline: the subject itself", "chance": "chance"}
EDGE_ROWS = {
    "generated": "generated nodes",
    "visible_neighbours": "baseline: the visible neighbours",
    "random": "baseline: drawn at random",
}


@dataclass(frozen=True)
class Measured:
    """A mean over parents and repeats; `reach` is half its 95 % interval from the standard error over parents."""

    mean: float
    reach: float

    @property
    def known(self) -> bool:
        """Whether it is defined."""
        return bool(np.isfinite(self.mean))


@dataclass(frozen=True)
class CalibrationPoint:
    """Subjects with about the same predicted number of missing neighbours."""

    predicted: float
    true: float
    reach: float


@dataclass(frozen=True)
class ShownFidelity:
    """One variant's fidelity.

    Attributes:
        variant: whose.
        repeats: number of repeats of the means.
        calibration: calibration of the first repeat.
        predicted, true, generated: mean number of missing neighbours a subject: predicted, true, and after the cap.
        ratio_predicted, ratio_generated: sum of predicted (generated) over the sum of true numbers.
        correlation: Spearman's correlation of predicted with true numbers.
        degree_correlation: the same for the number of visible neighbours, a baseline.
        cosine, centred: row of `COSINE_ROWS` -> mean cosine with all true missing neighbours.
        parents: subjects with a generated neighbour, minimum over repeats.
        gain: generated minus the mean of the visible neighbours, centred, paired by parent.
        sex, age: row of `AGREEMENT_ROWS` -> share that agrees.
        edges: row of `EDGE_ROWS` -> F1.
    """

    variant: ShownVariant
    repeats: int
    calibration: tuple[CalibrationPoint, ...]
    predicted: float
    true: float
    generated: float
    ratio_predicted: float
    ratio_generated: float
    correlation: float
    degree_correlation: float
    cosine: dict[str, Measured]
    centred: dict[str, Measured]
    parents: int
    gain: Measured
    sex: dict[str, Measured]
    age: dict[str, Measured]
    edges: dict[str, float]


def read_fidelity(variants: Sequence[ShownVariant]) -> list[ShownFidelity]:
    """The fidelity of every variant that has one."""
    return [_read(variant) for variant in variants if variant.fidelity]


@dataclass(frozen=True)
class FidelityRow:
    """One measure of one variant: generated nodes and baselines.

    Attributes:
        measure: name of the measure; higher is better.
        variant: the variant with the generated nodes.
        generated: value of the generated nodes.
        baselines: name -> value.
    """

    measure: str
    variant: ShownVariant
    generated: float
    baselines: dict[str, float]

    @property
    def verdict(self) -> str:
        """The strongest baseline with a mean as good or better, if any; a dash without a comparison."""
        if not np.isfinite(self.generated) or not any(np.isfinite(value) for value in self.baselines.values()):
            return "\u2013"
        above = {name: value for name, value in self.baselines.items() if value >= self.generated}
        if not above:
            return "above every baseline"
        return f"no better than: {max(above, key=lambda name: above[name])}"


def fidelity_rows(found: Sequence[ShownFidelity]) -> list[FidelityRow]:
    """Every measure, inside it every variant."""
    rows = []
    for measure, titles, reads in (
        ("features: cosine", COSINE_ROWS, "cosine"),
        ("features: centred cosine", COSINE_ROWS, "centred"),
        ("sex that agrees (share)", AGREEMENT_ROWS, "sex"),
        ("age that agrees (share)", AGREEMENT_ROWS, "age"),
    ):
        for one in found:
            values = {row: measured.mean for row, measured in getattr(one, reads).items()}
            rows.append(_row(measure, one.variant, titles, values))
    counted = [
        FidelityRow(
            "number missing: rank correlation", one.variant, one.correlation,
            {"number of visible neighbours": one.degree_correlation},
        )
        for one in found
    ]  # fmt: skip
    return [*counted, *rows, *(_row("recovered edges: F1", one.variant, EDGE_ROWS, one.edges) for one in found)]


def count_sentence(found: ShownFidelity) -> str:
    """The number of missing neighbours, and the predicted and generated share."""
    return (
        f"{found.variant.title}: of {rounded(found.true, 2)} missing neighbours a subject "
        f"{rounded(found.predicted, 2)} are predicted (ratio {rounded(found.ratio_predicted, 2)}) and "
        f"{rounded(found.generated, 2)} generated, after rounding and cap "
        f"(ratio {rounded(found.ratio_generated, 2)})."
    )


def _row(measure: str, variant: ShownVariant, titles: dict[str, str], values: dict[str, float]) -> FidelityRow:
    baselines = {
        titles[row].removeprefix("baseline: "): value
        for row, value in values.items()
        if row != "generated" and np.isfinite(value)
    }
    return FidelityRow(measure, variant, values["generated"], baselines)


def _read(variant: ShownVariant) -> ShownFidelity:
    found = [json.loads(Path(path).read_text(encoding="utf-8")) for path in variant.fidelity]
    features = {
        name: {row: _measured([_cosine(repeat["feature"][name], row) for repeat in found]) for row in COSINE_ROWS}
        for name in ("cosine", "centred")
    }
    agreement = {
        name: {row: _measured([repeat["phenotype"][name][row] for repeat in found]) for row in AGREEMENT_ROWS}
        for name in ("sex", "age")
    }
    gains = [repeat["feature"]["centred"]["gains"]["mean_neighbour"]["to_all"] for repeat in found]
    counts = [repeat["count"] for repeat in found]
    return ShownFidelity(
        variant=variant,
        repeats=len(found),
        calibration=tuple(
            CalibrationPoint(float(point["predicted"]), float(point["true"]), NORMAL_95 * _number(point["error"]))
            for point in counts[0]["calibration"]
        ),
        predicted=_mean([count["predicted_mean"] for count in counts]),
        true=_mean([count["true_mean"] for count in counts]),
        generated=_mean([count["generated_mean"] for count in counts]),
        ratio_predicted=_mean([count["ratio_predicted"] for count in counts]),
        ratio_generated=_mean([count["ratio_generated"] for count in counts]),
        correlation=_mean([count["predicted"]["spearman"] for count in counts]),
        degree_correlation=_mean([count["visible_degree"]["spearman"] for count in counts]),
        cosine=features["cosine"],
        centred=features["centred"],
        parents=min(repeat["parents"] for repeat in found),
        gain=_measured(gains),
        sex=agreement["sex"],
        age=agreement["age"],
        edges={row: _mean([repeat["edges"][row]["f1"] for repeat in found]) for row in EDGE_ROWS},
    )


def _cosine(measure: dict[str, Any], row: str) -> dict[str, Any]:
    score = measure["generated"] if row == "generated" else measure["baselines"][row]
    return dict(score["to_all"])


def _measured(estimates: Sequence[dict[str, Any]]) -> Measured:
    """Mean over repeats; its error is the typical error of a repeat, since repeats share their subjects."""
    errors = [_number(estimate["error"]) for estimate in estimates]
    return Measured(_mean([estimate["mean"] for estimate in estimates]), NORMAL_95 * _mean(errors))


def _mean(values: Sequence[float | None]) -> float:
    """Mean of the defined values; NaN if there is none."""
    known = [number for number in map(_number, values) if np.isfinite(number)]
    return float(np.mean(known)) if known else float("nan")


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
