"""The grid of penalties that a linear baseline chooses from on its training subjects."""

from collections.abc import Sequence


def check_grid(key: str, values: Sequence[float]) -> None:
    """Raise `ValueError` unless `values` are positive and ascending without repetition."""
    if not values or min(values) <= 0 or list(values) != sorted(set(values)):
        raise ValueError(
            f"{key}: expected one or more positive numbers in ascending order, found {list(values)}; "
            "leave the key out for the default grid."
        )
