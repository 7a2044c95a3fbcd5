"""Settings of networks on region series, on made-up cohorts: what the small networks of `abide-fglbc.yaml` rest on.

    python benchmarks/series_settings.py [--cohorts 12] [--network fedavg-stgcn]

A cohort has 800 subjects of 40 regions at four institutions. In patients a random change of loadings on hidden signals
alters the correlations of eight regions. Prints the AUC of one fifth of the subjects in every cohort, their mean, and
in how many cohorts the training loss fell below 0.6; chance is 0.69.
"""

import argparse

import numpy as np

from brainfed.evaluation import auc
from brainfed.methods.fglbc.declaration import FederatedRegionGNNSettings, FederatedSTGCNSettings
from brainfed.methods.fglbc.train import train_fedavg, train_fedgnn
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Run
from brainfed.samples import SeriesInputs, hidden_labels

SUBJECTS, INSTITUTIONS, REGIONS, TIMES, SIGNALS, CHANGED = 800, 4, 40, 96, 12, 8
EFFECT, OWN, NOISE, MEMORY = 0.5, 0.5, 2.0, 0.6
"""Scales of the change, of a subject's own loadings, of noise; share of a time point that the next one keeps."""
LEARNT = 0.6
CHOICES = [
    {},
    {"learning_rate": 0.001},
    {"batch": 32},
    {"groups": 1},
    {"groups": 4},
]
SMALL = {"window": 64, "batch": 16, "rounds": 40, "privacy": "none", "learning_rate": 0.01, "groups": 2}
NETWORKS = {
    "fedavg-stgcn": (train_fedavg, FederatedSTGCNSettings, {"channels": 8, "strides": (4, 2, 2)}),
    "fedgnn": (train_fedgnn, FederatedRegionGNNSettings, {"hidden": 16}),
}


def made_up(seed: int) -> tuple[SeriesInputs, np.ndarray]:
    """A cohort with one fold, and its labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, SUBJECTS)
    common = random.standard_normal((REGIONS, SIGNALS))
    change = np.zeros((REGIONS, SIGNALS))
    change[random.choice(REGIONS, CHANGED, replace=False)] = random.standard_normal((CHANGED, SIGNALS)) * EFFECT
    series = []
    for label in labels:
        loadings = common + random.standard_normal((REGIONS, SIGNALS)) * OWN + (label - 0.5) * change
        found = random.standard_normal((TIMES, SIGNALS)) @ loadings.T + random.standard_normal((TIMES, REGIONS)) * NOISE
        for time in range(1, TIMES):
            found[time] = MEMORY * found[time - 1] + np.sqrt(1 - MEMORY**2) * found[time]
        series.append(((found - found.mean(axis=0)) / found.std(axis=0)).astype(np.float32))
    institution = random.permutation(SUBJECTS) % INSTITUTIONS
    fold = np.where(random.permutation(SUBJECTS) < SUBJECTS // 5, 0, -1)
    inputs = SeriesInputs(
        subjects=tuple(f"s{number:04d}" for number in range(SUBJECTS)),
        institutions=tuple(f"institution-{number}" for number in range(INSTITUTIONS)),
        institution=institution.astype(np.int64),
        fold=fold.astype(np.int64),
        labels=hidden_labels(labels, fold),
        streams=Streams(seed),
        start=np.arange(SUBJECTS + 1, dtype=np.int64) * TIMES,
        series=np.concatenate(series),
    )
    return inputs, labels


def main() -> None:
    """Print a line for each choice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=12)
    parser.add_argument("--network", choices=NETWORKS, default="fedavg-stgcn")
    arguments = parser.parse_args()
    train, settings, size = NETWORKS[arguments.network]
    cohorts = [made_up(seed) for seed in range(arguments.cohorts)]
    for choice in CHOICES:
        scores, learnt = [], 0
        for inputs, labels in cohorts:
            outcome = train(inputs, settings(**(SMALL | size | choice)), Run())
            tested = inputs.tested(0)
            scores.append(auc(labels[tested], outcome.scores[0, tested, 1]))
            learnt += int(np.nanmean(outcome.training_loss[-1]) < LEARNT)
        each = " ".join(f"{score:.3f}" for score in scores)
        named = ", ".join(f"{key} {value}" for key, value in choice.items()) or "the settings"
        print(f"{named:22} mean AUC {np.mean(scores):.3f}, learnt {learnt} of {len(scores)}: {each}", flush=True)


if __name__ == "__main__":
    main()
