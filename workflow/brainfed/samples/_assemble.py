"""Read one repeat's artefacts, join them by subject id, and hide every test label."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainfed.inpainting import read_fused
from brainfed.runtime import IntArray, Streams, read_arrays
from brainfed.samples._inputs import MethodInputs, read_views
from brainfed.samples._labelled_subjects import HIDDEN, hidden_labels
from brainfed.samples._reading import phenotypes_of, read_features, read_graph, read_people, read_public
from brainfed.samples._series import GraphInputs, PublicSeriesInputs, SeriesInputs, read_graph_samples, read_series


def true_labels(people: pd.DataFrame, labels: str, streams: Streams) -> IntArray:
    """(n,) diagnoses, -1 where unknown; `permuted` shuffles them inside every institution and fold.

    The shuffle is the null control. It keeps each cell's share of patients, as the stratified split made it: otherwise
    the institution itself would predict the label. Labelled subjects that no fold tests are one cell of an institution.
    """
    labelled = people["diagnosis"].notna()
    diagnosis = people["diagnosis"].where(labelled, -1).to_numpy(np.int64)
    if labels == "permuted":
        random = streams.numpy("permuted-labels")
        diagnosis = diagnosis.copy()
        for _, cell in people[labelled].groupby(["institution", "fold"]):
            diagnosis[cell.index] = random.permutation(diagnosis[cell.index])
    return diagnosis


def assemble(
    *,
    split: Path | str,
    participants: Path | str,
    features: Sequence[Path | str],
    graphs: Sequence[Path | str],
    labels: str,
    streams: Streams,
    fused: Sequence[Path | str] = (),
    classes: int = 2,
    folds: int = 0,
) -> tuple[MethodInputs, IntArray]:
    """Build a method's inputs, and separately the labels for the scores.

    Unlabelled subjects are nodes. A method without a graph does not receive them, as it could only scale by them.

    Args:
        split: subject, institution, fold.
        participants: the columns of the phenotype table that the method declares, with site and diagnosis.
        features: empty, one shared by the folds, or one a fold in order.
        graphs: the same for population graphs.
        labels: `true` or `permuted`.
        fused: empty, one graph with generated nodes shared by the folds, or one a fold in order.
        folds: number of folds F; 0: the last one tests a subject of the split.

    Returns:
        The inputs, with label -1 where tested or unlabelled, and the (n,) labels.
    """
    people = read_people(split, participants)
    if not graphs and not fused:
        people = _labelled(people)
    subjects = tuple(people["subject"])
    truth = true_labels(people, labels, streams)
    inputs = MethodInputs(
        **_columns(people, truth, folds),
        features=tuple(read_features(path, subjects) for path in features),
        graphs=tuple(read_graph(path, subjects) for path in graphs),
        phenotypes=phenotypes_of(people),
        streams=streams,
        fused=tuple(read_fused(path, subjects) for path in fused),
        classes=classes,
        views=read_views(features, subjects),
    )
    return inputs, truth


def assemble_graphs(
    *,
    split: Path | str,
    participants: Path | str,
    connectomes: Sequence[Path | str],
    labels: str,
    streams: Streams,
    classes: int = 2,
    folds: int = 0,
) -> tuple[GraphInputs, IntArray]:
    """Build the inputs of a method whose samples are graphs, and separately the labels for the scores.

    Arguments as of `assemble`; `connectomes` are one file shared by the folds, or one a fold in order.

    Returns:
        The inputs of the labelled subjects, with label -1 where tested, and the (n,) labels.

    Raises:
        UserError: a subject has no graph, or a graph is damaged.
    """
    people = _labelled(read_people(split, participants))
    truth = true_labels(people, labels, streams)
    graphs = tuple(read_graph_samples(path, tuple(people["subject"])) for path in connectomes)
    shapes = _shapes(people, read_arrays(connectomes[0], []).metadata.get("data_sets", []))
    known = _columns(people, truth, folds)
    return GraphInputs(**known, streams=streams, classes=classes, graphs=graphs, shapes=shapes), truth


def assemble_series(
    *,
    split: Path | str,
    participants: Path | str,
    series: Path | str,
    labels: str,
    streams: Streams,
    classes: int = 2,
    folds: int = 0,
    public: Path | str | None = None,
) -> tuple[SeriesInputs, IntArray]:
    """Build the inputs of a method whose samples are region series, and separately the labels for the scores.

    Arguments as of `assemble`. All folds share the file `series`; `public` are the public subjects of all folds, of a
    method that needs them.

    Returns:
        The inputs of the labelled subjects, with label -1 where tested, `PublicSeriesInputs` if there are public ones;
        and the (n,) labels.

    Raises:
        UserError: a subject has no series, a series is damaged, or the table of public subjects is.
    """
    people = _labelled(read_people(split, participants))
    truth = true_labels(people, labels, streams)
    start, values = read_series(series, tuple(people["subject"]))
    known = {**_columns(people, truth, folds), "start": start, "series": values, "streams": streams, "classes": classes}
    if public is None:
        return SeriesInputs(**known), truth
    mask = read_public(public, known["subjects"], known["labels"] != HIDDEN)
    return PublicSeriesInputs(**known, public=mask), truth


def _shapes(people: pd.DataFrame, data_sets: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, int], ...]:
    """(M) features and classes of the institutions' data sets, the most of several; empty without data sets."""
    if not data_sets:
        return ()
    shape = {each["name"]: (int(each["features"]), int(each["classes"])) for each in data_sets}
    shapes = [[shape[site] for site in own["site"].unique()] for _, own in people.groupby("institution")]
    return tuple((max(features for features, _ in own), max(classes for _, classes in own)) for own in shapes)


def _labelled(people: pd.DataFrame) -> pd.DataFrame:
    return people[people["diagnosis"].notna()].reset_index(drop=True)


def _columns(people: pd.DataFrame, truth: IntArray, folds: int) -> dict[str, Any]:
    """What all samples know of their subjects: ids, institutions, folds, and labels with those of tests hidden."""
    institutions = tuple(sorted(people["institution"].unique()))
    fold = people["fold"].to_numpy(np.int64)
    return {
        "subjects": tuple(people["subject"]),
        "institutions": institutions,
        "institution": people["institution"].map({name: i for i, name in enumerate(institutions)}).to_numpy(np.int64),
        "fold": fold,
        "labels": hidden_labels(truth, fold, folds),
    }
