"""Made-up experiments on disk, as their outlines name them: what the paper's figures are drawn from in tests."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainfed.configuration._loading import shipped_settings
from brainfed.configuration.stages.registry import stage_settings
from brainfed.graphs import GraphSettings
from brainfed.imaging import FeatureSettings
from brainfed.inpainting import FusingSettings
from brainfed.methods import METHODS, inpainter_of
from brainfed.papers import BESIDE
from brainfed.reporting import ExperimentOutline, read_experiment
from brainfed.runtime import canonical_json, read_arrays, write_arrays, write_table, write_text, write_tsv

REPEATS, FOLDS, SUBJECTS, FEATURES, GENERATED = 2, 5, 200, 66, 100
SENT = 10_137_600
TITLES = {"fedni": "FedNI", "fedgcn": "FedGCN", "fedsage-plus": "FedSage+", "ridge": "Ridge", "fedmlp": "FedMLP",
          "centralgcn": "CentralGCN", "localgcn": "LocalGCN", "fedni-centroids": "FedNI with centroids"}  # fmt: skip
Spec = Mapping[str, Any]


def read(outline: Mapping[str, Any]) -> ExperimentOutline:
    """An experiment as the scripts that draw it read it."""
    return read_experiment(outline, BESIDE)


def variant_outline(folder: Path, name: str, method: str, *, repeats: int = REPEATS, **given: Any) -> dict[str, Any]:
    """One variant with its files: `inpainting`, `fusing`, `graph`, `settings` hold what differs from the defaults."""
    own = folder / name
    known = METHODS[method]
    fusing = {**known.options.get("fused", {}), **given.get("fusing", {})}
    trained = inpainter.settings if (inpainter := inpainter_of(known)) else None
    stages = {
        "features": asdict(FeatureSettings(**given.get("features", {}))),
        "graph": asdict(GraphSettings(**given.get("graph", {}))) if "graph" in stage_settings(known) else {},
        "inpainting": asdict(trained(**given.get("inpainting", {}))) if trained else {},
        "fusing": asdict(FusingSettings(**fusing)) if trained else {},
    }
    outline = {
        "name": name,
        "method": method,
        "method_title": TITLES[method],
        "family": "linear" if method == "ridge" else "federated",
        "settings": asdict(known.settings(**given.get("settings", {}))),
        "shipped": shipped_settings(known),
        "stages": stages,
        "fused": [],
        "inpainting": {"histories": [], "costs": [], "timings": []},
        "fidelity": [],
    }
    for key, file in (("costs", "cost.json"), ("timings", "timing.json"), ("histories", "history.parquet")):
        outline[key] = [str(own / f"repeat-{repeat}" / file) for repeat in range(repeats)]
    for repeat in range(repeats):
        _write_training(own / f"repeat-{repeat}", outline["settings"], repeat)
    outline["feature_files"] = [write_features(folder)]
    if trained:
        for repeat in range(repeats):
            part = own / f"fused-{repeat}.safetensors"
            write_fused(part, float(given.get("spread", 0.35)), folder)
            outline["fused"].append(str(part))
            cost, timing = own / f"inpainting-{repeat}.json", own / f"inpainting-timing-{repeat}.json"
            counts = {
                "parameters": 4_080_000,
                "discriminator_parameters": 950_000,
                "rounds": 30,
                "local_epochs": 10,
                "operations": 29_000_000_000_000,
            }
            sent = {"stage": "inpainting", "tensors": 150, "rounds": 30}
            crossings = [
                crossing("encoder-0.weight", "features x hidden-0", way, SENT, **sent) for way in ("upload", "download")
            ]
            write_text(cost, canonical_json({"counts": counts, "crossings": crossings}))
            timing_of = {"seconds": 300.0 + 20 * repeat, "peak_memory_mb": 900.0, "device": "cpu"}
            write_text(timing, canonical_json(timing_of))
            outline["inpainting"]["costs"].append(str(cost))
            outline["inpainting"]["timings"].append(str(timing))
    return outline


def some_readings(folder: Path) -> list[tuple[dict[str, Any], float, float]]:
    """Variants (outline, accuracy, AUC) of three readings beside the shipped one; printed .600, .655, .630 and .644."""
    rfe, graph = {"selection": "rfe"}, {"embedding": "none", "distance": "correlation"}
    told: tuple[tuple[str, Spec, float, float, float | None, float], ...] = (
        ("", {}, 0.62, 0.635, 0.68, 0.644),
        ("-dropout", {"settings": {"dropout": 0.3}}, 0.60, 0.645, 0.66, 0.634),
        ("-correlation", {"graph": graph}, 0.61, 0.655, None, 0.664),
        ("-parisot", {"features": rfe, "graph": graph}, 0.57, 0.625, 0.66, 0.614),
    )
    found = []
    for end, given, *accuracies in told:
        for method, accuracy in zip(("localgcn", "centralgcn", "fedmlp", "fedgcn"), accuracies, strict=True):
            if accuracy is None:
                continue
            own = dict(given)
            if method == "centralgcn":
                own["graph"] = {**given.get("graph", {}), "scope": "global"}
            if method == "fedmlp":
                own.pop("graph", None)
            found.append((variant_outline(folder, method + end, method, **own), accuracy, accuracy + 0.04))
    return found


def crossing(name: str, axes: str, direction: str = "upload", size: int = 1000, **changes: Any) -> dict[str, Any]:
    """A row of the ledger."""
    usual = {"stage": "classifier", "to": "server", "shape": "66x256", "tensors": 2, "rounds": 1}
    return {"name": name, "direction": direction, "axes": axes, "bytes": size} | usual | changes


def _write_training(folder: Path, settings: Mapping[str, Any], repeat: int) -> None:
    counts = {"parameters": 474_594, "rounds": 10, "local_epochs": 10, "first_layer_operations": 127_543_680_000}
    crossings = [crossing("weight-0", "features x hidden-0", size=SENT, tensors=150, rounds=30)]
    write_text(folder / "cost.json", canonical_json({"counts": counts, "crossings": crossings}))
    seconds = {"seconds": 40.0 + repeat, "peak_memory_mb": 500.0, "device": "cpu"}
    write_text(folder / "timing.json", canonical_json(seconds))
    speed = 0.012 * float(settings.get("local_epochs", 1)) ** 0.6
    rounds = np.arange(1, int(settings.get("rounds", 0)) + 1)
    rows = [
        (fold, institution, number, 0.69 * np.exp(-speed * number), 0.62 + 0.05 * np.exp(-3 * speed * number)
         + 0.002 * speed * number * 10, 0.655 - 0.1 * np.exp(-4 * speed * number) - 0.002 * speed * number)
        for fold in range(FOLDS) for institution in ("institution-1", "institution-2") for number in rounds
    ]  # fmt: skip
    columns = ["fold", "institution", "round", "training_loss", "test_loss", "test_accuracy"]
    write_table(folder / "history.parquet", pd.DataFrame(rows, columns=columns))


def write_features(folder: Path) -> str:
    """(n, d) features of low rank in (-1, 1), like correlations."""
    path = folder / "features.safetensors"
    if not path.exists():
        random = np.random.default_rng(0)
        scores = random.standard_normal((SUBJECTS, 6))
        values = np.tanh(0.25 + 0.2 * scores @ random.standard_normal((6, FEATURES)) * 0.6
                         + 0.15 * random.standard_normal((SUBJECTS, FEATURES)))  # fmt: skip
        subjects = [f"s{number:03d}" for number in range(SUBJECTS)]
        write_arrays(path, {"features": values.astype(np.float32)}, {"subjects": subjects})
    return str(path)


def write_fused(path: Path, spread: float, folder: Path, subjects: int = SUBJECTS) -> None:
    """A fused graph whose generated nodes lie `spread` times as far from their mean as the real ones from theirs.

    Every generated node has edges in both directions to its parent and the three subjects after it.
    """
    real = read_arrays(write_features(folder)).arrays["features"]
    parent = np.arange(GENERATED) * subjects // GENERATED
    features = real.mean(axis=0) + spread * (real[:GENERATED] - real[:GENERATED].mean(axis=0))
    node = subjects + np.arange(GENERATED)
    near = [(parent + step) % subjects for step in range(4)]
    row = np.concatenate([*([node] * 4), *near, np.arange(subjects + GENERATED)])
    column = np.concatenate([*near, *([node] * 4), np.arange(subjects + GENERATED)])
    order = np.lexsort((column, row))
    arrays = {
        "row": row[order],
        "column": column[order],
        "weight": np.ones(len(row), dtype=np.float32),
        "features": features.astype(np.float32),
        "institution": np.zeros(GENERATED, dtype=np.int64),
        "parent": parent,
        "sex": np.zeros(GENERATED, dtype=np.int64),
        "age": np.full(GENERATED, 20.0),
        "count": np.full(subjects, 1.25),
    }
    write_arrays(path, arrays, {"subjects": [f"s{number:03d}" for number in range(subjects)], "settings": {}})


def write_runs(path: Path, means: Mapping[str, tuple[float, float]], repeats: int = REPEATS) -> None:
    """A table of runs: (accuracy, AUC) means with a common wobble of the folds and a smaller one of each variant."""
    random = np.random.default_rng(3)
    folds = 0.03 * random.standard_normal((repeats, FOLDS))
    rows = []
    for name, pair in means.items():
        own = 0.008 * random.standard_normal((repeats, FOLDS))
        for metric, mean in zip(("accuracy", "auc"), pair, strict=True):
            for repeat, fold in itertools.product(range(repeats), range(FOLDS)):
                wobble = folds - folds.mean() + own - own.mean()
                rows.append((name, repeat, fold, "institution", metric, mean + wobble[repeat, fold]))
    write_tsv(path, pd.DataFrame(rows, columns=["variant", "repeat", "fold", "scope", "metric", "value"]))


def experiment(
    folder: Path,
    figure: str,
    variants: Sequence[tuple[dict[str, Any], float, float]],
    *,
    name: str = "experiment",
    reference: str = "",
    axes: Sequence[str] = (),
    paper: str = "",
    count: int = 5,
    repeats: int = REPEATS,
) -> dict[str, Any]:
    """An experiment's outline from (variant, accuracy, AUC)."""
    subjects = [f"s{number:03d}" for number in range(SUBJECTS)]
    splits = []
    for repeat in range(repeats):
        institution = [f"institution-{number % count}" for number in range(SUBJECTS)]
        fold = [number // count % FOLDS for number in range(SUBJECTS)]
        splits.append(str(folder / f"{name}-split-{repeat}.parquet"))
        write_table(splits[-1], pd.DataFrame({"subject": subjects, "institution": institution, "fold": fold}))
    runs = folder / f"{name}-runs.tsv"
    write_runs(runs, {variant["name"]: (accuracy, auc) for variant, accuracy, auc in variants}, repeats)
    return {
        "name": name,
        "title": name,
        "cohort": "abide",
        "figure": figure,
        "axes": list(axes),
        "paper": paper,
        "group": "",
        "protocol": "transductive",
        "labels": "true",
        "reference": reference or variants[0][0]["name"],
        "repeats": repeats,
        "split": {"validation": "folds", "institutions": "random", "folds": FOLDS, "stratify": "label", "count": count},
        "splits": splits,
        "tables": {"runs": str(runs)},
        "figures": {},
        "variants": [variant for variant, _, _ in variants],
    }


def estimate(mean: float, error: float = 0.01) -> dict[str, Any]:
    return {"mean": mean, "error": error, "parents": 60}


def write_fidelity(path: Path, generated: float = 0.12, baseline: float = 0.20) -> str:
    """A fidelity file whose centred cosine is `generated` beside that of the mean neighbour, `baseline`."""

    def score(mean: float | None) -> dict[str, Any]:
        none = {"mean": None, "error": None, "parents": 0}
        held = none if mean is None else estimate(mean)
        return {"to_all": held, "matched": held}

    def cosine(own: float, neighbour: float, institution: float | None, parent: float) -> dict[str, Any]:
        others = {"mean_neighbour": neighbour, "institution_mean": institution, "parent": parent}
        gains = {name: score(None if value is None else own - value) for name, value in others.items()}
        return {"generated": score(own), "baselines": {name: score(value) for name, value in others.items()},
                "gains": gains}  # fmt: skip

    def agreement(own: float, parent: float, chance: float) -> dict[str, Any]:
        return {"generated": estimate(own), "parent": estimate(parent), "chance": estimate(chance), "pairs": 90}

    bins = [{"predicted": 0.8 + 0.1 * step, "true": 7 + 0.5 * step, "error": 0.4, "subjects": 20} for step in range(8)]
    edge = {"precision": 0.2, "recall": 0.3}
    content = {
        "generated": 100, "parents": 60, "parents_without_missing": 2, "parents_without_visible": 1,
        "count": {
            "subjects": 200, "predicted_mean": 1.2, "true_mean": 9.5, "generated_mean": 0.5, "ratio_predicted": 0.13,
            "ratio_generated": 0.05, "predicted": {"pearson": 0.2, "spearman": 0.25},
            "visible_degree": {"pearson": 0.4, "spearman": 0.45}, "calibration": bins,
        },
        "feature": {
            "cosine": cosine(0.83, 0.85, 0.84, 0.74), "centred": cosine(generated, baseline, None, 0.09),
        },
        "phenotype": {"sex": agreement(0.8, 0.9, 0.72), "age": agreement(0.3, 0.5, 0.22)},
        "edges": {"generated": edge | {"f1": 0.24}, "random": edge | {"f1": 0.11},
                  "visible_neighbours": edge | {"f1": 0.31}, "pairs": 90, "predicted": 500, "true": 800},
    }  # fmt: skip
    write_text(path, canonical_json(content))
    return str(path)
