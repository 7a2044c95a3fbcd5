"""Odds of the cut, edges that it removed to edges that stay: as FedNI's count assumes them, over those of a real graph.

    python benchmarks/cut_odds.py GRAPH SPLIT

GRAPH is of scope `global_cut`, SPLIT its institutions. The assumption is that of institutions drawn at random
(`inpainting.fedni.drawing`). At a ratio above 1 predicted numbers of missing neighbours are too high by this
factor.
"""

import argparse
from pathlib import Path

import numpy as np

from brainfed.reporting.figures import read_scope_graphs


def main() -> None:
    """Print one row an institution, then the lowest, the median and the highest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path, help="results/COHORT/graphs/GRAPH/repeat-0/all.safetensors, global_cut")
    parser.add_argument("split", type=Path, help="results/COHORT/splits/SPLIT/repeat-0.parquet")
    arguments = parser.parse_args()
    graphs = read_scope_graphs(arguments.graph, None, arguments.split)
    names, code, size = np.unique(graphs.institution.astype(str), return_inverse=True, return_counts=True)
    kept, removed = (np.bincount(code, weights=graphs.degrees(each)) for each in (graphs.kept, graphs.removed))
    assumed = (size.sum() - size) / np.maximum(size - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        true = removed / kept
        ratio = assumed / true
    print(f"{'institution':24} {'subjects':>8} {'assumed':>8} {'true':>8} {'ratio':>8}")
    for row in zip(names, size, assumed, true, ratio, strict=True):
        print("{:24} {:8d} {:8.2f} {:8.2f} {:8.2f}".format(*row))
    seen = ratio[np.isfinite(ratio)]
    print(f"ratio: lowest {seen.min():.2f}, median {np.median(seen):.2f}, highest {seen.max():.2f}")


if __name__ == "__main__":
    main()
