"""Read one repeat's artefacts, join them by subject id, and hide every test label."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.graphs.graph import Graph
from brainfed.inpainting.fused import FusedGraph
from brainfed.runtime.artefacts import ArrayFile, read_arrays, read_table
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams
from brainfed.training.inputs import FloatArray, IntArray, MethodInputs, Phenotypes

SEX_CODES = {"female": 0, "male": 1}


def read_people(split: Path | str, participants: Path | str) -> pd.DataFrame:
    """The split's subjects with their phenotype, in ascending order of id.

    Returns:
        subject, institution, fold, site, age, sex, diagnosis, mean_fd.

    Raises:
        UserError: a subject of the split is not among the participants.
    """
    drawn = read_table(split, ["subject", "institution", "fold"])
    known = read_table(participants, ["subject", "site", "age", "sex", "diagnosis", "mean_fd"])
    people = drawn.merge(known, on="subject", how="left", validate="one_to_one", indicator=True)
    strangers = people.loc[people["_merge"] != "both", "subject"]
    if len(strangers):
        raise UserError(
            f"{split}: subject {strangers.iloc[0]!r} is not in {participants}; delete the split, run again."
        )
    return people.drop(columns="_merge").sort_values("subject", ignore_index=True)


def phenotypes_of(people: pd.DataFrame) -> Phenotypes:
    """Codes and numbers of the non-imaging columns; -1 or NaN where unknown."""
    sites = sorted(people["site"].unique())
    return Phenotypes(
        site=people["site"].map({site: code for code, site in enumerate(sites)}).to_numpy(np.int64),
        sex=np.asarray(people["sex"].map(SEX_CODES).fillna(-1), dtype=np.int64),
        age=people["age"].to_numpy(np.float64),
        mean_fd=people["mean_fd"].to_numpy(np.float64),
    )


def true_labels(people: pd.DataFrame, labels: str, streams: Streams) -> IntArray:
    """(n,) diagnoses; `permuted` shuffles them inside every institution and fold (the null control).

    The shuffle keeps each cell's share of patients, as the stratified split made it: otherwise the
    institution itself would tell the label.
    """
    diagnosis = people["diagnosis"].to_numpy(np.int64)
    if labels == "permuted":
        random = streams.numpy("permuted-labels")
        diagnosis = diagnosis.copy()
        for _, cell in people.groupby(["institution", "fold"]):
            diagnosis[cell.index] = random.permutation(diagnosis[cell.index])
    return diagnosis


def align(file: ArrayFile, name: str, subjects: Sequence[str], path: Path | str) -> NDArray[np.generic]:
    """Rows of an array in the order of `subjects`.

    Raises:
        UserError: a subject is missing, or a value is not finite.
    """
    place = {subject: row for row, subject in enumerate(file.subjects)}
    absent = [subject for subject in subjects if subject not in place]
    if absent:
        raise UserError(f"{path}: subject {absent[0]!r} is missing; delete the file and run again.")
    rows = file.arrays[name][[place[subject] for subject in subjects]]
    if not np.isfinite(rows).all():
        raise UserError(
            f"{path}: the values of subject {subjects[int(np.argmin(np.isfinite(rows).all(axis=1)))]!r} "
            "are not finite; delete the file and run again."
        )
    return rows


def assemble(
    *,
    split: Path | str,
    participants: Path | str,
    features: Sequence[Path | str],
    graphs: Sequence[Path | str],
    labels: str,
    streams: Streams,
    fused: Sequence[Path | str] = (),
) -> tuple[MethodInputs, IntArray]:
    """Build a method's inputs, and apart from them the labels that only the scores may see.

    Args:
        split: subject, institution, fold.
        participants: the phenotype artefact.
        features: none, one shared by the folds, or one a fold in order.
        graphs: the same for population graphs.
        labels: `true` or `permuted`.
        streams: of the repeat.
        fused: none, one graph with generated nodes shared by the folds, or one a fold in order.

    Returns:
        The inputs with labels -1 where tested, and the (n,) labels.
    """
    people = read_people(split, participants)
    subjects = tuple(people["subject"])
    institutions = tuple(sorted(people["institution"].unique()))
    fold = people["fold"].to_numpy(np.int64)
    truth = true_labels(people, labels, streams)
    hidden = np.where(np.arange(fold.max() + 1)[:, None] == fold[None, :], -1, truth[None, :])
    inputs = MethodInputs(
        subjects=subjects,
        institutions=institutions,
        institution=people["institution"].map({name: i for i, name in enumerate(institutions)}).to_numpy(np.int64),
        fold=fold,
        labels=hidden,
        features=tuple(read_features(path, subjects) for path in features),
        graphs=tuple(read_graph(path, subjects) for path in graphs),
        phenotypes=phenotypes_of(people),
        streams=streams,
        fused=tuple(read_fused(path, subjects) for path in fused),
    )
    return inputs, truth


def read_features(path: Path | str, subjects: Sequence[str]) -> FloatArray:
    """Features (n, d) in the order of `subjects`; errors as in `align`."""
    rows = align(read_arrays(path, ["features"]), "features", subjects, path)
    return np.asarray(rows, dtype=np.float32)


def read_graph(path: Path | str, subjects: Sequence[str]) -> Graph:
    """The graph with its nodes in the order of `subjects` and its edges in order of (row, column).

    Raises:
        UserError: its subjects are others.
    """
    file = read_arrays(path, ["row", "column", "weight"])
    place = {subject: position for position, subject in enumerate(subjects)}
    if sorted(file.subjects) != sorted(subjects):
        raise UserError(f"{path}: its subjects are not those of the split; delete the file and run again.")
    position = np.array([place[subject] for subject in file.subjects], dtype=np.int64)
    row, column = position[file.arrays["row"]], position[file.arrays["column"]]
    order = np.lexsort((column, row))
    return Graph(row[order], column[order], file.arrays["weight"][order], len(subjects))


def read_fused(path: Path | str, subjects: Sequence[str]) -> FusedGraph:
    """The graph of real and generated nodes.

    Raises:
        UserError: its subjects are not `subjects` in their order.
    """
    file = read_arrays(path)
    if file.subjects != tuple(subjects):
        raise UserError(f"{path}: its subjects are not those of the split; delete the file and run again.")
    return FusedGraph(**file.arrays)
