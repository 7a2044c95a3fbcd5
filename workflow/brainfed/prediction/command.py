"""Region series of new patients, read and refused as those of a cohort."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.imaging import FeatureSettings, connectivity, covariances
from brainfed.imaging.series import check_series, read_roi_series, varying_regions
from brainfed.methods import METHODS
from brainfed.prediction.model_file import (
    FAR,
    MADE_UP,
    KeptFile,
    Part,
    distance_of,
    part_name,
    read_model,
    tangent_features,
)
from brainfed.runtime import UserError, predicted_classes, read_arrays, resolve, restore, score_columns, write_tsv
from brainfed.samples import score_at

SHARD = ".safetensors"
"""Ending of a file of several patients, which the workflow extracted from their images."""


@dataclass(frozen=True)
class Patient:
    """One new patient.

    Attributes:
        name: the file, or `file:subject` of a file with several.
        series: (time, R).
        runs: lengths of its runs; empty: the series is one.
        silent: number of regions without signal.
    """

    name: str
    series: NDArray[np.float32]
    runs: tuple[int, ...]
    silent: int


def read_patients(files: Sequence[str | Path], about: Mapping[str, Any]) -> Iterator[Patient]:
    """Read files of region series, a table or an array of one patient or a shard of several.

    Raises:
        UserError: a file is unusable, of another atlas, too short, or has regions without signal that training refused.
    """
    for file in files:
        read = _of_shard if Path(file).suffix == SHARD else _of_one
        for name, subject, series, runs in read(file, about):
            check_series(subject, series, about["series"]["min_timepoints"])
            silent = int((~varying_regions(series)).sum())
            if silent and about["series"]["constant_regions"] != "impute_zero":
                raise UserError(
                    f"{name}: expected a signal in all {series.shape[1]} regions, as the training subjects had, found "
                    f"{silent} without; leave the patient out."
                )
            yield Patient(name, series, runs, silent)


Read = Iterator[tuple[str, str, NDArray[np.float32], tuple[int, ...]]]


def _of_one(file: str | Path, about: Mapping[str, Any]) -> Read:
    """One patient; a header must name the model's regions, by name or by index, in their order."""
    subject, regions, indices = Path(file).name, about["regions"], about["indices"]
    layout = {name: about["series"].get(name) for name in ("transposed", "variable")}
    read = read_roi_series(
        subject, file, len(regions), about["series"]["header"], indices or None, known=regions, **layout
    )
    known = [tuple(regions)]
    if indices:
        known += [tuple(map(str, indices)), tuple(str(place + 1) for place in range(len(regions)))]
    if read.regions not in known:
        raise _other_regions(str(file), read.regions, about)
    yield str(file), subject, read.series, ()


def _of_shard(file: str | Path, about: Mapping[str, Any]) -> Read:
    """Several patients; atlas and regions must be the model's, and every array must have a column a region."""
    shard = read_arrays(file)
    atlas, wanted = shard.metadata.get("atlas"), about["series"]["atlas"]
    if atlas != wanted:
        raise UserError(
            f"{file}: expected region series of atlas {wanted!r}, found {atlas!r}; extract them with the model's."
        )
    regions = shard.metadata.get("regions")
    if regions is None:
        raise UserError(
            f"{file}: expected the names of the regions in the file's metadata, found none; let the workflow extract "
            "the series, or give one table of text a patient."
        )
    if list(regions) != list(about["regions"]):
        raise _other_regions(str(file), regions, about)
    lengths = shard.metadata.get("runs", {}) if about["series"]["by_run"] else {}
    for subject, series in sorted(shard.arrays.items()):
        if series.ndim != 2 or series.shape[1] != len(regions):
            raise UserError(
                f"{file}:{subject}: expected an array of time points x {len(regions)} regions, as the file's metadata "
                f"name them, found {' x '.join(map(str, series.shape)) or 'a number'}; extract the series anew."
            )
        yield f"{file}:{subject}", subject, series, tuple(lengths.get(subject, ()))


def _other_regions(file: str, names: Sequence[str], about: Mapping[str, Any]) -> UserError:
    regions = about["regions"]
    pairs = enumerate(zip(names, regions, strict=False), start=1)
    other = next(
        (f"{name!r} as number {at} in place of {region!r}" for at, (name, region) in pairs if name != region),
        f"{len(names)} regions",
    )
    return UserError(
        f"{file}: expected the {len(regions)} regions of the model's atlas {about['series']['atlas']!r} in their "
        f"order, found {other}; extract the series with that atlas."
    )


def features_of(patient: Patient, about: Mapping[str, Any], part: Part, institution: int | None) -> NDArray[np.float32]:
    """Features (1, d), at the reference of a part, by the functions of the jobs that computed those of training.

    The institution is None where institutions do not differ.
    """
    settings = restore(FeatureSettings, about["features"])
    series, runs = {patient.name: patient.series}, {patient.name: patient.runs}
    if settings.tangent:
        own = covariances(series, about["regions"], settings.shrinkage, runs)
        return tangent_features(own, part.reference, institution)
    return connectivity(series, settings, runs)


