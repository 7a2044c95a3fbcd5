"""The population graph of FedNI Sec. III-A, pair by pair, dense and slow."""

import numpy as np
from numpy.typing import NDArray


def mean_distance(embedding: NDArray[np.float64]) -> float:
    n = len(embedding)
    distances = [np.linalg.norm(embedding[i] - embedding[j]) for i in range(n) for j in range(i)]
    return float(np.mean(distances)) if distances else 0.0


def pair_weight(
    embedding: NDArray[np.float64],
    phenotypes: dict[str, NDArray[np.float64]],
    sigma: float,
    age_gap: float,
    i: int,
    j: int,
) -> float:
    distance = np.linalg.norm(embedding[i] - embedding[j])
    imaging = np.exp(-(distance**2) / (2 * sigma**2)) if sigma > 0 else float(distance == 0)
    agreeing = 0
    for name, values in phenotypes.items():
        if name == "age":
            known = not (np.isnan(values[i]) or np.isnan(values[j]))
            agreeing += known and abs(values[i] - values[j]) <= age_gap
        else:
            agreeing += values[i] >= 0 and values[i] == values[j]
    return float(imaging * agreeing)


def best_partners(weights: dict[int, float], k: int) -> list[int]:
    positive = [j for j in weights if weights[j] > 0]
    return sorted(positive, key=lambda j: (-weights[j], j))[:k]


def dense_graph(
    embedding: NDArray[np.float64],
    phenotypes: dict[str, NDArray[np.float64]],
    known: list[int],
    apart: list[int],
    *,
    k: int,
    age_gap: float,
    self_weight: float,
) -> NDArray[np.float64]:
    """(n, n) adjacency: `known` subjects among themselves, each of `apart` attached alone."""
    n = len(embedding)
    sigma = mean_distance(embedding[known])
    adjacency = np.zeros((n, n))
    for i in known:
        weights = {j: pair_weight(embedding, phenotypes, sigma, age_gap, i, j) for j in known if j != i}
        for j in best_partners(weights, k):
            adjacency[i, j] = max(adjacency[i, j], weights[j])
            adjacency[j, i] = max(adjacency[j, i], weights[j])
    for i in apart:
        weights = {j: pair_weight(embedding, phenotypes, sigma, age_gap, i, j) for j in known}
        for j in best_partners(weights, k):
            adjacency[i, j] = weights[j]
    for i in [*known, *apart]:
        adjacency[i, i] = self_weight
    return adjacency
