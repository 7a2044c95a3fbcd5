"""A subject's way: from an issue of its data to its scan, its connectivity and its scores."""

import base64
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from brainfed.cohort import ClassWords
from brainfed.evaluation import class_scores, predicted, read_predictions
from brainfed.imaging import FeatureSettings, connectivity, to_matrices
from brainfed.imaging.series import load_runs, load_series
from brainfed.reporting import read_cohort, rounded, used
from brainfed.runtime import write_json

# A connectivity matrix as a small picture, for a page that shows many.

SIDE = 64
"""Largest number of pixels of a side; of more regions, neighbours in the order of the atlas are averaged."""
REACH = 0.8
"""Correlation with the full colour."""
COLOURS = 32


def thumbnail(matrix: NDArray[np.float64]) -> str:
    """Correlations (R, R) as a PNG in base64, blue below and red above 0."""
    side = min(len(matrix), SIDE)
    edges = np.linspace(0, len(matrix), side + 1).astype(int)[:-1]
    sums = np.add.reduceat(np.add.reduceat(matrix, edges, axis=0), edges, axis=1)
    sizes = np.diff([*edges, len(matrix)])
    share = np.clip(sums / np.outer(sizes, sizes) / REACH, -1, 1)
    levels = np.rint((share + 1) / 2 * (COLOURS - 1)).astype(np.uint8)
    picture = Image.fromarray(levels, mode="P")
    colours = matplotlib.colormaps["RdBu_r"](np.linspace(0, 1, COLOURS))[:, :3]
    picture.putpalette(np.rint(255 * colours).astype(np.uint8).tobytes())
    file = BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


# The ways of all subjects that issues name.

MEASURED = {
    "mean_fd": ("mean framewise displacement (mm)", 1.0, 3),
    "kept_seconds": ("scan length (min)", 60.0, 2),
    "tsnr": ("temporal signal-to-noise ratio", 1.0, 1),
    "silent_regions": ("regions without signal", 1.0, 0),
    "typicality": ("correlation with the others\u2019 mean connectivity", 1.0, 2),
}
"""Column -> its title, divisor and decimals."""


def write_followed(
    cohort: Mapping[str, str],
    series: Sequence[str],
    predictions: Mapping[tuple[str, int], str],
    words: ClassWords,
    path: str,
    *,
    by_run: bool = False,
) -> None:
    """Follow the subjects of a cohort's issues, and write them as JSON.

    Args:
        cohort: paths called participants, included, measures and issues.
        series: the region series of all parts; empty without any.
        predictions: (variant, repeat) -> table.
        by_run: whether a subject's connectivity is the mean over its runs.
    """
    people = read_cohort(*(cohort[name] for name in ("participants", "included", "measures")))
    issues = pd.read_csv(cohort["issues"], sep="\t", dtype=str, keep_default_na=False)
    scored = read_predictions(list(predictions), list(predictions.values()))
    write_json(path, follow_subjects(people, issues, series, scored, words, load_runs(series) if by_run else {}))


def follow_subjects(
    people: pd.DataFrame,
    issues: pd.DataFrame,
    series: Sequence[str],
    predictions: pd.DataFrame,
    words: ClassWords,
    runs: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """What is known of every subject that an issue names, in ascending order of id.

    Args:
        people: as `reporting.read_cohort` reads them.
        issues: subject, kind, detail, action; rows without a subject concern a site.
        series: the region series of all parts; empty without any.
        predictions: of all variants, as `evaluation.read_predictions` reads them.
        runs: subject -> lengths of its runs, for connectivity that is the mean over runs.

    Returns:
        `mean`: a picture of the mean connectivity of the analysed subjects, or empty; `subjects`: a dictionary each, of
        builtins.
    """
    named = sorted(set(issues["subject"]) & set(people["subject"]))
    kept = used(people)
    pictures, mean = _pictures(people, named, series, runs or {})
    rows = people.set_index("subject")
    scores = _scores(predictions[predictions["subject"].isin(named)], words)
    return {
        "mean": mean,
        "subjects": [
            {
                "subject": subject,
                **_person(rows.loc[subject], words),
                "issues": issues.loc[issues["subject"] == subject, ["kind", "detail", "action"]].to_dict("records"),
                "quality": _quality(rows.loc[subject], kept),
                "connectivity": pictures.get(subject, ""),
                "scores": scores.get(subject, []),
            }
            for subject in named
        ],
    }


def _person(row: "pd.Series[Any]", words: ClassWords) -> dict[str, str]:
    return {
        "site": str(row["site"]),
        "age": f"{rounded(float(row['age']), 1)} years" if pd.notna(row["age"]) else "age not known",
        "sex": "" if words.target == "sex" else str(row["sex"]) if pd.notna(row["sex"]) else "sex not known",
        "class": words.singular[int(row["diagnosis"])] if pd.notna(row["diagnosis"]) else "no label",
        "reason": str(row["reason"]),
    }


def _quality(row: "pd.Series[Any]", kept: pd.DataFrame) -> list[dict[str, str]]:
    """Each measure beside the analysed subjects: the share of them with a lower value."""
    measures = []
    for column, (title, divisor, digits) in MEASURED.items():
        value, others = float(row[column]), kept[column].dropna().to_numpy(dtype=np.float64)
        if np.isfinite(value) and len(others):
            shown, median = (rounded(float(number) / divisor, digits) for number in (value, np.median(others)))
            below = f"{rounded(100 * float((others < value).mean()), 0)}\u00a0%"
            measures.append({"title": title, "value": shown, "median": median, "below": below})
    return measures


def _pictures(
    people: pd.DataFrame, named: Sequence[str], series: Sequence[str], runs: Mapping[str, Sequence[int]]
) -> tuple[dict[str, str], str]:
    usable = people[people["has_series"] & people["timepoints"].notna()]
    chosen = usable[usable["included"] | usable["subject"].isin(named)]
    if not series or chosen.empty:
        return {}, ""
    loaded, _ = load_series(series, sorted(chosen["subject"]))
    features = dict(zip(sorted(loaded), connectivity(loaded, FeatureSettings(), runs), strict=True))
    mean = np.mean([features[subject] for subject in chosen.loc[chosen["included"], "subject"]], axis=0)
    pictures = {subject: thumbnail(to_matrices(row)) for subject, row in features.items() if subject in set(named)}
    return pictures, thumbnail(to_matrices(mean))


def _scores(predictions: pd.DataFrame, words: ClassWords) -> Mapping[str, list[dict[str, Any]]]:
    """Subject -> a row a variant: mean score of the own class over the repeats that test it, and how often it won."""
    if predictions.empty:
        return {}
    label = predictions["label"].to_numpy(dtype=np.int64)
    own = class_scores(predictions)[np.arange(len(label)), label]
    table = predictions.assign(own=own, right=predicted(predictions) == label)
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for (subject, variant), rows in table.groupby(["subject", "variant"], sort=False):
        row = {
            "variant": str(variant),
            "score": rounded(float(rows["own"].mean()), 2),
            "kind": str(rows["kind"].iloc[0]),
            "of": words.singular[int(rows["label"].iloc[0])],
            "right": int(rows["right"].sum()),
            "tests": len(rows),
        }
        by_subject.setdefault(str(subject), []).append(row)
    return by_subject
