"""Files of region series for tests, and the tables of their subjects."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.runtime import write_arrays, write_table


def drawn_series(lengths: Sequence[int], regions: int = 4, seed: int = 0) -> list[np.ndarray]:
    """A (T, R) series of each length."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, regions)).astype(np.float32) for length in lengths]


def write_joined(path: Path, series: dict[str, np.ndarray]) -> Path:
    """Subject -> (T, R), as one artefact of series."""
    start = np.cumsum([0, *(len(held) for held in series.values())])
    metadata = {"subjects": list(series), "regions": [], "settings": {}, "crossings": []}
    write_arrays(path, {"start": start.astype(np.int64), "series": np.concatenate([*series.values()])}, metadata)
    return path


def write_people(folder: Path, subjects: Sequence[str], institution: Sequence[str], fold, diagnosis) -> None:
    """`split.parquet` and `participants.parquet` with rows in other orders; a diagnosis of None is unknown."""
    order = np.random.default_rng(0).permutation(len(subjects))
    people = pd.DataFrame(
        {
            "subject": list(subjects),
            "site": "one",
            "age": 20.0,
            "sex": pd.array(["male"] * len(subjects), dtype="string"),
            "diagnosis": pd.array(list(diagnosis), dtype="Int8"),
            "mean_fd": 0.1,
        }
    )
    split = pd.DataFrame({"subject": list(subjects), "institution": list(institution), "fold": fold})
    write_table(folder / "split.parquet", split.iloc[order])
    write_table(folder / "participants.parquet", people.iloc[order[::-1]])
