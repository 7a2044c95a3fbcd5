"""Decimal numbers of tables."""

import re

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def plain_number(text: str) -> float:
    """Value of a decimal number; Python's float also accepts 1_0, words for infinity and other digits.

    Raises:
        ValueError: the text is not a decimal number.
    """
    if not PLAIN.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)
