"""Ledger rows of exchanges outside the rounds of a federation, and of all stages of one run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from brainfed.federation import STAGES, Content, Ledger, columns, of_institutions, record_pool
from brainfed.runtime import IntArray, read_arrays
from brainfed.samples import MethodInputs, SeriesInputs

Row = dict[str, int | str]


def record_pooling(inputs: MethodInputs, ledger: Ledger, *phenotypes: str) -> None:
    """Record that a central method takes all labels out of the institutions, with these phenotypes or the features."""
    features = {} if phenotypes else {"features": (inputs.features[0].shape[1:], inputs.features[0].itemsize)}
    if len(inputs.institutions) > 1:
        record_pool(ledger, sizes_of(inputs.institution), features | columns(*phenotypes, "labels"))


def series_content(inputs: SeriesInputs, subjects: IntArray, prefix: str = "") -> Content:
    """Series and labels of subjects at these positions, for the ledger."""
    series = (int(inputs.lengths[subjects].sum()), inputs.regions)
    return {f"{prefix}series": (series, inputs.series.itemsize), f"{prefix}labels": ((len(subjects),), 1)}


def sizes_of(institution: IntArray) -> dict[int, int]:
    """Institution -> number of subjects, from (n,) codes."""
    codes, counts = np.unique(institution, return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def crossings_of_files(
    files: Sequence[Path | str], sizes: Mapping[int, int], *, remote: bool = False
) -> tuple[Row, ...]:
    """Rows that the features or the graph of a run sent between institutions, in the first fold with any.

    Features that all splits share name no institution; their rows get those of the run, whatever its method: the
    features crossed before the method read them.

    Args:
        files: of the features or the graph, one for all folds or one a fold.
        sizes: institution -> number of subjects.
        remote: whether other institutions are outside this run.
    """
    for file in files:
        rows = of_institutions(read_arrays(file, []).metadata["crossings"], sizes, remote=remote)
        if rows:
            return rows
    return ()


def in_order(*stages: Sequence[Row]) -> list[Row]:
    """The rows of all stages of a run, in the order of the stages; tensors with one entry a subject appear once.

    Features that a central graph compared are not sent again for training.
    """
    kept: dict[tuple[object, ...], Row] = {}
    for row in sorted((row for rows in stages for row in rows), key=lambda row: STAGES.index(row["stage"])):
        of_subjects = "subjects" in str(row["axes"]).split(" x ")
        key = ("name", "axes", "institutions", "bytes") if of_subjects else ("stage", "name")
        kept.setdefault((*(row[column] for column in key), row["direction"]), row)
    return list(kept.values())
