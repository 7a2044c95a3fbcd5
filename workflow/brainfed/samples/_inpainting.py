"""Inputs of the training of a generator of missing neighbours: no diagnosis (FedNI Sec. III-C.1)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainfed.graphs import Edges, GraphSettings, known_phenotypes
from brainfed.inpainting import InpaintingInputs
from brainfed.runtime import Streams, UserError, read_arrays
from brainfed.samples._reading import phenotypes_of, read_features, read_graph, read_people


def inpainting_inputs(
    *,
    split: Path | str,
    participants: Path | str | None,
    features: Path | str,
    graph: Path | str,
    graph_settings: GraphSettings,
    protocol: str,
    part: str,
    streams: Streams,
    correlations: bool = True,
) -> InpaintingInputs:
    """Read the inputs of one repeat or of one of its folds.

    Args:
        split: subject, institution, fold.
        participants: the columns of the phenotype table by which the graph compares; none where it compares by none.
        features: the features artefact of the repeat or the fold.
        graph: the population graph of the same repeat or fold.
        protocol: under `inductive` the generator does not learn from the subjects tested in the fold.
        part: `all` or `fold-f`.
        correlations: whether the features are plain correlations, which a generator learns unscaled.

    Raises:
        UserError: an artefact's subjects are not those of the split, or a feature is not finite.
    """
    people = read_people(split, participants).drop(columns="diagnosis", errors="ignore")
    subjects = tuple(people["subject"])
    institutions = tuple(sorted(people["institution"].unique()))
    known = phenotypes_of(people)
    site, sex, age = (known.or_unknown(name, len(people)) for name in ("site", "sex", "age"))
    tested = [part == f"fold-{fold}" for fold in people["fold"]]
    selected = read_arrays(graph, []).metadata.get("selected", [])
    return InpaintingInputs(
        subjects=subjects,
        institutions=institutions,
        institution=people["institution"].map({name: i for i, name in enumerate(institutions)}).to_numpy(np.int64),
        features=read_features(features, subjects),
        graph=read_graph(graph, subjects),
        graph_settings=known_phenotypes(graph_settings, site=site, sex=sex, age=age),
        site=site,
        sex=sex,
        age=age,
        fitted=np.logical_not(tested) if protocol == "inductive" else np.ones(len(subjects), dtype=np.bool_),
        part=part,
        streams=streams,
        selected=tuple(np.asarray(columns, dtype=np.int64) for columns in selected),
        correlations=correlations,
    )


def read_cut(path: Path | str, subjects: Sequence[str]) -> Edges:
    """The edges between institutions that were removed from a graph of scope `global_cut`.

    Raises:
        UserError: the graph has another scope, or its subjects are not `subjects` in their order.
    """
    file = read_arrays(path, ["cut_row", "cut_column", "cut_weight"])
    if file.subjects != tuple(subjects):
        raise UserError(f"{path}: its subjects are not those of the split; delete the file and run again.")
    return Edges(file.arrays["cut_row"], file.arrays["cut_column"], file.arrays["cut_weight"].astype(np.float64))
