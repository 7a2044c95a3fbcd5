"""Windows and spatial graphs of region series from their definitions: one number after the other."""

import math


def window(series, length, offset):
    """(length, R) list of rows; after the last time point comes the first again."""
    return [series[(offset + step) % len(series)] for step in range(length)]


def normalised_adjacency(series):
    """(R, R) rows of L^-1/2 (A + I) L^-1/2 with A the correlations above 0 of two different regions."""
    columns = [[float(row[region]) for row in series] for region in range(len(series[0]))]
    joined = [
        [1.0 if i == j else max(_correlation(a, b), 0.0) for j, b in enumerate(columns)] for i, a in enumerate(columns)
    ]
    degree = [sum(row) for row in joined]
    return [[value / math.sqrt(degree[i] * degree[j]) for j, value in enumerate(row)] for i, row in enumerate(joined)]


def _correlation(a, b):
    if len(set(a)) == 1 or len(set(b)) == 1:
        return 0.0
    centred_a, centred_b = ([value - sum(held) / len(held) for value in held] for held in (a, b))
    product = sum(x * y for x, y in zip(centred_a, centred_b, strict=True))
    return product / math.sqrt(sum(x * x for x in centred_a) * sum(y * y for y in centred_b))
