"""How far number formats and seeds move the classifiers of Table V.

    python benchmarks/precision_difference.py [--device cuda] [--cpu] [--features 2000] [--threads 1]

Trains FedMLP and FedGCN on a made-up cohort whose patients differ from controls a little, in float32, in tf32 and
bfloat16, with features that differ by rounding (a factor 1 + 2^-22), and with another seed, and prints what each
changes of the float32 training's scores and metrics; `--cpu` also compares the device with this machine's processor, in
float32 and in float64.
"""

import argparse
from dataclasses import replace

import numpy as np
import torch
from made_up_cohort import MadeUpCohort
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from brainfed.methods import METHODS
from brainfed.runtime import Streams, resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs

EFFECT, SHARE = 0.15, 0.05
ROUNDED = np.float32(1 + 2**-22)


def with_patients(inputs: MethodInputs) -> tuple[MethodInputs, np.ndarray]:
    """The cohort with noise of its own in every subject, and a twentieth of the features shifted in patients."""
    random = np.random.default_rng(5)
    truth = random.integers(0, 2, len(inputs.subjects))
    rows = inputs.features[0] + random.normal(0, 0.2, inputs.features[0].shape).astype(np.float32)
    shifted = random.random(rows.shape[1]) < SHARE
    rows[np.ix_(truth == 1, shifted)] += EFFECT
    labels = np.where(inputs.labels >= 0, truth, -1)
    return replace(inputs, features=(rows,), labels=labels), truth


def metrics(scores: np.ndarray, inputs: MethodInputs, truth: np.ndarray) -> np.ndarray:
    """Accuracy, balanced accuracy and AUC, means over folds."""
    found = []
    for fold in range(inputs.folds):
        tested = inputs.tested(fold)
        said, true = scores[fold, tested], truth[tested]
        found.append(
            (accuracy_score(true, said > 0.5), balanced_accuracy_score(true, said > 0.5), roc_auc_score(true, said))
        )
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    inputs, truth = with_patients(MadeUpCohort(arguments.features).method_inputs())
    device = Run(device=arguments.device, progress=lambda *_, **__: None)
    other = replace(inputs, streams=Streams(1))
    changes = {"tf32": ("tf32", inputs, device), "bfloat16": ("bfloat16", inputs, device)}
    changes["rounding"] = ("float32", replace(inputs, features=(inputs.features[0] * ROUNDED,)), device)
    changes["another seed"] = ("float32", other, device)
    if arguments.cpu:
        changes["the processor"] = ("float32", inputs, replace(device, device="cpu"))
    print(f"{arguments.device}, d = {arguments.features}; differences from float32, whose own metrics come first")
    print(f"{'method':8} {'changed':14} {'score, largest':>15} {'accuracy':>9} {'balanced':>9} {'AUC':>8}")
    for name in ("fedmlp", "fedgcn"):
        method = METHODS[name]
        train, settings = resolve(method.entry), method.settings()
        exact = train(inputs, settings, device).scores[..., 1]
        plain = metrics(exact, inputs, truth)
        print(f"{name:8} {'(nothing)':14} {0:15.4f} {plain[0]:9.4f} {plain[1]:9.4f} {plain[2]:8.4f}")
        for change, (precision, given, run) in changes.items():
            scores = train(given, replace(settings, precision=precision), run).scores[..., 1]
            moved = metrics(scores, inputs, truth) - plain
            farthest = np.nanmax(np.abs(scores - exact))
            print(f"{name:8} {change:14} {farthest:15.4f} {moved[0]:9.4f} {moved[1]:9.4f} {moved[2]:8.4f}", flush=True)
        if arguments.cpu:
            exact, other = (
                train(inputs, settings, replace(device, device=where, precision="float64")).scores
                for where in (arguments.device, "cpu")
            )
            print(f"{name:8} {'the processor, float64':22} {np.nanmax(np.abs(exact - other)):7.0e}", flush=True)


if __name__ == "__main__":
    main()
