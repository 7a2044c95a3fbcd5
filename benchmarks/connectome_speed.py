"""Seconds and memory from features of connectivity to graphs of regions, and of reading them again.

    python benchmarks/connectome_speed.py [--subjects 1035] [--regions 200] [--features FILE.safetensors]

Takes made-up correlations, or those of a file of features. Seconds are those of the clock and of the processor; memory
is the largest growth of what the process holds beside pages of files (Linux alone). `select` draws 900 graphs in
random order out of the file.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from brainfed.graphs import ConnectomeSettings, read_connectivity, write_connectomes
from brainfed.runtime import read_arrays, write_arrays
from brainfed.samples import read_graph_samples

SELECTED = 900
CHOICES = (
    ConnectomeSettings(),
    ConnectomeSettings(density=1.0),
    ConnectomeSettings(edges="absolute", threshold=0.3),
)


def write_features(path: Path, subjects: int, regions: int) -> None:
    """Correlations of made-up series."""
    random = np.random.default_rng(0)
    rows = np.tanh(0.3 * random.standard_normal((subjects, regions * (regions - 1) // 2), dtype=np.float32))
    metadata = {
        "subjects": [f"s{number:05d}" for number in range(subjects)],
        "regions": [str(region) for region in range(regions)],
        "settings": {"connectivity": "pearson"},
    }
    write_arrays(path, {"features": rows}, metadata)


def held() -> float:
    """MiB of this process that are no pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


@contextmanager
def measured(cells: list[str]) -> Iterator[None]:
    """Append seconds of clock and processor, and MiB, of the body."""
    before, peak, running = held(), [held()], threading.Event()

    def watch() -> None:
        while not running.wait(0.005):
            peak[0] = max(peak[0], held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    clock, processor = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        taken = time.perf_counter() - clock, time.process_time() - processor
        running.set()
        watcher.join()
    cells.append(f"{taken[0]:.2f} ({taken[1]:.2f}), {max(peak[0], held()) - before:.0f} MiB")


def main() -> None:
    """Print one row a choice of edges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=1035)
    parser.add_argument("--regions", type=int, default=200)
    parser.add_argument("--features", type=Path)
    given = parser.parse_args()
    print("| edges | number | file | build | read and check | select |\n|---|---:|---:|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        source = given.features or Path(folder) / "features.safetensors"
        if not given.features:
            write_features(source, given.subjects, given.regions)
        subjects = read_arrays(source, []).subjects
        chosen = np.random.default_rng(0).permutation(len(subjects))[:SELECTED]
        for settings in CHOICES:
            path, cells = Path(folder) / "connectomes.safetensors", list[str]()
            with measured(cells):
                write_connectomes(path, read_connectivity(str(source), set(subjects)), settings, {})
            with measured(cells):
                graphs = read_graph_samples(path, subjects)
            with measured(cells):
                graphs.of(chosen)
            number = settings.density if settings.edges == "proportional" else settings.threshold
            size = f"{path.stat().st_size / 1e6:.0f} MB"
            print(
                f"| {settings.edges} {number:g} | {len(graphs.source):,} | {size} | {' | '.join(cells)} |", flush=True
            )


if __name__ == "__main__":
    main()
