"""How well a statistic separates two worlds, and what (epsilon, delta) differential privacy allows.

A trial ends with one number, the larger the likelier the world with the subject. The bounds are those of the tests
between two worlds: true positives <= e^epsilon x false positives + delta, and the same for both errors (Kairouz, Oh and
Viswanath 2015, Theorem 2.1); epsilon from counted errors as in Jagielski, Ullman and Oprea 2020.
"""

from math import exp

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, norm, rankdata

Float64 = NDArray[np.float64]

LEVEL = 0.95
FALSE_POSITIVES = 0.01
REPLICATES = 1000


def clopper_pearson(count: ArrayLike, trials: ArrayLike, level: float = LEVEL) -> tuple[Float64, Float64]:
    """Exact interval of a share, from counts out of so many trials (Clopper and Pearson 1934)."""
    found, total, tail = np.asarray(count, dtype=np.float64), np.asarray(trials), (1 - level) / 2
    low = np.where(found > 0, beta.ppf(tail, np.maximum(found, 1), total - found + 1), 0.0)
    high = np.where(found < total, beta.ppf(1 - tail, found + 1, np.maximum(total - found, 1)), 1.0)
    return low, high


def area(without: Float64, within: Float64) -> tuple[float, float, float]:
    """AUC of statistics (n,) and (m,), and its interval (DeLong, DeLong and Clarke-Pearson 1988)."""
    n, m = len(without), len(within)
    ranks = rankdata(np.concatenate([without, within]))
    above = 1 - (ranks[:n] - rankdata(without)) / m
    below = (ranks[n:] - rankdata(within)) / n
    found = float(below.mean())
    width = float(norm.ppf((1 + LEVEL) / 2)) * (above.var(ddof=1) / n + below.var(ddof=1) / m) ** 0.5
    return found, max(found - width, 0.0), min(found + width, 1.0)


def true_positives(without: Float64, within: Float64, share: float = FALSE_POSITIVES) -> tuple[float, float, float]:
    """Share of `within` above the lowest threshold that at most `share` of `without` exceed, and its interval.

    The interval is the wider of two on each side: Clopper and Pearson's, which takes the threshold as given, and that
    of the bootstrap over the trials of both worlds, which does not.
    """
    count = round(float(_above(without[None], within[None], share)[0]) * len(within))
    random = np.random.default_rng(0)
    drawn = [each[random.integers(len(each), size=(REPLICATES, len(each)))] for each in (without, within)]
    low, high = np.quantile(_above(drawn[0], drawn[1], share), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    least, most = clopper_pearson(count, len(within))
    return count / len(within), float(min(low, least)), float(max(high, most))


def _above(without: Float64, within: Float64, share: float) -> Float64:
    """(b,) shares of (b, m) above the thresholds of (b, n)."""
    thresholds = np.sort(without)[:, ::-1][:, int(share * without.shape[1] + 1e-9)]
    return np.asarray((within > thresholds[:, None]).mean(axis=1))


def epsilon_bound(without: Float64, within: Float64, delta: float) -> float:
    """Epsilon that the mechanism has at least, at confidence `LEVEL`; 0 if the trials show none.

    The threshold, and which of the two errors is small, are chosen on every second trial and judged on the others.
    """
    halves = [(without[part::2], within[part::2]) for part in (0, 1)]
    cuts = np.unique(np.concatenate(halves[0]))
    chosen = _bounds(*halves[0], cuts, delta)
    side, cut = np.unravel_index(int(chosen.argmax()), chosen.shape)
    return max(float(_bounds(*halves[1], cuts[[cut]], delta)[side, 0]), 0.0)


def _bounds(without: Float64, within: Float64, cuts: Float64, delta: float) -> Float64:
    """(2, thresholds) lower bounds of epsilon by few false positives, and by few false negatives."""
    n, m = len(without), len(within)
    false = n - np.searchsorted(np.sort(without), cuts, side="right")
    true = m - np.searchsorted(np.sort(within), cuts, side="right")
    found = []
    for hits, of_hits, errors, of_errors in ((true, m, false, n), (n - false, n, m - true, m)):
        gain = clopper_pearson(hits, of_hits)[0] - delta
        found.append(np.log(np.maximum(gain, 1e-300) / clopper_pearson(errors, of_errors)[1]))
    return np.stack(found)


def allowed_true_positives(epsilon: float, delta: float, false_positives: ArrayLike = FALSE_POSITIVES) -> Float64:
    """Largest share of true positives that (epsilon, delta) allows at these false positives; 1 without a bound."""
    false = np.asarray(false_positives, dtype=np.float64)
    if not np.isfinite(epsilon):
        return np.ones_like(false)
    return np.minimum(np.minimum(exp(epsilon) * false + delta, 1 - exp(-epsilon) * (1 - delta - false)), 1.0)


def allowed_area(epsilon: float, delta: float) -> float:
    """Largest AUC that (epsilon, delta) allows: the area under `allowed_true_positives`."""
    if not np.isfinite(epsilon):
        return 1.0
    meet = (1 - delta) / (1 + exp(epsilon))
    corners = np.array([0.0, meet, 1 - delta, 1.0])
    return float(np.trapezoid(allowed_true_positives(epsilon, delta, corners), corners))


def gaussian_area(distance: float) -> float:
    """AUC of the best test between N(0, 1) and N(distance, 1)."""
    return float(norm.cdf(distance / 2**0.5))