# `brainfed predict`: score new patients by a kept model, and say how far each lies from the training data.


def predict(given: argparse.Namespace) -> int:
    """Print or write the table; 1 if a file or an argument cannot be used, else 0."""
    try:
        path = given.model / "model.safetensors"
        if not path.is_file():
            raise UserError(
                f"{given.model}: expected the folder of a kept model, found no model.safetensors in it; `snakemake "
                "models` writes results/COHORT/models/VARIANT for variants under `models`."
            )
        model = read_model(path)
        table = predictions(model, given.series, given.fold, given.institution)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    if given.output is None:
        print(table.to_csv(sep="\t", index=False, lineterminator="\n"), end="")
    else:
        write_tsv(given.output, table, keep_names=True)
    if sentence := guesses(model):
        print(f"{given.model}: {sentence}", file=sys.stderr)
    spread = model.about["distance"]
    for row in table.loc[table["range"] == "beyond"].to_dict("records"):
        print(
            f"{row['file']}: lies {abs(row['distance']):.1f} standard deviations "
            f"{'farther from' if row['distance'] > 0 else 'nearer to'} the centre of the training data than held-out "
            f"scans on average, of which {spread['beyond']} of {spread['subjects']} lie beyond {FAR:g} or -{FAR:g}; "
            "its score says little.",
            file=sys.stderr,
        )
    return 0


def predictions(
    model: KeptFile, files: Sequence[str | Path], fold: int | None = None, institution: str | None = None
) -> pd.DataFrame:
    """One row a patient, in the order of the files.

    Args:
        fold: number of the fold whose model scores, from 0; None: the model of everybody.

    Returns:
        file, score (of class 1; `score-NAME` for each of more than two classes), kind (`probability`, between 0 and 1
        and cut at 0.5, or `margin`, cut at 0), predicted (name of the class), held_out_auc (mean of the model's folds
        on subjects that they never saw; empty where it is not known), distance (standard deviations from the mean
        length of a scan that is new to the model), range (`within`, `beyond`), silent (number of regions without
        signal).

    Raises:
        UserError: the model has no such fold or institution, a file is unusable, or of another atlas.
    """
    part = _part(model, fold)
    code = _institution(model, part, institution)
    return pd.DataFrame([_row(model, part, patient, code) for patient in read_patients(files, model.about)])


def _row(model: KeptFile, part: Part, patient: Patient, code: int | None) -> dict[str, str | float | int]:
    about = model.about
    method = METHODS.get(about["method"])
    if method is None or not method.capabilities.model:
        raise UserError(
            f"Model: expected a method that this brainfed has, found {about['method']!r}; install its version."
        )
    features = features_of(patient, about, part, code)
    scored = score_at(part.model, code, features, about["settings"], resolve(method.capabilities.model))
    names, columns = about["class_names"], score_columns(about["class_names"])
    distance = distance_of(float(np.linalg.norm(scored.rows[0])), about["distance"], code)
    return {
        "file": patient.name,
        **dict(zip(columns, scored.scores[0, -len(columns) :].tolist(), strict=True)),
        "kind": str(about["kind"]),
        "predicted": names[int(predicted_classes(scored.scores, about["kind"])[0])],
        "held_out_auc": (about.get("held_out") or {}).get("auc", np.nan),
        "distance": distance,
        "range": "beyond" if abs(distance) > FAR else "within",
        "silent": patient.silent,
    }


def guesses(model: KeptFile) -> str:
    """A sentence if the folds of the model ranked held-out subjects no better than guessing can; else nothing."""
    held_out = model.about.get("held_out")
    if held_out is None or held_out["auc"] > held_out["guessing"]:
        return ""
    return (
        "expected a model that ranks held-out subjects better than guessing, found a mean AUC of "
        f"{held_out['auc']:.2f} over its folds, where guessing reaches {held_out['guessing']:.2f} on as many subjects; "
        "its scores say nothing."
    )


def _part(model: KeptFile, fold: int | None) -> Part:
    part = model.parts.get(part_name(fold))
    if part is None:
        raise UserError(
            f"--fold: expected a number from 0 to {model.about['folds'] - 1}, found {fold}; leave it out for the "
            "model of all training subjects."
        )
    return part


def _institution(model: KeptFile, part: Part, name: str | None) -> int | None:
    known, given = model.about["institutions"], "none" if name is None else repr(name)
    if part.needs_institution and name in known:
        return int(known.index(name))
    if not part.needs_institution:
        if name is None:
            return None
        raise UserError(
            f"--institution: expected none, as this model scores the patients of all institutions alike, found "
            f"{given}; leave it out."
        )
    if model.about["drawn"] in MADE_UP:
        raise UserError(
            f"--institution: expected one of {', '.join(known)}, found {given}; no patient is of one of these, as "
            f"`split: {{institutions: {model.about['drawn']}}}` made them up: use a model that needs no "
            "`--institution`, or train this one with `split: {institutions: sites}`."
        )
    raise UserError(
        f"--institution: expected the institution of the patients, as its own moments scale their features, found "
        f"{given}; known: {', '.join(known)}."
    )
