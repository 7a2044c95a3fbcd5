"""The one way in which the report turns a number into text, so that one number is printed one way.

The mean of the same runs differs in its last bits with the order of the additions, and a half (0.5375) then went up in
one place and down in another. A first rounding removes such errors, and a half then goes away from zero.
"""

from decimal import ROUND_HALF_UP, Decimal

import numpy as np

EXACT = 12
"""Decimals that adding up in another order does not change."""
WIDE = 0.01
"""Half an interval's width from which on its mean is printed with two decimals."""
SIGNIFICANT = 0.05
"""A corrected p below it holds."""
MOST = 6
"""Decimals at most."""
NONE = "\u2013"


def rounded(value: float, digits: int = 3) -> str:
    """`0.538`; a dash for what is not finite, no sign on zero."""
    if not np.isfinite(value):
        return NONE
    exact = Decimal(repr(round(float(value), EXACT)))
    held = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return str(abs(held) if held == 0 else held).replace("-", "\u2212")


def signed(value: float, digits: int = 3) -> str:
    """With its sign; a number that rounds to zero has none."""
    text = rounded(value, digits)
    positive = text not in (NONE,) and not text.startswith("\u2212") and float(text) > 0
    return f"+{text}" if positive else text


def short(value: float, digits: int = 3) -> str:
    """Without the zero before the point."""
    return rounded(value, digits).replace("0.", ".", 1) if abs(value) < 1 else rounded(value, digits)


def digits_of(low: float, high: float) -> int:
    """Decimals that an interval deserves: two where it is wide or unknown, three where it is narrow.

    More where zero lies outside and the nearer bound would read as zero.
    """
    digits = 3 if round((high - low) / 2, EXACT) < WIDE else 2
    nearer = min(abs(low), abs(high)) if low * high > 0 else np.nan
    while digits < MOST and np.isfinite(nearer) and not _shows(nearer, digits):
        digits += 1
    return digits


def _shows(value: float, digits: int) -> bool:
    """Whether any digit of a value above zero is left."""
    return float(rounded(value, digits)) > 0


def p_short(p: float) -> str:
    """`.032`; never 0, never 1, and never `.050` below .05."""
    if p < 0.001:
        return "< .001"
    if p > 0.99:
        return "> .99"
    if p >= SIGNIFICANT:
        return short(p)
    told = (short(p, digits) for digits in range(3, MOST + 1))
    return next((text for text in told if float(text) < SIGNIFICANT), "< .05")


def p_value(p: float) -> str:
    """`p = .032`, with its sign."""
    text = p_short(p).replace(" ", "\u00a0")
    return f"p\u00a0{text}" if text[0] in "<>" else f"p\u00a0=\u00a0{text}"
