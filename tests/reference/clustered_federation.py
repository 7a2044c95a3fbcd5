"""GCFL and GCFL+ for one fold as the paper's formulas have them (Xie et al. 2021): lists, loops, every cut tried."""

from functools import cache
from itertools import combinations
from math import inf, sqrt


def train(start, updates, samples, eps1, eps2, first_round, norms=None, length=None):
    """Clusters (sets of institutions) and models (one an institution) after every round.

    Args:
        start: P numbers, the common initial model.
        updates: (rounds, M, P) what each institution adds to what the server sent.
        samples: M numbers of training samples, none 0.
        norms: (rounds, M) gradient norms, for GCFL+.
        length: d of GCFL+.
    """
    institutions = range(len(samples))
    models, clusters = [list(start) for _ in institutions], [frozenset(institutions)]
    since, history = 0, []
    for number, deltas in enumerate(updates):
        weights = cosines(deltas) if norms is None else warped(norms[max(since, number + 1 - length) : number + 1])
        found = []
        for cluster in clusters:
            mean = [sum(deltas[i][p] for i in cluster) / len(cluster) for p in range(len(start))]
            apart = norm(mean) < eps1 and max(norm(deltas[i]) for i in cluster) > eps2
            whole = norms is None or number + 1 - since >= length
            if apart and len(cluster) > 2 and number >= first_round and whole:
                found += smallest_cut(cluster, weights(cluster))
                since = number + 1
            else:
                found.append(cluster)
        clusters = found
        for cluster in clusters:
            total = sum(samples[j] for j in cluster)
            for p in range(len(start)):
                step = sum(samples[j] * deltas[j][p] for j in cluster) / total
                for i in cluster:
                    models[i][p] += step
        history.append((set(clusters), [list(model) for model in models]))
    return history


def norm(vector):
    return sqrt(sum(value * value for value in vector))


def cosines(deltas):
    def cosine(one, other):
        return sum(a * b for a, b in zip(one, other, strict=True)) / norm(one) / norm(other)

    def weights(cluster):
        return {(i, j): max(0.0, cosine(deltas[i], deltas[j]) + 1) for i, j in combinations(sorted(cluster), 2)}

    return weights


def warped(norms):
    def weights(cluster):
        distances = {
            (i, j): recursive_dtw([row[i] for row in norms], [row[j] for row in norms])
            for i, j in combinations(sorted(cluster), 2)
        }
        return {pair: max(distances.values()) - distance for pair, distance in distances.items()}

    return weights


def recursive_dtw(first, second):
    """The definition: the last pair, and the best way to it."""

    @cache
    def best(i, j):
        if i < 0 and j < 0:
            return 0.0
        if i < 0 or j < 0:
            return inf
        return (first[i] - second[j]) ** 2 + min(best(i - 1, j), best(i, j - 1), best(i - 1, j - 1))

    return sqrt(best(len(first) - 1, len(second) - 1))


def smallest_cut(cluster, weights):
    """Of all 2^(m-1) - 1 cuts the one with the smallest sum of weights between its parts."""
    first, *others = sorted(cluster)
    parts = [frozenset({first, *some}) for size in range(len(others)) for some in combinations(others, size)]
    best = min(parts, key=lambda part: cut_sum(part, weights))
    return [best, cluster - best]


def cut_sum(part, weights):
    return sum(weight for (i, j), weight in weights.items() if (i in part) != (j in part))
