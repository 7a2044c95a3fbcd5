"""The file of a kept model: what scores a patient, references of tangent features, distances. No subject."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.cohort.quality import included_subjects
from brainfed.evaluation import auc, sd_of_chance
from brainfed.imaging import (
    Covariances,
    FeatureSettings,
    load_covariances,
    log_sum,
    tangent_at,
    tangent_at_identity,
    tangent_ledger,
    whitening_of_fold,
)
from brainfed.imaging.scans import read_region_table
from brainfed.runtime import IntArray, UserError, read_arrays, read_table, resolve, restore, versions, write_arrays
from brainfed.samples import UNTESTED, FittedModel, MethodInputs, Outcome, Score, score_at, with_alike_shared

Lengths = NDArray[np.float64]

FORMAT = 2
EVERYBODY = "everybody"
"""The part that was trained on all labelled subjects; the others are `fold-0`, `fold-1` ..."""
ROLES = ("model", "reference")
WHOSE = ("shared", "own")
"""Second and third word of an array's name in a file; the first is the part, the last the array's own name."""
MADE_UP = ("random", "consecutive")
"""Values of `split.institutions`, of a model `drawn`, under which an institution is no hospital."""
WHITENING = "whitening"
"""Inverse square root (R, R) of the reference of tangent features."""


@dataclass(frozen=True)
class Part:
    """One training: a method's model, and `WHITENING` of tangent features with a reference, no arrays of others."""

    model: FittedModel
    reference: FittedModel

    @property
    def needs_institution(self) -> bool:
        """Whether institutions differ in scaling, weights or reference."""
        return bool(self.model.own or self.reference.own)


@dataclass(frozen=True)
class KeptFile:
    """Content of a file.

    Attributes:
        about: method, features, regions, institutions and how they are drawn, classes, distances; see
            `prediction.model_file.keep`.
        parts: `EVERYBODY` and `fold-0`, ... -> its arrays.
    """

    about: Mapping[str, Any]
    parts: Mapping[str, Part]


def part_name(fold: int | None) -> str:
    """The part of a fold; None: of everybody."""
    return EVERYBODY if fold is None else f"fold-{fold}"


def write_model(path: str | Path, kept: KeptFile) -> None:
    """Write a file; an array is called `part/model/shared/name`."""
    arrays = {
        f"{part}/{role}/{whose}/{name}": array
        for part, training in kept.parts.items()
        for role in ROLES
        for whose in WHOSE
        for name, array in getattr(getattr(training, role), whose).items()
    }
    write_arrays(path, arrays, {"format": FORMAT, **kept.about})


def read_model(path: str | Path) -> KeptFile:
    """Read a file.

    Raises:
        UserError: it is no such file, is of another version of the format, or has an array of another kind of file.
    """
    file = read_arrays(path)
    if file.metadata.get("format") != FORMAT:
        raise UserError(
            f"{path}: expected a kept model of format {FORMAT}, found {file.metadata.get('format', 'another file')}; "
            "use the brainfed that wrote it."
        )
    parts: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for name, array in file.arrays.items():
        words = name.split("/")
        if len(words) != 4 or words[1] not in ROLES or words[2] not in WHOSE:
            raise UserError(
                f"{path}: expected arrays called part/{'|'.join(ROLES)}/{'|'.join(WHOSE)}/name, found {name!r}; let "
                "`snakemake models` write the file anew."
            )
        part, role, whose, own = words
        roles = parts.setdefault(part, {role: {whose: {} for whose in WHOSE} for role in ROLES})
        roles[role][whose][own] = array
    models = {part: {role: FittedModel(**arrays) for role, arrays in roles.items()} for part, roles in parts.items()}
    return KeptFile(file.metadata, {part: Part(**of_roles) for part, of_roles in models.items()})


