"""A made-up cohort as the files that the workflow's jobs read."""

from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.runtime import write_arrays, write_table
from scale.work import Work

SOURCES = 30
BLOCK = 500
"""Subjects whose features are drawn at once."""
FOLDS = 5
UNTESTED = -1


def write_cohort(folder: Path, work: Work) -> None:
    """Ages and sexes at random, institutions of equal size with five sites each, and features or series."""
    random = np.random.default_rng(0)
    place = np.arange(work.subjects)
    ids = [f"s{number:06d}" for number in place]
    institution = place * work.institutions // work.subjects
    fold = place % FOLDS
    split = {
        "subject": ids,
        "institution": [f"i{code:04d}" for code in institution],
        "fold": np.where(fold < work.folds, fold, UNTESTED),
    }
    write_table(folder / "split.parquet", pd.DataFrame(split))
    people = {
        "subject": ids,
        "site": [f"site-{code}" for code in institution * 5 + place % 5],
        "age": np.round(random.uniform(18, 80, work.subjects), 1),
        "sex": np.where(random.integers(0, 2, work.subjects), "male", "female"),
        "diagnosis": random.integers(0, 2, work.subjects),
        "mean_fd": 0.1,
    }
    write_table(folder / "participants.parquet", pd.DataFrame(people))
    if work.regions:
        _write_series(folder, ids, work, random)
    else:
        _write_features(folder, ids, work, random)


def _write_features(folder: Path, ids: list[str], work: Work, random: np.random.Generator) -> None:
    """Correlated features in (-1, 1)."""
    sources = random.standard_normal((SOURCES, work.features), dtype=np.float32) / 10
    rows = np.empty((work.subjects, work.features), dtype=np.float32)
    for start in range(0, work.subjects, BLOCK):
        block = rows[start : start + BLOCK]
        strengths = random.standard_normal((len(block), SOURCES), dtype=np.float32)
        np.tanh(strengths @ sources + random.standard_normal(block.shape, dtype=np.float32) / 3, out=block)
    write_arrays(folder / "features.safetensors", {"features": rows}, {"subjects": ids})


def _write_series(folder: Path, ids: list[str], work: Work, random: np.random.Generator) -> None:
    """Region series of common sources and noise, all of them usable."""
    sources = random.standard_normal((SOURCES, work.regions), dtype=np.float32)
    series = {}
    for subject in ids:
        strengths = random.standard_normal((work.volumes, SOURCES), dtype=np.float32)
        noise = random.standard_normal((work.volumes, work.regions), dtype=np.float32)
        series[subject] = strengths @ sources + 5 * noise
    regions = [str(number) for number in range(work.regions)]
    write_arrays(folder / "series.safetensors", series, {"regions": regions})
    write_table(folder / "quality.parquet", pd.DataFrame({"subject": ids, "problem": ""}))
