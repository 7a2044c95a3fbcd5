"""`brainfed predict`: score new patients by a kept model, and say how far each lies from the training data."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.methods.registry import METHODS
from brainfed.prediction.distances import FAR, distance_of
from brainfed.prediction.features import features_of
from brainfed.prediction.model_file import MADE_UP, KeptFile, Part, part_name, read_model
from brainfed.prediction.patients import Patient, read_patients
from brainfed.runtime.artefacts import write_tsv
from brainfed.runtime.entry import resolve
from brainfed.runtime.errors import UserError
from brainfed.runtime.score_kinds import predicted_classes, score_columns
from brainfed.samples.kept.fitted_model import score_at


def predict(given: argparse.Namespace) -> int:
    """Print or write the table; 1 if a file or an argument cannot be used, else 0."""
    try:
        model = read_model(_file_of(given.model))
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
        model: the kept model.
        files: region series.
        fold: number of the fold whose model scores, from 0; None: the model of everybody.
        institution: the patients' institution.

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
    found = score_at(part.model, code, features, about["settings"], resolve(method.capabilities.model))
    names, columns = about["class_names"], score_columns(about["class_names"])
    distance = distance_of(float(np.linalg.norm(found.rows[0])), about["distance"], code)
    return {
        "file": patient.name,
        **dict(zip(columns, found.scores[0, -len(columns) :].tolist(), strict=True)),
        "kind": str(about["kind"]),
        "predicted": names[int(predicted_classes(found.scores, about["kind"])[0])],
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


def _file_of(folder: Path) -> Path:
    path = folder / "model.safetensors"
    if not path.is_file():
        raise UserError(
            f"{folder}: expected the folder of a kept model, found no model.safetensors in it; `snakemake models` "
            "writes results/COHORT/models/VARIANT for variants under `models`."
        )
    return path


def _part(model: KeptFile, fold: int | None) -> Part:
    part = model.parts.get(part_name(fold))
    if part is None:
        raise UserError(
            f"--fold: expected a number from 0 to {model.about['folds'] - 1}, found {fold}; leave it out for the "
            "model of all training subjects."
        )
    return part


def _institution(model: KeptFile, part: Part, name: str | None) -> int | None:
    known, found = model.about["institutions"], "none" if name is None else repr(name)
    if not part.needs_institution:
        if name is not None:
            raise UserError(
                f"--institution: expected none, as this model scores the patients of all institutions alike, found "
                f"{found}; leave it out."
            )
        return None
    if name not in known and model.about["drawn"] in MADE_UP:
        raise UserError(
            f"--institution: expected one of {', '.join(known)}, found {found}; no patient is of one of these, as "
            f"`split: {{institutions: {model.about['drawn']}}}` made them up: use a model that needs no "
            "`--institution`, or train this one with `split: {institutions: sites}`."
        )
    if name not in known:
        raise UserError(
            f"--institution: expected the institution of the patients, as its own moments scale their features, found "
            f"{found}; known: {', '.join(known)}."
        )
    return int(known.index(name))
