"""Numbers as tables hold them."""

import re

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def plain_number(text: str) -> float:
    """The value of a decimal number; Python itself also takes 1_0 for 10, words for infinity and other digits.

    Raises:
        ValueError: the text is none.
    """
    if not PLAIN.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return float(text)
