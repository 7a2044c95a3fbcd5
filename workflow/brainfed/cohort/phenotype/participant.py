"""A participant from one row of a phenotype table: codes are mapped, numbers checked.

The module is light, so that an unknown code stops the run at its start, not after the first job.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainfed.cohort.phenotype.age_unit import PER_YEAR
from brainfed.cohort.phenotype.plain_number import plain_number
from brainfed.cohort.phenotype.table import Row
from brainfed.cohort.settings.classes import CLASSES, NO_NUMBERS, Target
from brainfed.cohort.settings.cohort import CodeSettings, ColumnSettings
from brainfed.runtime.errors import UserError

OLDEST = 120.0
"""Years."""
ONE_SITE = "single-site"
"""Site of all subjects of a table without one."""
LARGEST_MEAN_FD = 100.0


@dataclass(frozen=True)
class Participant:
    """Phenotype of one subject; None or NaN where unknown.

    Attributes:
        site: name of the acquisition site.
        age: years.
        sex: `male` or `female`; unknown under the target sex.
        diagnosis: code of the target's class: 1 patient, 0 control; under the target sex 1 male, 0 female; of named
            classes their position; unknown if excluded.
        mean_fd: mm.
        excluded: whether the diagnosis takes the subject out of the cohort.
    """

    site: str
    age: float
    sex: str | None
    diagnosis: int | None
    mean_fd: float
    excluded: bool = False


def read_participant(
    table: str,
    row: Row,
    columns: ColumnSettings,
    codes: CodeSettings,
    target: Target = "diagnosis",
    classes: Sequence[str] = (),
) -> Participant:
    """Map the codes of one row and check its numbers.

    Args:
        table: path, for messages.
        row: of the table.
        columns: names of the columns.
        codes: their meaning.
        target: what is learnt.
        classes: meanings of its codes in the order of the labels 0, 1, ...; empty: the target's own two.

    Raises:
        UserError: the site is missing, a code is unknown, or a number is malformed or out of range.
    """
    where = f"{table}, line {row.line}, subject {row.subject}"
    unit = columns.age_unit or "years"
    diagnosis = _meaning(where, row, columns.diagnosis, "diagnosis", codes.diagnosis)
    sex = _meaning(where, row, columns.sex, "sex", codes.sex)
    site = _site(where, row, columns.site)
    excluded = diagnosis == "excluded"
    learnt = sex if target == "sex" else diagnosis
    labels = {name: label for label, name in enumerate(classes or CLASSES[target])}
    return Participant(
        site=codes.site.get(site, site),
        age=_number(where, row, columns.age, f"age in {unit}", OLDEST * PER_YEAR[unit]) / PER_YEAR[unit],
        sex=None if target == "sex" else sex,
        diagnosis=None if excluded else labels.get(learnt or ""),
        mean_fd=_number(where, row, columns.mean_fd, "mean framewise displacement in mm", LARGEST_MEAN_FD),
        excluded=excluded,
    )


def _site(where: str, row: Row, column: str | None) -> str:
    if column is None:
        return ONE_SITE
    site = row.cells[column]
    if site is None:
        found = f"{row.absent[column]!r}, which means missing" if column in row.absent else "none"
        raise UserError(
            f"{where}: expected a site in column {column!r}, found {found}; fill it in, or leave the row out "
            "with `rows`."
        )
    return site


def _meaning(where: str, row: Row, column: str | None, what: str, codes: Mapping[str, str]) -> str | None:
    code = None if column is None else row.cells[column]
    if code is None:
        return None
    if code not in codes:
        allowed = ", ".join(f"{known!r} ({meaning})" for known, meaning in codes.items())
        numbers = f" if it is a code, as {NO_NUMBERS}" if what == "diagnosis" and _is_number(code) else ""
        raise UserError(
            f"{where}: expected a {what} code in column {column!r} among {allowed}, found {code!r}; add it under "
            f"codes.{what}{numbers}, or under `missing`."
        )
    return codes[code]


def _is_number(code: str) -> bool:
    try:
        float(code)
    except ValueError:
        return False
    return True


def _number(where: str, row: Row, column: str | None, what: str, largest: float) -> float:
    text = None if column is None else row.cells[column]
    if text is None:
        return math.nan
    try:
        value = plain_number(text)
    except ValueError:
        remedy = (
            "it has a decimal comma, write a point" if _is_decimal_comma(text) else "fix it or list it in `missing`"
        )
        raise UserError(
            f"{where}: expected the {what} as a number in column {column!r}, found {text!r}; {remedy}."
        ) from None
    if not 0 <= value <= largest:
        months = what == "age in years" and largest < value <= largest * PER_YEAR["months"] and len({*text}) > 1
        unit = ", or set `columns.age_unit: months` if the whole column is in months" if months else ""
        raise UserError(
            f"{where}: expected the {what} between 0 and {largest:g} in column {column!r}, found {text!r}; fix it, or "
            f"list it in `missing` if it is a missing code{unit}."
        )
    return value


def _is_decimal_comma(text: str) -> bool:
    whole, comma, fraction = text.partition(",")
    return bool(comma) and whole.lstrip("-").isdigit() and fraction.isdigit()
