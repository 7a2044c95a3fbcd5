"""Join several runs of one subject into one series."""

from collections.abc import Iterable, Sequence

import numpy as np

from brainfed.imaging.series.region_series import RegionSeries


def join_runs(runs: Sequence[RegionSeries], *, apart: bool = False) -> RegionSeries:
    """Concatenate cleaned runs in time.

    A region that one run does not cover is unseen in the joined series, as its column would end within it. Runs with a
    connectivity of their own (`apart`) have NaN in that run only. Coverage is the lowest of the runs. Motion and tSNR
    are means over the acquired volumes of the runs with known values. Remarks on the runs' space are joined, each once.

    Args:
        runs: at least one, with one repetition time.
        apart: whether each run has a connectivity of its own.
    """
    if len(runs) == 1:
        return runs[0]
    series = np.concatenate([run.series for run in runs])
    if not apart:
        series[:, np.isnan(series).any(axis=0)] = np.nan
    return RegionSeries(
        series=series,
        coverage=np.where(np.isnan(series).any(axis=0), 0.0, np.min([run.coverage for run in runs], axis=0)),
        tr=runs[0].tr,
        volumes=sum(run.volumes for run in runs),
        mean_fd=_mean([run.mean_fd for run in runs], runs),
        tsnr=_mean([run.tsnr for run in runs], runs),
        runs=tuple(len(run.series) for run in runs),
        resampled=_joined(run.resampled for run in runs),
        suspicion=_joined(run.suspicion for run in runs),
        header_tr=next((run.header_tr for run in runs if not np.isnan(run.header_tr)), float("nan")),
    )


def _joined(remarks: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(remark for remark in remarks if remark))


def _mean(values: Sequence[float], runs: Sequence[RegionSeries]) -> float:
    weights = np.array([run.volumes for run in runs], dtype=np.float64)
    known = ~np.isnan(values)
    return float(np.average(np.asarray(values)[known], weights=weights[known])) if known.any() else float("nan")
