"""Assign subjects to parts by shares, one after the other; a longer list starts like a shorter one."""

from collections.abc import Mapping


def apportion(shares: Mapping[str, float], count: int) -> list[str]:
    """Part of each of `count` subjects.

    Each subject goes to the part that lags furthest behind its share; after n subjects every part
    holds its share of n to within one subject or two, and the first n never depend on `count`.

    Raises:
        ValueError: no part has a positive share.
    """
    total = sum(shares.values())
    if total <= 0:
        raise ValueError(f"expected at least one positive share, found {dict(shares)}")
    held = dict.fromkeys(shares, 0)
    parts: list[str] = []
    for dealt in range(1, count + 1):
        part = max(shares, key=lambda name: dealt * shares[name] / total - held[name])
        held[part] += 1
        parts.append(part)
    return parts
