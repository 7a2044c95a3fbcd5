"""A study between made-up sites that has ended: its config, predictions of every site, and what the sites send."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from brainfed.runtime import write_table
from brainfed.sites._outcome_page import outcome_outline
from brainfed.sites._scores import site_scores
from brainfed.sites.study import StudyPlace

VARIANTS = ("ridge-local", "ridge-federated", "fedtangent")
FOLDS, REPEATS = 5, 2
SITES = {"berlin": (20, 25), "madrid": (28, 22), "oslo": (15, 15)}
"""Site -> its subjects of each class."""


def write_study(folder, sites=SITES, folds=FOLDS, repeats=REPEATS, cohort=None, experiments=None):
    """A study's config in a folder."""
    study = {
        "project": "three-hospitals",
        "cohorts": {"rest": {"source": "timeseries", "atlas": "schaefer200", "regions": 200} | (cohort or {})},
        "split": {"institutions": "sites", "folds": folds, "repeats": repeats},
        "graph": {"scope": "local"},
        "experiments": experiments or {"methods": {"variants": list(VARIANTS), "reference": "ridge-local"}},
        "study": {"sites": list(sites), "address": "hub.example.org:9092"},
    }
    path = Path(folder) / "study.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return StudyPlace.of(path)


def predictions(site, classes, variant, repeat, folds=FOLDS, names=()):
    """Made-up predictions of one site's subjects; those of a variant and repeat are always the same."""
    random = np.random.default_rng([VARIANTS.index(variant), repeat, sum(site.encode())])
    label = np.repeat(np.arange(len(classes)), classes)
    fold = np.random.default_rng([repeat, len(label)]).permutation(len(label)) % folds
    signal = random.standard_normal((len(label), len(classes)))
    signal[np.arange(len(label)), label] += 0.8 + 0.3 * VARIANTS.index(variant)
    scores = np.exp(signal) / np.exp(signal).sum(axis=1, keepdims=True)
    held = {f"score-{name}": scores[:, code] for code, name in enumerate(names)} or {"score": scores[:, 1]}
    subjects = [f"{site}-{number:03d}" for number in range(len(label))]
    return pd.DataFrame(
        {"subject": subjects, "institution": site, "fold": fold, "kind": "probability", "label": label, **held}
    )


def sent(folder, sites=SITES, folds=FOLDS, repeats=REPEATS, names=()):
    """Site -> the rows that it sends, and the predictions of all sites together."""
    rows, everybody = {}, []
    for site, classes in sites.items():
        runs = [(variant, repeat) for variant in VARIANTS for repeat in range(repeats)]
        files = [str(Path(folder) / site / f"{variant}-{repeat}.parquet") for variant, repeat in runs]
        for (variant, repeat), file in zip(runs, files, strict=True):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            table = predictions(site, classes, variant, repeat, folds, names)
            write_table(file, table)
            everybody.append(table.assign(variant=variant, repeat=repeat))
        rows[site] = site_scores(runs, files)
    return rows, pd.concat(everybody, ignore_index=True)


def outline_of(folder, sites=SITES, folds=FOLDS, repeats=REPEATS, names=(), cohort=None, scores=None, **study):
    """What the page of a study shows."""
    place = write_study(folder, sites, folds, repeats, cohort, **study)
    rows = sent(folder, sites, folds, repeats, names)[0] if scores is None else scores
    return outcome_outline(place, rows, 412, "24 November 2026, 19:40")