# References of tangent features of every fold and of everybody, as the jobs of the features fit them.

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

    Reads the covariances of all shards, the split and who is included; own arrays are in the order of institutions.
    """
    if not settings.tangent or settings.reference == "identity":
        return [NO_REFERENCE] * folds, NO_REFERENCE
    if settings.reference == "all":
        everybody = load_covariances(files, sorted(included_subjects(included)))
        reference = FittedModel({WHITENING: log_sum(everybody.logarithm).whitening})
        return [reference] * folds, reference
    people = read_table(split, ["subject", "institution", "fold"]).sort_values("subject")
    every, where, fold = load_covariances(files, list(people["subject"])), list(people["institution"]), people["fold"]

    def fitted(training: NDArray[np.bool_]) -> FittedModel:
        assert settings.reference in ("institution", "training")
        ledger = tangent_ledger(len(every.regions))
        each = whitening_of_fold(every.logarithm, where, training, settings.reference, ledger)
        return with_alike_shared({}, {WHITENING: np.stack([each[name] for name in institutions])})

    of_folds = [fitted((fold != number).to_numpy()) for number in range(folds)]
    return of_folds, fitted(np.ones(len(fold), dtype=np.bool_))


def tangent_features(subjects: Covariances, reference: FittedModel, institution: int | None) -> NDArray[np.float32]:
    """Tangent features (n, R (R + 1) / 2) of subjects of one institution."""
    if not reference.shared and not reference.own:
        return tangent_at_identity(subjects)
    return tangent_at(subjects, reference.at(institution if reference.own else None)[WHITENING])


# How far scans lie from the centre of the training data that are new to a model: what a patient is compared with.
#
# A model is centred and scaled on its training subjects, so they lie nearer to its centre than any new scan: among
# thousands of features nearly all of them lie nearer. The subjects that the folds hold out are as new as a patient, but
# their models have seen fewer subjects than the kept one, and lie farther from them.

FAR = 3.0
"""Standard deviations beyond which a scan is not like those of training: few of these lie near their centre either."""
SPENT = 3
"""Subjects that moments cost: a z-score by the moments of m normal subjects has the mean square 1 + 4 / (m - 3)."""


def lengths_of_new_scans(held_out: Lengths, training: Lengths, folds: int, subjects: int) -> Lengths:
    """The lengths that held-out subjects would have by the kept model without them, not by the models of their folds.

    Args:
        held_out: of tested subjects, each by the model of the fold that never saw it.
        training: of the training subjects of every fold, by its model: all folds in one.
        subjects: number of training subjects of the kept model.
    """
    fewer = len(training) / folds - SPENT
    if not len(held_out) or fewer <= 0:
        return held_out
    excess = max(float(np.mean(held_out**2)) / float(np.mean(training**2)) - 1.0, 0.0)
    nearer = np.sqrt((1.0 + excess * fewer / (subjects - SPENT)) / (1.0 + excess))
    return np.asarray(nearer * held_out)


def spread_of(lengths: Sequence[Lengths]) -> dict[str, Any]:
    """Where new scans lie, builtins: `means`, one a place; `sd` inside of a place; numbers of `subjects` and `beyond`.

    Lengths of new scans are by place: an institution, or all of them where the model scales all alike.
    """
    everywhere = float(np.concatenate(lengths).mean())
    means = [float(own.mean()) if len(own) else everywhere for own in lengths]
    apart = np.concatenate([own - mean for own, mean in zip(lengths, means, strict=True)])
    sd = float(np.sqrt(np.mean(apart**2)))
    beyond = int((np.abs(apart) > FAR * sd).sum())
    return {"means": means, "sd": sd, "subjects": len(apart), "beyond": beyond}


def distance_of(length: float, spread: Mapping[str, Any], institution: int | None) -> float:
    """Standard deviations of a patient's length of scaled features from the mean of new scans.

    The institution is None where the model scales all alike.
    """
    means = spread["means"]
    place = institution if institution is not None and len(means) > 1 else 0
    return float((length - means[place]) / (spread["sd"] or 1.0))


# Keep a method's models: those of the folds, checked against its own scores, and one of everybody.

TOLERANCE = 1e-2
"""Largest difference of a kept model's scores from those of its training; reduced precision differs by less."""
BLOCK = 64
"""Training subjects whose scaled features are in memory at once."""


def keep(
    path: str | Path,
    kept: Mapping[str, Any],
    files: Any,
    inputs: MethodInputs,
    truth: IntArray,
    outcome: Outcome,
    train: Callable[[MethodInputs], Outcome],
) -> None:
    """Train on all labelled subjects, and write the models of everybody and of all folds.

    Args:
        kept: as `configuration.layout._cohort_inputs` makes it.
        truth: (n,) labels.
        outcome: of the method on `inputs`, with its models.

    Raises:
        ValueError: a kept model scores the tested subjects of its fold in another way than the method did.
    """
    about, settings = kept["about"], restore(FeatureSettings, kept["about"]["features"])
    references, reference = fold_references(
        files.covariances, files.split, files.included, inputs.institutions, settings, inputs.folds
    )
    everybody = train(_of_everybody(inputs, truth, files.covariances, settings, reference))
    whole = Part(everybody.models[0], reference)
    places, difference = _of_folds(
        inputs, outcome, about["settings"], resolve(kept["score"]), truth, by_institution=whole.needs_institution
    )
    if difference > TOLERANCE:
        raise ValueError(f"expected the kept models to give the scores of the folds, found differences of {difference}")
    regions = list(read_arrays(files.features[0], []).metadata["regions"])
    indices = read_region_table(files.regions)[0].tolist() if files.regions else []
    described = {
        **about,
        "kind": outcome.kind,
        "folds": inputs.folds,
        "institutions": list(inputs.institutions),
        "regions": regions,
        "indices": indices if len(indices) == len(regions) else [],
        "training": _counts(inputs, truth),
        "held_out": _held_out(inputs, outcome, truth),
        "distance": spread_of(places),
        "largest_difference": difference,
        "versions": versions(),
    }
    parts = {
        part_name(fold): Part(model, own)
        for fold, (model, own) in enumerate(zip(outcome.models, references, strict=True))
    }
    write_model(path, KeptFile(described, {**parts, EVERYBODY: whole}))


