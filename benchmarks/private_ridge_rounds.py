"""What private ridge loses at each epsilon, by its number of rounds, on made-up rows of ABIDE's size.

    python benchmarks/private_ridge_rounds.py [--cohorts 6] [--features 1000]

Rows are a common row, correlated noise and an effect along its strongest components. The noise has few effective
dimensions (eigenvalues k^-0.9) or many (k^-0.5). Prints AUC and accuracy over all folds, mean over cohorts.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from brainfed.evaluation import auc
from brainfed.methods.private_linear.declaration import PrivateRidgeSettings
from brainfed.methods.private_linear.train import train_ridge_dp
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Phenotypes

SUBJECTS, INSTITUTIONS, FOLDS, PATIENTS = 860, 4, 5, 0.46
COMMON, SEPARATION = 0.4, 1.8
"""Share of a row's squared norm that all rows have in common; Mahalanobis distance of the classes."""
SPECTRA = {"few dimensions": 0.9, "many dimensions": 0.5}
BUDGETS = (2.0, 5.0, 10.0, 20.0, None)
VARIANTS = {
    "one release": {"rounds": 1, "balance": "none"},
    "10 rounds": {"rounds": 10},
    "20 rounds": {"rounds": 20},
    "40 rounds": {},
    "40 rounds, classes as they are": {"balance": "none"},
}


def made_up(seed: int, features: int, decay: float) -> tuple[MethodInputs, NDArray[np.int64], float]:
    """A cohort, its labels, and the effective number of dimensions of the rows around their mean."""
    random = np.random.default_rng(seed)
    labels = (random.random(SUBJECTS) < PATIENTS).astype(np.int64)
    values = np.arange(1.0, features + 1) ** -decay
    values /= values.sum()
    effect = random.standard_normal(features) * values
    effect *= SEPARATION / np.sqrt((effect**2 / values).sum())
    common = random.standard_normal(features)
    common *= np.sqrt(COMMON / (1 - COMMON)) / np.linalg.norm(common)
    rows = common + random.standard_normal((SUBJECTS, features)) * np.sqrt(values) + (labels[:, None] - 0.5) * effect
    fold = random.permutation(SUBJECTS) % FOLDS
    inputs = MethodInputs(
        subjects=tuple(f"s{number:04d}" for number in range(SUBJECTS)),
        institutions=tuple(f"institution-{number}" for number in range(INSTITUTIONS)),
        institution=random.permutation(SUBJECTS) % INSTITUTIONS,
        fold=fold,
        labels=np.where(np.arange(FOLDS)[:, None] == fold, -1, labels),
        features=(rows.astype(np.float32),),
        graphs=(),
        phenotypes=Phenotypes(*np.zeros((2, SUBJECTS), np.int64), *np.zeros((2, SUBJECTS))),
        streams=Streams(seed),
    )
    return inputs, labels, float(values.sum() ** 2 / (values**2).sum())


def measured(cohort: tuple[MethodInputs, NDArray[np.int64], float], settings: PrivateRidgeSettings) -> list[float]:
    """AUC and accuracy over all folds."""
    inputs, labels, _ = cohort
    run = Run(progress=lambda *_, **__: None)
    scores = train_ridge_dp(inputs, settings, run).scores[inputs.fold, np.arange(SUBJECTS), 1]
    return [auc(labels, scores), float(np.mean((scores > 0) == labels))]


def main() -> None:
    """Print one table a spectrum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=6)
    parser.add_argument("--features", type=int, default=1000)
    given = parser.parse_args()
    for name, decay in SPECTRA.items():
        cohorts = [made_up(seed, given.features, decay) for seed in range(given.cohorts)]
        print(f"{name}: {cohorts[0][2]:.0f} effective; AUC / accuracy")
        print(f"{'epsilon':32}", *(f"{budget or 'none':>13}" for budget in BUDGETS))
        for variant, changes in VARIANTS.items():
            cells = []
            for budget in BUDGETS:
                privacy = {"privacy": "none"} if budget is None else {"epsilon": budget}
                settings = PrivateRidgeSettings(**privacy, **changes)
                found = np.mean([measured(cohort, settings) for cohort in cohorts], axis=0)
                cells.append(f"{found[0]:.3f} / {found[1]:.3f}")
            print(f"{variant:32}", *cells, flush=True)


if __name__ == "__main__":
    main()
