"""What institutions add under each reading of GAHFL, on made-up cohorts in which all institutions know the same.

    python benchmarks/gahfl_readings.py [--cohorts 6] [--subjects 200] [--effect 1.0] [--rounds 6] [--epochs 10]
        [--public 0.3] [--only public gahfl]

Patients' first regions share a slow signal. A row has the mean AUC of one
method on tested subjects, and the share of the visits of public samples that institutions taught in the first, second
and last round. `public` trains the global network on the public subjects alone; `no teachers` is GAHFL without any
institution.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from brainfed.methods.gahfl.declaration import FedETSettings, FedGEMSSettings, GAHFLSettings, OneRecurrentSettings
from brainfed.methods.gahfl.train import train_fedet, train_fedgems, train_gahfl, train_public
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Run
from brainfed.samples import Outcome, PublicSeriesInputs, hidden_labels

INSTITUTIONS, FOLDS, REGIONS, TIMES = 4, 5, 12, 60
READINGS = [(when, pool) for when in ("step", "round") for pool in ("training", "round")]
Truth = NDArray[np.int64]


def cohort(seed: int, subjects: int, effect: float, share: float) -> tuple[PublicSeriesInputs, Truth]:
    """Subjects in turn in all institutions, and their diagnoses."""
    random = np.random.default_rng(seed)
    place = np.arange(subjects)
    institution, truth = place % INSTITUTIONS, place // INSTITUTIONS % 2
    fold = place // (2 * INSTITUTIONS) % FOLDS
    noise = random.standard_normal((subjects, TIMES, REGIONS))
    slow = random.standard_normal((subjects, TIMES, 1)).cumsum(axis=1)
    slow /= slow.std(axis=1, keepdims=True)
    loading = np.zeros((subjects, 1, REGIONS))
    loading[:, 0, : REGIONS // 3] = effect * truth[:, None] + 0.5 * random.standard_normal((subjects, 1))
    series = noise + loading * slow
    series = (series - series.mean(axis=1, keepdims=True)) / series.std(axis=1, keepdims=True)
    labels = hidden_labels(truth, fold)
    public = (random.random(labels.shape) < share) & (labels >= 0)
    return PublicSeriesInputs(
        subjects=tuple(f"sub-{each:04d}" for each in place),
        institutions=tuple(f"site-{each}" for each in range(INSTITUTIONS)),
        institution=institution,
        fold=fold,
        labels=labels,
        streams=Streams(seed),
        start=np.arange(subjects + 1) * TIMES,
        series=series.reshape(-1, REGIONS).astype(np.float32),
        public=public,
    ), truth


def auc(inputs: PublicSeriesInputs, truth: Truth, outcome: Outcome) -> float:
    tested = [np.flatnonzero(inputs.tested(fold)) for fold in range(inputs.folds)]
    return float(np.mean([roc_auc_score(truth[own], outcome.scores[f, own, 1]) for f, own in enumerate(tested)]))


def trainings(inputs: PublicSeriesInputs, rounds: int, epochs: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """Name and training of every method and reading."""
    run, size = Run(), {"length": 40, "crops": 4, "hidden": 16, "rounds": rounds, "batch": 64, "learning_rate": 3e-3}
    one = OneRecurrentSettings(**size, local_epochs=epochs)
    size |= {"local_epochs": epochs, "global_epochs": epochs}
    yield "public", partial(train_public, inputs, one, run)
    for when, pool in READINGS:
        gahfl = GAHFLSettings(**size, self_evaluation=when, pool=pool)
        fedgems = FedGEMSSettings(**size, self_evaluation=when, pool=pool)
        yield f"gahfl {when} {pool}", partial(train_gahfl, inputs, gahfl, run)
        yield f"no teachers {when} {pool}", partial(train_gahfl, inputs, replace(gahfl, without="teachers"), run)
        yield f"fedgems {when} {pool}", partial(train_fedgems, inputs, fedgems, run)
    yield "fedet", partial(train_fedet, inputs, FedETSettings(**size), run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=6)
    parser.add_argument("--subjects", type=int, default=200)
    parser.add_argument("--effect", type=float, default=1.0)
    parser.add_argument("--public", type=float, default=0.3, help="share of the training subjects")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the names of methods")
    given = parser.parse_args()
    reached: dict[str, list[float]] = {}
    taught: dict[str, list[NDArray[np.float64]]] = {}
    for seed in range(given.cohorts):
        inputs, truth = cohort(seed, given.subjects, given.effect, given.public)
        for name, train in trainings(inputs, given.rounds, given.epochs):
            if not name.startswith(("public", *given.only)):
                continue
            outcome = train()
            reached.setdefault(name, []).append(auc(inputs, truth, outcome))
            shares = np.full(given.rounds, np.nan) if outcome.taught is None else outcome.taught.mean(axis=1)
            taught.setdefault(name, []).append(shares)
            print(f"cohort {seed}: {name:28} {reached[name][-1]:.3f}", np.round(shares, 3).tolist(), flush=True)
    public = np.array(reached["public"])
    for name, values in reached.items():
        first, second, *_, last = np.mean(taught[name], axis=0)
        added = np.array(values) - public
        print(
            f"{name:28} {np.mean(values):.3f}  over public {added.mean():+.3f} (above in {(added > 0).sum()} of "
            f"{len(added)})  taught {first:.3f} {second:.3f} {last:.3f}"
        )


if __name__ == "__main__":
    main()
