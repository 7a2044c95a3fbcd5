"""Read one table of FreeSurfer measures, of asegstats2table or aparcstats2table, or a merged csv."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from brainfed.cohort.phenotype.text import read_table_text, separator_of
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.imaging.morphometry.measure_names import Kind, measure_of
from brainfed.runtime.errors import UserError

WRITTEN = re.compile(r"Measure:(?P<aseg>\w+)|[lr]h\.(?P<name>.+)\.(?P<aparc>\w+)")
"""First header cell of FreeSurfer's own tables: `Measure:volume`, `lh.aparc.a2009s.thickness`."""


@dataclass(frozen=True)
class TextTable:
    """Cells of a table as text.

    Attributes:
        file: path of the table.
        columns: names of the measures, in order.
        rows: FreeSurfer's id -> its cells, in the order of `columns`.
        places: FreeSurfer's id -> `line 3` of the file, or its column; empty if the rows are files of their own.
        kind: kind of the measures whose names do not tell it: all of asegstats2table's are volumes.
    """

    file: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]
    places: dict[str, str]
    kind: Kind = "unknown"

    def place(self, identity: str) -> str:
        """Place of a row, for messages."""
        if identity in self.places:
            return f"{self.file}, {self.places[identity]}"
        return f"{self.file}/{identity}/stats" if identity in self.rows else self.file


def read_freesurfer_table(file: str | Path, settings: FreeSurferSettings) -> TextTable:
    """Read the rows and columns of a table that the settings select.

    A column of `asegstats2table --meas mean` is called `NAME_mean`, so that it differs from the volume of NAME. A table
    that `--transpose` wrote is turned.

    Raises:
        UserError: the file is not UTF-8 text or is empty, a row is ragged or repeated, a column appears twice, the
            column of the id or a filter is absent, or no column of a merged table is selected.
    """
    lines = _lines(file)
    _, header = next(lines, (1, []))
    written = WRITTEN.fullmatch(header[0]) if header else None
    measure = written["aseg"] if written else None
    content = [(line, f"line {line}", cells) for line, cells in lines]
    if written and _is_transposed(header, [cells for _, _, cells in content]):
        header, content = _turned(file, header, content)
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise UserError(f"{file}: expected every column once, found {repeated[0]!r} twice; rename or remove one.")
    if settings.subject is None and not written and not settings.columns:
        raise UserError(
            f"{file}: expected a table of asegstats2table or aparcstats2table, whose first cell is Measure:volume or "
            f"lh.aparc.thickness, found {(header or [''])[0]!r}; name the measures of a merged table under "
            "`freesurfer.columns`, as it may hold diagnoses too."
        )
    if not written and not settings.columns:
        raise UserError(
            f"{file}: expected the columns of a merged table that are measures under `freesurfer.columns`, found none; "
            "name them, as such a table may hold diagnoses too."
        )
    key = 0 if settings.subject is None or written else _position(file, header, settings.subject)
    filters = {} if written else {_position(file, header, name): values for name, values in settings.rows.items()}
    kept = [at for at in range(len(header)) if at != key and at not in filters]
    rows: dict[str, tuple[str, ...]] = {}
    places: dict[str, str] = {}
    for line, place, cells in content:
        _refuse_ragged(file, line, header, cells)
        if any(cells[at] not in values for at, values in filters.items()):
            continue
        identity = cells[key].rstrip("/")
        if identity in rows:
            raise UserError(
                f"{file}: expected every subject once, found {identity!r} in {places[identity]} and {place}; "
                f"remove one of them{'' if written else ', or choose among visits with `freesurfer.rows`'}."
            )
        rows[identity] = tuple(cells[at] for at in kept)
        places[identity] = place
    ending = "" if measure in (None, "volume") else f"_{measure}"
    columns = tuple(header[at] + ending for at in kept)
    return TextTable(str(file), columns, rows, places, "volume" if measure == "volume" else "unknown")


def _refuse_ragged(file: str | Path, line: int, header: Sequence[str], cells: Sequence[str]) -> None:
    if len(cells) != len(header):
        raise UserError(
            f"{file}, line {line}: expected {len(header)} cells as in the header, found {len(cells)}; fix the row."
        )


def _is_transposed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether most rows, and at most few columns, have names of measures."""
    down = [cells[0] for cells in rows]
    across = list(header[1:])
    known = [sum(measure_of(name) != "unknown" for name in names) for names in (down, across)]
    return known[0] > len(down) / 2 and known[1] < len(across) / 2


Content = list[tuple[int, str, list[str]]]
"""Line, place and cells of every row."""


def _turned(file: str | Path, header: Sequence[str], content: Content) -> tuple[list[str], Content]:
    """Header and rows of a table with a column a subject."""
    for line, _, cells in content:
        _refuse_ragged(file, line, header, cells)
    turned = [list(cells) for cells in zip(header, *(cells for _, _, cells in content), strict=True)]
    return turned[0], [(1, f"column {place}", cells) for place, cells in enumerate(turned[1:], start=2)]


def _lines(file: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Number and stripped cells of every line that is not blank; a separator at a line's end starts no cell."""
    text = read_table_text(file)
    if not text.certain:
        raise UserError(f"{file}: expected UTF-8 text, found another encoding; save it as UTF-8.")
    first = text.lines[0]
    reader = csv.reader(text.lines, delimiter=separator_of(first))
    trailing = first.rstrip("\r\n").endswith(reader.dialect.delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                ends = trailing and not cells[-1].strip()
                yield reader.line_num, [cell.strip() for cell in (cells[:-1] if ends else cells)]
    except csv.Error as error:
        raise UserError(
            f"{file}, line {reader.line_num}: expected cells of a table, found other text ({error}); fix its "
            "quotation marks."
        ) from error


def _position(file: str | Path, header: list[str], name: str) -> int:
    if name not in header:
        raise UserError(
            f"{file}: expected a column {name!r}, found none (it has {', '.join(header[:8])} ...); fix "
            "`freesurfer.subject` or `freesurfer.rows`."
        )
    return header.index(name)
