"""References of tangent features of every fold and of everybody, as the jobs of the features fit them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.settings import FeatureSettings
from brainfed.imaging.tangent.covariances import Covariances, load_covariances
from brainfed.imaging.tangent.reference import log_sum, tangent_ledger, whitening_of_fold
from brainfed.imaging.tangent.vectors import tangent_at, tangent_at_identity
from brainfed.prediction.model_file import WHITENING
from brainfed.runtime.artefacts import read_table
from brainfed.samples.kept.fitted_model import FittedModel, with_alike_shared

NO_REFERENCE = FittedModel({})


def fold_references(
    files: Sequence[str | Path],
    split: str | Path,
    included: str | Path,
    institutions: Sequence[str],
    settings: FeatureSettings,
    folds: int,
) -> tuple[list[FittedModel], FittedModel]:
    """The references of all folds, and that of everybody; without arrays where features depend on no other subject.

    Args:
        files: covariances of all shards.
        split: subject, institution, fold.
        included: subject, included.
        institutions: M names, in the order of the own arrays.
        settings: of the features.
        folds: F.
    """
    if not settings.tangent or settings.reference == "identity":
        return [NO_REFERENCE] * folds, NO_REFERENCE
    if settings.reference == "all":
        table = read_table(included, ["subject", "included"])
        everybody = load_covariances(files, sorted(table.loc[table["included"], "subject"]))
        one = FittedModel({WHITENING: log_sum(everybody.logarithm).whitening})
        return [one] * folds, one
    people = read_table(split, ["subject", "institution", "fold"]).sort_values("subject")
    found = load_covariances(files, list(people["subject"]))

    def fitted(training: NDArray[np.bool_]) -> FittedModel:
        assert settings.reference in ("institution", "training")
        ledger = tangent_ledger(len(found.regions))
        where = list(people["institution"])
        each = whitening_of_fold(found.logarithm, where, training, settings.reference, ledger)
        return with_alike_shared({}, {WHITENING: np.stack([each[name] for name in institutions])})

    fold = people["fold"].to_numpy()
    return [fitted(fold != number) for number in range(folds)], fitted(np.ones(len(fold), dtype=np.bool_))


def tangent_features(
    found: Covariances, reference: FittedModel, institution: int | None, threads: int = 1
) -> NDArray[np.float32]:
    """Tangent features (n, R (R + 1) / 2) of subjects of one institution."""
    if not reference.shared and not reference.own:
        return tangent_at_identity(found)
    return tangent_at(found, reference.at(institution if reference.own else None)[WHITENING], threads)
