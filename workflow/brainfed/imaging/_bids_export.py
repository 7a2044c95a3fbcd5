"""Write series, correlations and coverage as BIDS files with XCP-D's names after BEP017 (a draft, not released)."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.imaging._connectivity import to_matrices
from brainfed.imaging._quality import defined_connectivity
from brainfed.imaging.series import load_runs, load_series, split_runs, varying_regions
from brainfed.runtime import Float32, Float64, read_table, write_text, write_tsv

BIDS_VERSION = "1.10.0"


@dataclass(frozen=True)
class ExportFiles:
    """Parts of a cohort's series: series, quality and coverage of each."""

    series: Sequence[str | Path]
    quality: Sequence[str | Path]
    coverage: Sequence[str | Path]


def export_bids(
    folder: str | Path, files: ExportFiles, atlas: str, sources: Mapping[str, Sequence[str]], by_run: bool
) -> None:
    """Write a BIDS derivative of every usable subject, part after part.

    Args:
        folder: target of `dataset_description.json` and `sub-*/`.
        sources: subject -> paths of the source images, named by BIDS.
        by_run: whether correlations are means over a subject's runs.
    """
    root = Path(folder)
    _write_json(
        root / "dataset_description.json",
        {
            "Name": "Region series and functional connectivity",
            "BIDSVersion": BIDS_VERSION,
            "DatasetType": "derivative",
            "GeneratedBy": [{"Name": "brainfed"}],
        },
    )
    label = re.sub(r"[^A-Za-z0-9]", "", atlas)
    for series_file, quality_file, coverage_file in zip(files.series, files.quality, files.coverage, strict=True):
        quality = read_table(quality_file, ["subject", "timepoints", "volumes", "tr", "runs", "problem"])
        known = quality.set_index("subject")
        subjects = list(known.index[known["problem"] == ""])
        series, regions = load_series([series_file], subjects)
        runs = load_runs([series_file]) if by_run else {}
        coverage = read_table(coverage_file, ["subject", "region", "coverage"]).groupby("subject")
        for subject in subjects:
            stem = f"{_shared_name(sources[subject])}_atlas-{label}"
            levels = [part for part in stem.split("_") if part.startswith(("sub-", "ses-"))]
            target = root.joinpath(*levels, "func")
            facts = {"Sources": [f"bids:source:{_within_data_set(image)}" for image in sources[subject]]}
            row = known.loc[subject]
            whole = row["runs"] == 1 and row["timepoints"] == row["volumes"]
            rate = 1 / row["tr"] if whole else float("nan")
            _write_series(target / f"{stem}_stat-mean_timeseries", series[subject], regions, rate, facts)
            matrix = _correlations(subject, series[subject], runs)
            _write_matrix(target / f"{stem}_stat-pearsoncorrelation_relmat", matrix, regions, facts)
            seen = coverage.get_group(subject)[["region", "coverage"]].rename(columns={"region": "node"})
            _write_tsv(target / f"{stem}_stat-coverage_bold.tsv", seen)


def _shared_name(images: Sequence[str]) -> str:
    """Entities, except `desc`, that all images of a subject share, in the order of the first image."""
    parts = [Path(image).name.split("_")[:-1] for image in images]
    return "_".join(
        part for part in parts[0] if not part.startswith("desc-") and all(part in others for others in parts[1:])
    )


def _within_data_set(image: str) -> str:
    """Path below the derivative's root, from `sub-` on."""
    parts = Path(image).parts
    first = next((at for at, part in enumerate(parts) if part.startswith("sub-")), len(parts) - 1)
    return "/".join(parts[first:])


def _correlations(subject: str, series: Float32, runs: Mapping[str, Sequence[int]]) -> Float64:
    """(R, R) correlations, NaN in the rows and columns of regions without signal."""
    of_runs = split_runs(series, runs.get(subject, ()))
    varies = np.any([varying_regions(run) for run in of_runs], axis=0)
    matrix: Float64 = to_matrices(defined_connectivity({subject: series}, runs))[0]
    matrix[np.diag_indices(len(varies))] = np.where(varies, 1.0, np.nan)
    return matrix


def _write_series(
    stem: Path, series: Float32, regions: Sequence[str], rate: float, facts: Mapping[str, object]
) -> None:
    _write_tsv(stem.with_name(f"{stem.name}.tsv"), pd.DataFrame(series, columns=list(regions)))
    known = {} if np.isnan(rate) else {"SamplingFrequency": rate}
    _write_json(stem.with_name(f"{stem.name}.json"), {**facts, **known, "Description": "Mean of each region, cleaned."})


def _write_matrix(stem: Path, matrix: Float64, regions: Sequence[str], facts: Mapping[str, object]) -> None:
    frame = pd.DataFrame(matrix, columns=list(regions))
    frame.insert(0, "Node", list(regions))
    _write_tsv(stem.with_name(f"{stem.name}.tsv"), frame)
    meaning = {
        "RelationshipMeasure": "Pearson correlation coefficient",
        "Weighted": True,
        "Directed": False,
        "ValidDiagonal": True,
        "StorageFormat": "Full",
    }
    _write_json(stem.with_name(f"{stem.name}.json"), {**facts, **meaning})


def _write_tsv(path: Path, frame: pd.DataFrame) -> None:
    write_tsv(path, frame, keep_names=True, na_rep="n/a", float_format="%.8g")


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
