"""The card of a kept model: what it was trained on, how it scored held-out subjects, and what it is not for."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from brainfed.evaluation import metrics_of
from brainfed.prediction.model_file import EVERYBODY, FAR, MADE_UP, KeptFile

SHOWN = {"auc": "AUC", "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy"}
"""Metric -> its name on the card."""
LIBRARIES = ("python", "brainfed", "numpy", "scipy", "scikit-learn", "nilearn", "torch")

USE = """\
**This is not a medical device.** No authority has examined it. It must not decide on the diagnosis or the treatment of
anybody.

## Intended use

- Research: to score scans that were acquired and preprocessed as those below, to compare models, to plan a study.
- Not for people, scanners, atlases or preprocessing that are absent from the tables below. Nobody has tested it there.
- A score is no probability of a disease in a clinic: its training data have their own share of every class."""

PRIVACY = """\
## Privacy

The training was not differentially private: no privacy budget was spent, and none protects its subjects. The files hold
no subject's id and no subject's data, but weights, means and deviations over subjects. A model may still let others
guess who trained it: the audit in the run's report measures how well."""


def card(kept: KeptFile, predictions: pd.DataFrame, people: pd.DataFrame, project: str) -> str:
    """The text of a model's card, Markdown, from predictions of held-out subjects and the training subjects' people."""
    about, whole = kept.about, kept.parts[EVERYBODY]
    names, versions = about["class_names"], about["versions"]
    compared = f"{names[1]} against {names[0]}" if len(names) == 2 else "mean over classes, each against the others"
    parts = [
        f"# {about['title']} ({about['variant']}), trained on {about['cohort']}",
        USE,
        "## The model",
        _rows(("", ""), _facts(about, project)),
        "## Training data",
        _rows(("institution", *names), [(row["institution"], *row["subjects"]) for row in about["training"]]),
        _people(people),
        "## Scores of held-out subjects",
        "Each subject was scored by the model of a fold that had not seen it, all folds together. The model of all "
        f"subjects, which `brainfed predict` uses, has no held-out subjects. AUC: {compared}.",
        _rows(("institution", "subjects", *SHOWN.values()), _performance(predictions)),
        PRIVACY,
        "## Use it",
        _use(about, needs_institution=whole.needs_institution),
        "## Software",
        ", ".join(f"{name} {versions[name]}" for name in LIBRARIES if name in versions) + ".",
        f"Scores of the folds and of the kept models differ by up to {about['largest_difference']:.1g}.",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(about: Mapping[str, Any], project: str) -> list[tuple[Any, ...]]:
    features, series = about["features"], about["series"]
    total = [sum(row["subjects"]) for row in about["training"]]
    kind = f"{features['connectivity']} connectivity"
    if features["connectivity"] == "tangent":
        kind += f", reference: {features['reference']}, shrinkage {features['shrinkage']:g}"
    return [
        ("study", project),
        ("method", f"{about['title']} (`{about['method']}`)"),
        ("predicts", f"{about['target']}: {', '.join(about['class_names'])}"),
        ("trained on", f"{sum(total)} subjects of {len(total)} institutions"),
        ("features", f"{kind} of {len(about['regions'])} regions{', Fisher z' if features['fisher_z'] else ''}"),
        ("atlas", series["atlas"]),
        ("region series", f"at least {series['min_timepoints']} time points; {_preparation(series)}"),
    ]


def _preparation(series: Mapping[str, Any]) -> str:
    if series["source"] == "timeseries":
        return "as the study received them; prepare new ones in the same way"
    own = series["extraction"]
    band = " to ".join("open" if edge is None else f"{edge:g} Hz" for edge in (own["high_pass"], own["low_pass"]))
    steps = [name for name in ("detrend", "standardise") if own[name]]
    return f"extracted by brainfed from images (band-pass {band}; {', '.join(steps) or 'no other step'})"


def _people(people: pd.DataFrame) -> str:
    age, sex = people["age"].dropna(), people["sex"].dropna()
    said = []
    if len(age):
        said.append(f"Age: mean {age.mean():.1f} years, standard deviation {age.std():.1f} ({len(age)} known).")
    if len(sex):
        said.append(f"Female: {(sex == 'female').mean():.0%} ({len(sex)} known).")
    return " ".join(said) or "Age and sex are unknown."


def _performance(predictions: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Institution, number of its tested subjects, and metrics; the last row is of all."""
    lines = []
    for name, rows in [*predictions.groupby("institution"), ("all", predictions)]:
        metrics = metrics_of(rows)
        lines.append((name, len(rows), *(f"{metrics[key]:.3f}".replace("nan", "–") for key in SHOWN)))
    return lines


def _use(about: Mapping[str, Any], *, needs_institution: bool) -> str:
    flag = " --institution NAME" if needs_institution else ""
    names = ", ".join(f"`{name}`" for name in about["institutions"])
    own = f"NAME is one of {names}: its own training subjects scale the patients' features. "
    if about["drawn"] in MADE_UP:
        own += "These institutions are made up, so that no patient is of one of them: use another model. "
    spread = about["distance"]
    means = ", ".join(f"{mean:.4g}" for mean in spread["means"])
    where = f" at these institutions ({means})" if len(spread["means"]) > 1 else f" ({means})"
    return (
        f"```bash\nbrainfed predict FOLDER --series patient.csv{flag}\n```\n\n"
        f"{own if needs_institution else ''}The column `distance` measures how far a scan lies from the centre of the "
        f"training data. Zero is the mean of {spread['subjects']} held-out scans{where}, one is their standard "
        f"deviation ({spread['sd']:.3g}). {spread['beyond']} of them lie beyond {FAR:g} or -{FAR:g}, where a score "
        "says little. A score within may be wrong: another scanner, a drug or movement need not change the distance."
    )


def _rows(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
