"""The artefact of public graphs, and the tables that other cohorts have of their scans."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.cohort.quality.without_scan import coverage_without_scan, quality_without_scan
from brainfed.graphs.tudataset.contents import contents
from brainfed.graphs.tudataset.read import joined, read_data_set
from brainfed.runtime.artefacts import write_arrays, write_table


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
    write_table(out.quality, quality_without_scan(ids, _checksums(ids, arrays), {}))
    write_table(out.coverage, coverage_without_scan())


def _checksums(ids: Sequence[str], arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
    """Graph -> a checksum that covers its id: equal graphs are different molecules, not one person twice."""
    return {
        subject: hashlib.sha256(subject.encode() + held).hexdigest()
        for subject, held in zip(ids, contents(arrays), strict=True)
    }
