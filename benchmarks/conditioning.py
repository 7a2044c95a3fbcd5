"""Federated methods beside their counterparts, with and without a signal that all regions share.

    python benchmarks/conditioning.py --series ABIDE_FOLDER [--repeats 2] [--kinds plain common] [--variants NAME ...]

Reads `timeseries.npz` (an array (time, region) a subject) and `subjects.csv` (key, SITE_ID, AGE_AT_SCAN, SEX,
label_asd). Correlations of the series as they are (`plain`) and with an added signal (`common`, see
`common_signal.py`); five random institutions, five folds. Prints accuracy and AUC, means over folds and institutions.
`--spectrum` prints instead the largest eigenvalues of the design, and how far a step of Adam moves a score.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from common_signal import correlations, drawn, read_series
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from brainfed.evaluation import auc
from brainfed.methods import METHODS, SHIPPED_VARIANTS
from brainfed.runtime import restore
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, centred_subjects, training_moments

KINDS = ("plain", "common")
CENTRED = "-centred"
"""Of a variant with centred subjects."""
VARIANTS = (
    "ridge-federated", "ridge-central", "ridge-local",
    "logistic-federated", "logistic-central", "logistic-local", "logistic-fedavg",
    "fedmlp-centred", "centralmlp-centred", "localmlp-centred", "fedmlp", "centralmlp", "localmlp",
    "fedgcn-centred", "centralgcn-centred", "localgcn-centred", "fedgcn", "centralgcn", "localgcn", "fedgcn-skip",
)  # fmt: skip


def trained(variant: str, inputs: MethodInputs) -> Outcome:
    """One variant on one repeat."""
    shipped = variant.removesuffix(CENTRED)
    settings = dict(SHIPPED_VARIANTS[shipped]) | ({"centre": "subject"} if shipped != variant else {})
    method = METHODS[str(settings.pop("method"))]
    module, function = method.entry.split(":")
    outcome: Outcome = getattr(import_module(module), function)(
        inputs, restore(method.settings, settings), Run(progress=lambda *_, **__: None)
    )
    return outcome


def scored(inputs: MethodInputs, outcome: Outcome) -> tuple[float, float]:
    """Accuracy and AUC of class 1, means over folds and institutions."""
    truth, accuracies, areas = inputs.labels.max(axis=0), [], []
    for fold in range(inputs.folds):
        for code in range(len(inputs.institutions)):
            own = inputs.tested(fold) & (inputs.institution == code)
            accuracies.append(np.mean(outcome.scores[fold, own].argmax(axis=1) == truth[own]))
            areas.append(auc(truth[own], outcome.scores[fold, own, 1]))
    return float(np.mean(accuracies)), float(np.mean(areas))


def z_scored(inputs: MethodInputs, features: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n, d) training subjects of the first fold, z-scored in their institutions."""
    parts = []
    for code in range(len(inputs.institutions)):
        rows = inputs.training(0) & (inputs.institution == code)
        mean, deviation = training_moments(features, rows)
        parts.append((features[rows] - mean) / deviation)
    return np.concatenate(parts)


def print_spectrum(kind: str, inputs: MethodInputs) -> None:
    """Shares of the largest eigenvalues of Z Z', and by how much one step of Adam can move a score."""
    for name, features in (("as it is", inputs.features[0]), ("centred", centred_subjects(inputs.features[0]))):
        rows = z_scored(inputs, features)
        values = np.linalg.eigvalsh(rows @ rows.T)[::-1]
        shares = " ".join(f"{share:.3f}" for share in values[:4] / values.sum())
        together = np.abs(rows.sum(axis=1)).mean() * 1e-3
        print(f"| {kind} | {name} | {shares} | {np.median(values) / values.sum():.5f} | {together:.1f} |")


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=Path, required=True, help="folder of timeseries.npz and subjects.csv")
    parser.add_argument("--repeats", type=int, nargs="+", default=[0, 1], help="numbers; default: 0 1")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--spectrum", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    series, people = read_series(options.series)
    sites = dict(zip(people["subject"], people["site"], strict=True))
    made = {kind: correlations(series, sites if kind == "common" else None) for kind in options.kinds}
    if options.spectrum:
        print("| series | features | largest shares of the variance | median | logits that one step of Adam can move |")
        print("|---|---|---|---:|---:|")
        for kind, features in made.items():
            print_spectrum(kind, drawn(features, people, 0))
        return
    print("| series | variant | repeat | accuracy | AUC | seconds |\n|---|---|---:|---:|---:|---:|")
    with threadpool_limits(limits=options.threads):
        for variant in options.variants:
            for kind, features in made.items():
                for repeat in options.repeats:
                    inputs, start = drawn(features, people, repeat), time.process_time()
                    accuracy, area = scored(inputs, trained(variant, inputs))
                    spent = time.process_time() - start
                    print(f"| {kind} | {variant} | {repeat} | {accuracy:.3f} | {area:.3f} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
