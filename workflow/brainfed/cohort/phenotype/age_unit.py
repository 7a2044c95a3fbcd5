"""The unit of the ages of a phenotype table, and what is written about it beside the table.

The module is light, as the Snakefile lists cohorts.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from brainfed.cohort.settings.cohort import ColumnSettings
from brainfed.runtime.errors import UserError

PER_YEAR = {"years": 1.0, "months": 12.0, "weeks": 365.25 / 7, "days": 365.25}
"""Unit of an age -> as many of it as a year has."""
NAMES = "years?|yrs?|months?|mos?|mths?|weeks?|wks?|days?"
UNIT = re.compile(rf"(?<![a-z])({NAMES})(?![a-z])", re.IGNORECASE)
IN_PROSE = re.compile(rf"(?:\bin (?:\w+ )?|[(\[])({NAMES})(?![a-z])|\b({NAMES}) old\b", re.IGNORECASE)
"""In a description, which may also name a day of a scan or a visit after twelve months."""
HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
"""Between the words of a name such as AgeMonths."""
UNITS = {"y": "years", "m": "months", "w": "weeks", "d": "days"}
"""First letter -> unit."""


def check_age_unit(table: str | Path, columns: ColumnSettings) -> None:
    """Refuse ages that the column's name, or its description in the `.json` beside the table, gives in no years.

    A setting `columns.age_unit` overrules both.

    Raises:
        UserError: another unit is named.
    """
    if columns.age is None or columns.age_unit is not None:
        return
    sidecar = Path(table).with_suffix(".json")
    stated = {
        f"{table}, column {columns.age!r}": columns.age,
        **{f"{sidecar}: {columns.age}.{key}": text for key, text in _described(sidecar, columns.age).items()},
    }
    for where, text in stated.items():
        pattern, words = (IN_PROSE, text) if " " in text.strip() else (UNIT, HUMP.sub("_", text))
        units = [UNITS[next(filter(None, hit.groups()))[0].lower()] for hit in pattern.finditer(words)]
        if units and "years" not in units:
            raise UserError(
                f"{where}: expected ages in years, found {text!r}; set `columns.age_unit: {units[0]}`, or years if "
                "that is wrong."
            )
        if units:
            return


def _described(sidecar: Path, column: str) -> dict[str, str]:
    """Texts about a column in a BIDS sidecar, the unit first; nothing where there is no such file."""
    if not sidecar.is_file():
        return {}
    try:
        content = json.loads(sidecar.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    entry = content.get(column) if isinstance(content, Mapping) else None
    texts = {key.casefold(): (key, text) for key, text in entry.items()} if isinstance(entry, Mapping) else {}
    order = ("units", "unit", "description", "longname")
    return {texts[key][0]: text for key in order if key in texts and isinstance(text := texts[key][1], str)}