def _of_everybody(
    inputs: MethodInputs, truth: IntArray, covariances: Any, settings: FeatureSettings, reference: FittedModel
) -> MethodInputs:
    """The same subjects in one fold that tests nobody."""
    features = inputs.features[0]
    if settings.fitted:
        features = np.empty_like(features)
        for code in range(len(inputs.institutions)):
            own = inputs.members(code)
            own_covariances = load_covariances(covariances, [inputs.subjects[place] for place in own])
            features[own] = tangent_features(own_covariances, reference, code)
    return replace(inputs, fold=np.full(len(inputs.subjects), UNTESTED), labels=truth[None], features=(features,))


def _of_folds(
    inputs: MethodInputs,
    outcome: Outcome,
    settings: Mapping[str, Any],
    score: Score,
    truth: IntArray,
    *,
    by_institution: bool,
) -> tuple[list[Lengths], float]:
    """Lengths of all subjects' rows by the models of all folds; largest difference of a tested subject's score.

    The lengths are those of all institutions, or of each, whose model then scales its subjects in a way of its own.
    """
    places = range(len(inputs.institutions) if by_institution else 1)
    held_out, training = ([[np.empty(0)] for _ in places] for _ in range(2))
    difference = 0.0
    for fold, model in enumerate(outcome.models):
        features: Any = inputs.fold_features(fold)
        for code in range(len(inputs.institutions)):
            there, place = inputs.institution == code, code if by_institution else 0
            if (own := inputs.tested(fold) & there).any():
                scored = score_at(model, code, features[own], settings, score)
                held_out[place].append(np.linalg.norm(scored.rows, axis=1))
                difference = max(difference, float(np.abs(scored.scores - outcome.scores[fold, own]).max()))
            seen = np.flatnonzero(inputs.training(fold) & there)
            for block in np.split(seen, range(BLOCK, len(seen), BLOCK)) if len(seen) else ():
                rows = score_at(model, code, features[block], settings, score).rows
                training[place].append(np.linalg.norm(rows, axis=1))
    return [
        lengths_of_new_scans(
            np.concatenate(held_out[place]),
            np.concatenate(training[place]),
            inputs.folds,
            int(((truth >= 0) & ((inputs.institution == place) | (not by_institution))).sum()),
        )
        for place in places
    ], difference


def _held_out(inputs: MethodInputs, outcome: Outcome, truth: IntArray) -> dict[str, float] | None:
    """Mean AUC of the folds on their tested subjects, and the AUC that guessing exceeds once in forty cohorts as large.

    None of more than two classes, and where no fold tests both.
    """
    if inputs.classes > 2:
        return None
    folds = [np.flatnonzero((inputs.fold == fold) & (truth >= 0)) for fold in range(inputs.folds)]
    folds = [tested for tested in folds if len(set(truth[tested].tolist())) == 2]
    if not folds:
        return None
    areas = [auc(truth[tested], outcome.scores[inputs.fold[tested], tested, 1]) for tested in folds]
    counts = np.bincount(truth[np.concatenate(folds)], minlength=2).tolist()
    return {"auc": float(np.mean(areas)), "guessing": 0.5 + 1.96 * sd_of_chance(*counts)}


def _counts(inputs: MethodInputs, truth: IntArray) -> list[dict[str, Any]]:
    """Institution, and its number of labelled subjects of every class."""
    return [
        {"institution": name, "subjects": np.bincount(truth[own & (truth >= 0)], minlength=inputs.classes).tolist()}
        for code, name in enumerate(inputs.institutions)
        if (own := inputs.institution == code).any()
    ]
