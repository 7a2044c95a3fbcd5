"""The artefact of public graphs, and the tables that other cohorts have of their scans."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.graphs.tudataset.contents import contents
from brainfed.graphs.tudataset.read import joined, read_data_set
from brainfed.runtime.artefacts import write_arrays, write_table

UNKNOWN = ("timepoints", "volumes", "tr", "header_tr", "mean_fd", "tsnr")
"""Measures of a scan, which a graph has not."""
COVERAGE = {"subject": "str", "region": "str", "coverage": "float64"}


@dataclass(frozen=True)
class GraphFiles:
    """Paths of a cohort of graphs: the graphs, and empty tables of quality and coverage."""

    graphs: str | Path
    quality: str | Path
    coverage: str | Path


def write_graphs(folders: Mapping[str, str], subjects: Mapping[str, Sequence[str]], out: GraphFiles) -> None:
    """Read and write all graphs; the arrays are those of `samples.graph_samples.GraphSamples`.

    Args:
        folders: data set -> folder of its text files.
        subjects: data set -> ids of its graphs, in their order.
        out: paths to write.

    Raises:
        UserError: a data set cannot be read.
    """
    order = sorted(folders, key=lambda name: subjects[name][0])
    data_sets = [read_data_set(folders[name], name, len(subjects[name])) for name in order]
    arrays = joined(data_sets)
    ids = [subject for name in order for subject in subjects[name]]
    described = [
        {
            "name": data.name,
            "graphs": len(data),
            "features": data.nodes.shape[1],
            "by_degree": data.by_degree,
            "classes": data.classes,
        }
        for data in data_sets
    ]
    write_arrays(out.graphs, arrays, {"subjects": ids, "data_sets": described, "crossings": []})
    write_table(out.quality, _quality(ids, arrays))
    write_table(out.coverage, pd.DataFrame({"subject": [], "region": [], "coverage": []}).astype(COVERAGE))


def _quality(ids: Sequence[str], arrays: Mapping[str, NDArray[np.generic]]) -> pd.DataFrame:
    """One row a graph. Its checksum covers its id: equal graphs are different molecules, not one person twice."""
    checksums = [
        hashlib.sha256(subject.encode() + held).hexdigest() for subject, held in zip(ids, contents(arrays), strict=True)
    ]
    return pd.DataFrame(
        {
            "subject": list(ids),
            **dict.fromkeys(UNKNOWN, np.nan),
            "constant_regions": 0,
            "empty_regions": 0,
            "runs": 1,
            "checksum": checksums,
            "resampled": "",
            "suspicion": "",
            "problem": "",
        }
    )
