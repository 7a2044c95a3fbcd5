"""How many rounds and megabytes federated ridge needs to reach the scores of ridge on pooled data.

    python benchmarks/rounds_to_pooled.py --cohort results/abide --features tangent-67d49de4 [--split NAME] [--repeat 0]
        [--threads 1]

Reads features, a split and participants of a finished run. Prints, for numbers of directions, the largest difference of
a tested subject's score from the pooled solution, over all folds, the mean AUC, and the megabytes that crossed until
then in one fold, up and down, of all institutions. The search sends directions of all inner folds; the refinement sends
one a direction.
"""

import argparse
import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from brainfed.evaluation import auc
from brainfed.methods.fedtangent.declaration import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_ridge_federated
from brainfed.methods.linear.declaration import RidgeSettings
from brainfed.methods.linear.train import train_ridge
from brainfed.runtime import IntArray, Streams
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, assemble

SHOWN = (1, 2, 3, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100)


def mean_auc(inputs: MethodInputs, truth: IntArray, scores: NDArray[np.float64]) -> float:
    """Mean over folds of scores (F, n, 2)."""
    tested = [inputs.tested(fold) for fold in range(inputs.folds)]
    return float(np.mean([auc(truth[rows], scores[fold, rows, 1]) for fold, rows in enumerate(tested)]))


def megabytes(outcome: Outcome) -> list[float]:
    """Sent until each direction of the first fold; scaling and moments before the first."""
    by_name = {(str(row["name"]), str(row["direction"])): row for row in outcome.crossings}
    sizes = {name: [int(row["bytes"]) for key, row in by_name.items() if key[0] == name] for name, _ in by_name}
    rounds = {name: max(int(row["rounds"]) for key, row in by_name.items() if key[0] == name) for name, _ in by_name}
    each = [
        (sum(sizes[down]) + sum(sizes[up])) / rounds[up]
        for down, up in (("direction", "product"), ("last-direction", "last-product"))
        if up in rounds
        for _ in range(rounds[up])
    ]
    once = sum(sum(found) for name, found in sizes.items() if "direction" not in name and "product" not in name)
    return list((once + np.cumsum(each)) / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", type=Path, required=True, help="folder of results of a cohort")
    parser.add_argument("--features", required=True, help="name of label-free features shared by the folds")
    parser.add_argument("--split", default="", help="name of a split; by default the first")
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    split = options.split or sorted(path.name for path in (options.cohort / "splits").iterdir())[0]
    inputs, truth = assemble(
        split=options.cohort / "splits" / split / f"repeat-{options.repeat}.parquet",
        participants=options.cohort / "cohort" / "participants.parquet",
        features=[options.cohort / "features" / options.features / "all.safetensors"],
        graphs=[],
        labels="true",
        streams=Streams(0, options.repeat),
    )
    zscore, silent = options.features.startswith("pearson"), Run(progress=lambda *_, **__: None)
    with threadpool_limits(options.threads):
        found = train_ridge_federated(inputs, FederatedRidgeSettings(zscore=zscore), silent)
        standardise = "institution" if zscore else "none"
        pooled = train_ridge(inputs, RidgeSettings("central", standardise, choice="inner_folds"), silent)
    assert found.round_scores is not None
    sent = megabytes(found)
    print(f"{options.features}, {split}, repeat {options.repeat}: {len(inputs.subjects)} subjects, "
          f"{inputs.features[0].shape[1]} features, {len(inputs.institutions)} institutions")  # fmt: skip
    print(f"{'directions':>10} {'largest difference':>20} {'AUC':>6} {'MB of a fold':>13}")
    for number, scores in enumerate(found.round_scores, start=1):
        if number in SHOWN or number == len(found.round_scores):
            distance = np.nanmax(np.abs(scores - pooled.scores))
            size = f"{sent[number - 1]:13.0f}" if number <= len(sent) else f"{'(ended)':>13}"
            print(f"{number:10} {distance:20.1e} {mean_auc(inputs, truth, scores):6.3f} {size}")
    print(f"{'pooled':>10} {'':20} {mean_auc(inputs, truth, pooled.scores):6.3f}")


if __name__ == "__main__":
    main()
