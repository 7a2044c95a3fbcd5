"""The population graph of FedNI Sec. III-A, pair by pair, dense and slow."""

import numpy as np
from numpy.typing import NDArray


def mean_distance(embedding: NDArray[np.float64]) -> float:
    n = len(embedding)
    distances = [np.linalg.norm(embedding[i] - embedding[j]) for i in range(n) for j in range(i)]
    return float(np.mean(distances)) if distances else 0.0


def correlation_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """One minus the correlation; who does not vary correlates with nobody."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 1.0
    return float(1 - np.corrcoef(a, b)[0, 1])


def mean_correlation_distance(embedding: NDArray[np.float64]) -> float:
    n = len(embedding)
    return float(np.mean([correlation_distance(embedding[i], embedding[j]) for i in range(n) for j in range(i)]))


def pair_weight(
    embedding: NDArray[np.float64],
    phenotypes: dict[str, NDArray[np.float64]],
    sigma: float,
    age_gap: float,
    i: int,
    j: int,
    kind: str = "euclidean",
) -> float:
    if kind == "correlation":
        distance = correlation_distance(embedding[i], embedding[j])
    else:
        distance = float(np.linalg.norm(embedding[i] - embedding[j]))
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
    kind: str = "euclidean",
    multiple: float = 1.0,
) -> NDArray[np.float64]:
    """(n, n) adjacency: `known` subjects among themselves, each of `apart` attached alone."""
    n = len(embedding)
    mean = mean_correlation_distance if kind == "correlation" else mean_distance
    sigma = multiple * mean(embedding[known])
    adjacency = np.zeros((n, n))
    for i in known:
        weights = {j: pair_weight(embedding, phenotypes, sigma, age_gap, i, j, kind) for j in known if j != i}
        for j in best_partners(weights, k):
            adjacency[i, j] = max(adjacency[i, j], weights[j])
            adjacency[j, i] = max(adjacency[j, i], weights[j])
    for i in apart:
        weights = {j: pair_weight(embedding, phenotypes, sigma, age_gap, i, j, kind) for j in known}
        for j in best_partners(weights, k):
            adjacency[i, j] = weights[j]
    for i in [*known, *apart]:
        adjacency[i, i] = self_weight
    return adjacency
