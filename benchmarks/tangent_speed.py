"""Seconds from region series to tangent features, and what storing covariances as float32 changes.

    python benchmarks/tangent_speed.py [--threads 2] [--subjects 1035] [--regions 200] [--shrinkage 0.5]
        [--series FILE.npz]

Takes made-up series (a common signal and noise, 78 to 316 volumes), or those of a file of NumPy arrays (time, region).
The steps are those of the jobs: the covariances of all shards, one after the other; then the features at the reference
of everybody, and those of one fold of five at the references of five institutions. `float32` is the largest difference
of a feature of the first 64 subjects to the same computed without rounding to float32 on the way.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from brainfed.cohort.sources import shard_name
from brainfed.imaging import (
    covariances,
    displacements,
    load_covariances,
    log_sum,
    mean_correlation,
    spectral,
    tangent_ledger,
    tangent_of_all,
    tangent_of_fold,
    to_triangles,
    write_covariances,
)

SHARDS, COMPARED = 8, 64


def made_up(subjects: int, regions: int) -> dict[str, np.ndarray]:
    """Series with as many volumes as ABIDE's have."""
    random = np.random.default_rng(0)
    found = {}
    for number in range(subjects):
        time_points = int(random.integers(78, 317))
        common = random.standard_normal((time_points, 12)) @ random.standard_normal((12, regions))
        found[f"s{number:05d}"] = (common + 3 * random.standard_normal((time_points, regions))).astype(np.float32)
    return found


def rounding(series: dict[str, np.ndarray], shrinkage: float) -> float:
    """Largest difference of a feature between float32 on the disk and float64 throughout."""
    some = {subject: series[subject] for subject in sorted(series)[:COMPARED]}
    matrices = np.stack([mean_correlation(values) for values in some.values()])
    matrices = (1 - shrinkage) * matrices + shrinkage * np.eye(matrices.shape[1])
    expected = displacements(matrices, log_sum(to_triangles(spectral(matrices, np.log))).whitening)
    names = [str(region) for region in range(matrices.shape[1])]
    return float(np.abs(tangent_of_all(covariances(some, names, shrinkage, {})) - expected).max())


def measured(
    shards: dict[str, dict[str, np.ndarray]], regions: list[str], shrinkage: float, threads: int
) -> tuple[list[float], float]:
    """Seconds of the covariances, of the features of everybody and of one fold; MB on the disk."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in sorted(shards)]
        start = time.perf_counter()
        for file in files:
            write_covariances(file, covariances(shards[file.name], regions, shrinkage, {}, threads), shrinkage)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        tangent_of_all(load_covariances(files), threads)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        found = load_covariances(files)
        institution = [f"institution-{number % 5}" for number in range(len(found.subjects))]
        training = np.arange(len(found.subjects)) // 5 % 5 != 0
        tangent_of_fold(found, institution, training, "institution", tangent_ledger(len(regions)), threads)
        seconds.append(time.perf_counter() - start)
        return seconds, sum(file.stat().st_size for file in files) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--subjects", type=int, default=1035)
    parser.add_argument("--regions", type=int, default=200)
    parser.add_argument("--shrinkage", type=float, default=0.5)
    parser.add_argument("--series", type=Path)
    arguments = parser.parse_args()
    if arguments.series is None:
        series = made_up(arguments.subjects, arguments.regions)
    else:
        with np.load(arguments.series) as held:
            series = {subject: held[subject].astype(np.float32) for subject in held.files}
    regions = [str(region) for region in range(next(iter(series.values())).shape[1])]
    subjects = sorted(series)
    shards: dict[str, dict[str, np.ndarray]] = {}
    for subject in subjects:
        shards.setdefault(shard_name(subject, SHARDS), {})[subject] = series[subject]
    with threadpool_limits(1):  # as in a job
        seconds, size = measured(shards, regions, arguments.shrinkage, arguments.threads)
        difference = rounding(series, arguments.shrinkage)
    source = "made-up series" if arguments.series is None else arguments.series.name
    print(
        f"{len(subjects)} subjects of {source}, {len(regions)} regions, shrinkage {arguments.shrinkage:g}, "
        f"{arguments.threads} thread(s)"
    )
    names = ("covariances s", "reference all s", "one fold s", "MB on disk", "float32")
    values = (*(f"{value:.1f}" for value in seconds), f"{size:.0f}", f"{difference:.1e}")
    print("  ".join(f"{name:>{len(name)}}" for name in names))
    print("  ".join(f"{value:>{len(name)}}" for name, value in zip(names, values, strict=True)))


if __name__ == "__main__":
    main()
