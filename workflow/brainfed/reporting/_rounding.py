"""Numbers, p values and names of metrics as the page prints them."""

from decimal import ROUND_HALF_UP, Decimal

import numpy as np

METRIC_TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "specificity": "specificity",
    "f1": "F1",
}
SHOWN_METRICS = ("auc", "accuracy")
"""Metrics of figures and tests."""


# Equal numbers give equal text.
#
# The mean of the same runs differs in its last bits with the order of the additions, so a half (0.5375) could round up
# in one place and down in another. A first rounding removes such errors; a half then rounds away from zero.

EXACT = 12
"""Decimals that do not depend on the order of a sum."""
WIDE = 0.01
"""Smallest half-width of an interval for a mean with two decimals."""
SIGNIFICANT = 0.05
"""Significance level of a corrected p."""
MOST = 6
"""Largest number of decimals."""
NONE = "\u2013"


def rounded(value: float, digits: int = 3) -> str:
    """`0.538`; a dash for a value that is not finite, no sign on zero."""
    if not np.isfinite(value):
        return NONE
    exact = Decimal(repr(round(float(value), EXACT)))
    decimal = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return str(abs(decimal) if decimal == 0 else decimal).replace("-", "\u2212")


def significant_digits(value: float, digits: int) -> str:
    """With as many significant digits, without zeros at the end: `64.9`, `0.004`, `1200`."""
    if not np.isfinite(value) or value == 0:
        return rounded(value, 0)
    decimals = max(digits - 1 - int(np.floor(np.log10(abs(value)))), 0)
    text = rounded(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed(value: float, digits: int = 3) -> str:
    """With its sign; a number that rounds to zero has none."""
    text = rounded(value, digits)
    return f"+{text}" if np.isfinite(value) and value > 0 and float(text) > 0 else text


def short(value: float, digits: int = 3) -> str:
    """Without the zero before the point."""
    return rounded(value, digits).replace("0.", ".", 1) if abs(value) < 1 else rounded(value, digits)


def digits_of(low: float, high: float) -> int:
    """Number of decimals for an interval: two if it is wide or unknown, three if it is narrow.

    More if zero lies outside and the nearer bound would round to zero.
    """
    digits = 3 if round((high - low) / 2, EXACT) < WIDE else 2
    nearer = min(abs(low), abs(high)) if low * high > 0 else np.nan
    while digits < MOST and np.isfinite(nearer) and float(rounded(nearer, digits)) == 0:
        digits += 1
    return digits


def counted(number: int, noun: str) -> str:
    """`1 run`, `10 runs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def p_short(p: float) -> str:
    """`.032`; never 0, never 1, and never `.050` below .05."""
    if p < 0.001:
        return "< .001"
    if p > 0.99:
        return "> .99"
    if p >= SIGNIFICANT:
        return short(p)
    texts = (short(p, digits) for digits in range(3, MOST + 1))
    return next((text for text in texts if float(text) < SIGNIFICANT), "< .05")


def p_value(p: float) -> str:
    """`p = .032`, with its sign."""
    text = p_short(p).replace(" ", "\u00a0")
    return f"p\u00a0{text}" if text[0] in "<>" else f"p\u00a0=\u00a0{text}"
