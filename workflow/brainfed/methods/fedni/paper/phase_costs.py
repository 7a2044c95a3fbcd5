"""Costs of the two phases of an inpainting method in one run, for comparison with FedNI Table VI."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_arrays, read_table


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
    subjects = len(split) / institutions
    trained = variant.inpainting["timings"]
    first = _phase("inpainting", variant.inpainting["costs"], trained, subjects, len(trained))
    first = replace(first, shared=len(trained) == outline.repeats)
    nodes = subjects + generated / institutions
    return first, _phase("classifier", variant.costs, variant.timings, nodes, outline.repeats * folds)


def _phase(phase: str, costs: Sequence[str], timings: Sequence[str], nodes: float, runs: int) -> PhaseCost:
    counts = _read(costs[0])["counts"]
    parameters = float(counts["parameters"])
    taken = [_read(path) for path in timings]
    return PhaseCost(
        phase,
        2 * parameters * nodes,
        parameters + float(counts.get("discriminator_parameters", 0)),
        sum(float(timing["seconds"]) for timing in taken) / runs,
        tuple(sorted({str(timing["device"]) for timing in taken})),
    )


def _read(path: str) -> dict[str, Any]:
    return dict(json.loads(Path(path).read_text(encoding="utf-8")))
