"""The repetition time that the json files of a BIDS image state."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainfed.runtime.errors import UserError

KEY = "RepetitionTime"
LONGEST = 30.0
"""Repetition time in s above which it is taken for one in milliseconds."""
TOLERANCE = 1e-3
"""Difference of two repetition times in s that rounding explains."""


def sidecar_tr(subject: str, files: Sequence[str | Path]) -> float:
    """Repetition time in s, NaN where no file states one; the last file that does is the nearest to the image.

    Raises:
        UserError: a file is no JSON object, or the time is no number above 0.
    """
    tr = float("nan")
    for file in files:
        where = f"Subject {subject}, {file}"
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise UserError(f"{where}: expected a JSON sidecar, found none that reads ({error}); repair it.") from error
        if not isinstance(content, dict):
            raise UserError(f"{where}: expected a JSON object, found {type(content).__name__}; repair it.")
        if KEY in content:
            tr = _checked(where, content[KEY])
    return tr


def agree(one: float, other: float) -> bool:
    """Whether two repetition times are one; what is not known agrees with everything."""
    return bool(np.isnan(one) or np.isnan(other) or abs(one - other) <= TOLERANCE)


def refuse_milliseconds(where: str, tr: float) -> None:
    """Refuse a repetition time that no scan has; NaN is none.

    Raises:
        UserError: it is above 30 s.
    """
    if tr > LONGEST:
        raise UserError(
            f"{where}: expected a repetition time of at most {LONGEST:g} s, found {tr:g} s; is it in ms? Mend it."
        )


def chosen_tr(given: float | None, stated: float, header: float) -> float:
    """The repetition time in s that counts: the config's, else the sidecars', else the header's."""
    return next((time for time in (given, stated) if time is not None and not np.isnan(time)), header)


def check_one_protocol(subject: str, runs: Sequence[tuple[str, float]]) -> None:
    """Refuse runs, image and repetition time in s each, that were acquired differently.

    Raises:
        UserError: one differs from the first.
    """
    first, expected = runs[0]
    for image, found in runs:
        if not agree(found, expected):
            raise UserError(
                f"Subject {subject}, {image}: expected the repetition time of {first}, {expected:g} s, found {found:g} "
                "s; choose the runs of one protocol under bids.run_numbers or bids.sessions."
            )


def _checked(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise UserError(f"{where}: expected {KEY} as a number of seconds above 0, found {value!r}; mend it.")
    refuse_milliseconds(where, float(value))
    return float(value)
