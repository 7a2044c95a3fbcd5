"""Repetition time of a BIDS image, from its json files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainfed.runtime.errors import UserError

KEY = "RepetitionTime"
SHORTEST, LONGEST = 0.05, 30.0
"""Repetition times in s beyond which one is taken for a wrong unit."""
TOLERANCE = 1e-3
"""Difference of two repetition times in s that rounding explains."""


def sidecar_tr(subject: str, files: Sequence[str | Path]) -> float:
    """Repetition time in s of the last file that states one, the nearest to the image; else NaN.

    Raises:
        UserError: a file is not a JSON object, or the time is not a number above 0.
    """
    tr = float("nan")
    for file in files:
        where = f"Subject {subject}, {file}"
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{where}: expected a JSON sidecar, found none ({error}); repair it.") from error
        if not isinstance(content, dict):
            raise UserError(f"{where}: expected a JSON object, found {type(content).__name__}; repair it.")
        if KEY in content:
            tr = _checked(where, content[KEY])
    return tr


def agree(one: float, other: float) -> bool:
    """Whether two repetition times agree; an unknown one agrees with all."""
    return bool(np.isnan(one) or np.isnan(other) or abs(one - other) <= TOLERANCE)


def refuse_wrong_unit(where: str, tr: float) -> None:
    """Refuse an impossible repetition time; NaN is accepted.

    Raises:
        UserError: it is above 30 s or below 0.05 s.
    """
    if tr > LONGEST or tr < SHORTEST:
        limit = f"at most {LONGEST:g}" if tr > LONGEST else f"at least {SHORTEST:g}"
        raise UserError(
            f"{where}: expected a repetition time of {limit} s, found {tr:g} s; {_reason(tr)}ix it there, or set `tr` "
            "for its site."
        )


def _reason(tr: float) -> str:
    """The unit that would make an impossible time a usual one, and the begin of `fix`; `f` where none does."""
    for unit, length in (("ms", 1e-3), ("\N{MICRO SIGN}s", 1e-6)):
        if SHORTEST <= tr * length <= LONGEST:
            return f"is it in {unit}? F"
        if SHORTEST <= tr / length <= LONGEST:
            return f"does its unit say {unit} for a number in s? F"
    return "f"


def chosen_tr(given: float | None, stated: float, header: float) -> float:
    """Repetition time in s of the config, else of the sidecars, else of the header."""
    return next((time for time in (given, stated) if time is not None and not np.isnan(time)), header)


def check_one_protocol(subject: str, runs: Sequence[tuple[str, float]]) -> None:
    """Refuse runs (image, repetition time in s) with different repetition times.

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
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < sys.float_info.max:
        raise UserError(f"{where}: expected {KEY} as a number of seconds above 0, found {value!r}; fix it.")
    refuse_wrong_unit(where, float(value))
    return float(value)
