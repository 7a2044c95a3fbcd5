"""Phenotype tables as text, row by row: encodings, separators, the unit of ages; the csv module alone reads them."""

import csv
import difflib
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.runtime import Refuse, UserError, raise_at_once

# The unit of the ages of a phenotype table, and what is written about it beside the table.

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
    """Refuse ages in months, weeks or days, by the column's name or its description in the `.json` beside the table.

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


# Read the text of a file that a person saved; other contents are refused by name.

WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of .xlsx (a zip archive) and .xls files."""
GZIP = b"\x1f\x8b"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of Excel's Unicode text."""
EXCEL_SEPARATOR = re.compile(r'"?sep=.?"?', re.IGNORECASE)
"""First line that names the cell separator for Excel alone."""
SAMPLE = 1000
"""Bytes that are searched for the zeros of UTF-16."""
SEPARATORS = ",;\t|"
BLANK = " "
"""Separates cells, several as one, where the header has no other separator."""


@dataclass(frozen=True)
class TableText:
    """Lines of a file, with their ends, in the composed form of Unicode (NFC): one letter has one spelling.

    If the encoding is not `certain`, only ASCII characters are reliable.
    """

    lines: list[str]
    certain: bool


def read_table_text(path: str | Path) -> TableText:
    """Read a UTF-8 or UTF-16 file, or one of an unknown encoding of single bytes (Latin-1, Windows-1252).

    Raises:
        UserError: the file is an Excel workbook, is not text, is empty, or begins with Excel's `sep=`.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: expected a table that can be read, found none ({error.strerror}); check the path and its "
            "permissions."
        ) from error
    if content.startswith(WORKBOOKS):
        raise UserError(
            f"{path}: expected a csv or tsv table, found an Excel workbook; save the sheet as `CSV UTF-8` and name "
            "that file."
        )
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise UserError(f"{path}: expected a header and one row a subject, found an empty file; is it the whole table?")
    foreign = foreign_content(content)
    if foreign:
        raise UserError(f"{path}: expected a csv or tsv table, found {foreign}.")
    certain = True
    try:
        text = decoded(content)
    except UnicodeDecodeError:
        text, certain = content.decode("latin-1"), False
    lines = list(StringIO(unicodedata.normalize("NFC", text), newline=""))
    if EXCEL_SEPARATOR.fullmatch(lines[0].strip()):
        raise UserError(f"{path}, line 1: expected a header, found {excel_line(lines[0])}.")
    return TableText(lines, certain)


def separator_of(header: str, wanted: Collection[str] = ()) -> str:
    """The separator that splits a header into most of the wanted columns, then into most columns."""

    def columns(mark: str) -> tuple[int, int]:
        names = [name.strip() for name in next(cells_of([header], mark), (1, []))[1]]
        return len(set(names) & {*wanted}), len(names)

    best = max(SEPARATORS, key=columns)
    return BLANK if columns(BLANK)[0] > columns(best)[0] or columns(best)[1] == 1 else best


def cells_of(lines: list[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Number of the last line, from 1, and cells of every record; those separated by blanks have no outer blanks."""
    if separator == BLANK:
        lines = [line.strip() + "\n" for line in lines]
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator == BLANK)
    for cells in reader:
        yield reader.line_num, cells


def decoded(content: bytes) -> str:
    """Decode UTF-8 or UTF-16 without its byte order mark; other encodings raise UnicodeDecodeError."""
    return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")


def foreign_content(content: bytes) -> str:
    """Kind of a file that is not readable text, and the remedy; empty if it may be text."""
    if content.startswith(WORKBOOKS):
        return "an Excel workbook or a zip archive; save or unpack it as text"
    if content.startswith(GZIP):
        return "a gzip file; unpack it"
    if content.startswith(UTF_16):
        try:
            decoded(content)
        except UnicodeDecodeError:
            return "damaged UTF-16 text; save it as UTF-8"
        return ""
    if b"\0" not in content:
        return ""
    sample = content[: SAMPLE - SAMPLE % 2]
    if any(sample[start::2].count(0) > 0.4 * len(sample[start::2]) for start in (0, 1)):
        return "UTF-16 text without a byte order mark; save it as UTF-8"
    return "a binary file (it holds zero bytes); save it as text"


def excel_line(line: str) -> str:
    """Excel's first line, and the remedy."""
    return f"Excel's line {line.strip()!r}; remove this line"


ALWAYS_MISSING = frozenset(
    {"", "n/a", "N/A", "NA", "<NA>", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "Null", "None"}
    | {"#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""Codes of missing cells in every column: those of pandas, and two more spellings of them."""
DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
WHOLE = re.compile(r"\d+\.0")
"""An id that a spreadsheet or pandas has turned into a number with a decimal point, which all rows lose together."""
VISIT = re.compile(r"ses|visit|viscode|wave|event|time|scan|run|acq|date", re.IGNORECASE)
"""In the name of a column that tells the rows of one subject apart."""
NEAR = 0.75


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        line: number in the file; the header has 1.
        cells: column -> text, None where the cell holds a missing code.
        label: the id as the table has it, by which files are named; empty: `subject`.
        absent: column -> the code that is read as missing, where it is not empty.
    """

    line: int
    subject: str
    cells: dict[str, str | None]
    table: str = ""
    label: str = ""
    absent: dict[str, str] = field(default_factory=dict)

    @property
    def file_id(self) -> str:
        """The id by which files are named."""
        return self.label or self.subject

    def file(self, columns: ColumnSettings) -> str | None:
        """The value of {file} in path patterns; None where the cell is missing."""
        return self.file_id if columns.file is None else self.cells[columns.file]


def cohort_rows(
    tables: str | Path | Sequence[str | Path], settings: CohortSettings, refuse: Refuse = raise_at_once
) -> list[Row]:
    """The rows of the tables of a cohort by its settings; errors as in `read_phenotype_table`."""
    return read_phenotype_table(tables, settings.columns, settings.missing, refuse, settings.rows, settings.codes)


def read_phenotype_table(
    path: str | Path | Sequence[str | Path],
    columns: ColumnSettings,
    missing: Collection[str] = (),
    refuse: Refuse = raise_at_once,
    wanted: Mapping[str, Collection[str]] | None = None,
    codes: CodeSettings | None = None,
) -> list[Row]:
    """The rows of one or several tables, in ascending order of subject id.

    Separators are commas, semicolons, tabs, bars or blanks. In a table without separating commas, commas in ages and
    displacements are decimal commas if none of these has a decimal point (a European csv). Each of several tables may
    lack the column `subject` if it has `subject_fallback`. Where every id ends in `.0`, that ending is left out.

    Args:
        path: of the table, or of several.
        columns: names of the wanted ones.
        missing: codes that mean missing, beside the usual ones.
        refuse: called with the mistake of a single row, which is left out.
        wanted: column -> values of the rows to read; none: all rows.
        codes: a code that they name is not missing in its column.

    Raises:
        UserError: a configured column is absent, or has another unit; a row is ragged or has no id; an id appears twice
            or holds an invisible character; a file is an Excel workbook, is empty or holds no row; a cell to read is
            not UTF-8.
    """
    tables = [path] if isinstance(path, str | Path) else list(path)
    for table in tables:
        check_age_unit(table, columns)
    absent = _absent_codes(columns, missing, codes)
    alone = len(tables) == 1
    rows = [row for table in tables for row in _rows(table, columns, absent, refuse, wanted or {}, alone=alone)]
    first: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row.subject):
        if first.setdefault(row.subject, row) is not row:
            refuse(UserError(_duplicate(first[row.subject], row, columns)))
    return list(first.values())


def _absent_codes(
    columns: ColumnSettings, missing: Collection[str], codes: CodeSettings | None
) -> dict[str, frozenset[str]]:
    """Column -> codes that mean missing in it; those of other columns stand under the empty name."""
    everywhere = ALWAYS_MISSING | {*missing}
    known = {"": everywhere}
    for name in ("diagnosis", "sex", "site"):
        if (column := getattr(columns, name)) is not None:
            known[column] = everywhere - {*getattr(codes, name, {})}
    return known


def _rows(
    path: str | Path,
    columns: ColumnSettings,
    absent: Mapping[str, frozenset[str]],
    refuse: Refuse,
    wanted: Mapping[str, Collection[str]],
    *,
    alone: bool,
) -> list[Row]:
    rows: list[Row] = []
    separator, records = _records(path, columns, refuse, list(wanted), alone=alone)
    ignored = 0
    for line, values in records:
        if not all(values[name] in allowed for name, allowed in wanted.items()):
            ignored += 1
            continue
        codes = {name: value for name, value in values.items() if value in absent.get(name, absent[""])}
        cells = {name: None if name in codes else value for name, value in values.items()}
        row = Row(line, "", cells, str(path), absent={name: code for name, code in codes.items() if code})
        try:
            rows.append(_identified(row, columns))
        except UserError as error:
            refuse(error)
    if not rows and ignored:
        named = " and ".join(f"{name} among {', '.join(map(repr, allowed))}" for name, allowed in wanted.items())
        raise UserError(f"{path}: expected rows with {named}, found none among {ignored}; fix `rows`.")
    if not rows:
        raise UserError(f"{path}: expected one row a subject, found a header only; is it the whole table?")
    if all(WHOLE.fullmatch(row.subject) for row in rows):
        rows = [replace(row, subject=row.subject[:-2], label=row.subject[:-2]) for row in rows]
    if columns.subject_prefix is not None:
        rows = [replace(row, subject=f"{row.cells[columns.subject_prefix]}-{row.subject}") for row in rows]
    return rows if separator == "," else _with_decimal_points(rows, [columns.age, columns.mean_fd])


def _identified(row: Row, columns: ColumnSettings) -> Row:
    """A row with its id; no id, or one that cannot be read, is refused."""
    where = f"{row.table}, line {row.line}"
    subject = next((cell for name in columns.ids if (cell := row.cells.get(name)) is not None), None)
    if subject is None:
        content = row.absent.get(columns.subject, "") if columns.subject in row.cells else "no such column"
        raise UserError(
            f"{where}: expected a subject id in column {columns.subject!r}, found {content!r}; fill it in or set "
            "columns.subject_fallback."
        )
    if not subject.isprintable():
        raise UserError(
            f"{where}: expected a subject id of visible characters, found {subject!a}; type it again (a spreadsheet or "
            "a web page pastes invisible ones)."
        )
    if columns.subject_prefix is not None and row.cells[columns.subject_prefix] is None:
        raise UserError(
            f"{where}, subject {subject}: expected what stands before the id in column "
            f"{columns.subject_prefix!r}, found none; fill it in, or remove columns.subject_prefix."
        )
    return replace(row, subject=subject, label=subject)


def _records(
    path: str | Path, columns: ColumnSettings, refuse: Refuse, more: Sequence[str], *, alone: bool
) -> tuple[str, Iterator[tuple[int, dict[str, str]]]]:
    """Separator, and line number and wanted cells of every non-blank line."""
    text = read_table_text(path)
    separator = separator_of(text.lines[0], columns.named)
    reader = cells_of(text.lines, separator)
    header = [name.strip() for name in next(reader, (1, []))[1]]
    if not any(header):
        raise UserError(f"{path}: expected a header in the first line, found an empty one; remove the blank lines.")
    wanted = dict.fromkeys([*columns.named, *more])
    if not alone and {name.strip() for name in columns.ids} & set(header):
        ids = {*columns.ids} - {columns.file, *more}
        wanted = dict.fromkeys(name for name in wanted if name.strip() in header or name not in ids)
    position = {name: _position(path, header, name, columns) for name in wanted}
    cells = _cells(path, reader, len(header), position, refuse)
    return separator, cells if text.certain else _ascii(path, cells, refuse)


def _cells(
    path: str | Path, numbered: Iterator[tuple[int, list[str]]], width: int, position: dict[str, int], refuse: Refuse
) -> Iterator[tuple[int, dict[str, str]]]:
    line = 1
    try:
        for line, values in numbered:
            if not any(value.strip() for value in values):
                continue
            if len(values) == width:
                yield line, {name: values[at].strip() for name, at in position.items()}
                continue
            sentence = (
                f"{path}, line {line}: expected {width} cells as in the header, found {len(values)}; fix the row (is "
                "a separator or a quote missing?)."
            )
            refuse(UserError(sentence))
    except csv.Error as error:
        raise UserError(
            f"{path}, after line {line}: expected a row of cells, found none ({error}); fix it (is a quote missing?)."
        ) from error


def _ascii(
    path: str | Path, records: Iterator[tuple[int, dict[str, str]]], refuse: Refuse
) -> Iterator[tuple[int, dict[str, str]]]:
    """Records of a file of unknown encoding; a wanted cell that depends on the encoding is refused."""
    for line, values in records:
        foreign = [name for name, value in values.items() if not value.isascii()]
        if not foreign:
            yield line, values
            continue
        sentence = (
            f"{path}, line {line}: expected UTF-8 text in column {foreign[0]!r}, found {values[foreign[0]]!r} in "
            "another encoding (perhaps Latin-1 or Windows-1252, as Excel saves it); save the table as UTF-8."
        )
        refuse(UserError(sentence))


def _position(path: str | Path, header: list[str], column: str, columns: ColumnSettings) -> int:
    name = column.strip()
    if header.count(name) == 1:
        return header.index(name)
    if header.count(name) > 1:
        raise UserError(f"{path}: expected one column {name!r}, found {header.count(name)}; rename all but one.")
    near = _near(name, [known for known in header if known not in columns.named])
    hint = f"did you mean {near!r}?" if near else f"it has {', '.join(header[:8])}{' ...' if len(header) > 8 else '.'}"
    key = next((key for key, value in vars(columns).items() if value == column), "")
    remedy = f"Set columns.{key} to the name that the table has" if key else "Set its name under `columns` or `rows`"
    if key == "site":
        remedy += ", or to null if all subjects come from one site"
    elif key in ("age", "sex", "diagnosis"):
        remedy += f", or to null if the {key} is unknown"
    raise UserError(f"{path}: expected a column {name!r}, found none; {hint} {remedy}.")


def _near(name: str, header: Sequence[str]) -> str | None:
    """The column with this name in another case, as one of its words, or misspelt; None if there is none."""
    for known in header:
        words = [word for word in re.split(r"[\W_]+", known.casefold()) if word]
        if name.casefold() in (known.casefold(), *words):
            return known
    folded = {known.casefold(): known for known in reversed(header) if known[:1].casefold() == name[:1].casefold()}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=NEAR)
    return folded[near[0]] if near else None


def _with_decimal_points(rows: list[Row], numbers: Sequence[str | None]) -> list[Row]:
    """Rows with points for decimal commas; unchanged if a number already has a point."""
    columns = [name for name in numbers if name is not None]
    cells = [cell for row in rows for cell in map(row.cells.get, columns) if cell is not None]
    if any("." in cell for cell in cells) or not any(map(DECIMAL_COMMA.fullmatch, cells)):
        return rows
    pointed = {cell: cell.replace(",", ".") for cell in cells if DECIMAL_COMMA.fullmatch(cell)}
    return [
        replace(
            row, cells=row.cells | {name: pointed[cell] for name in columns if (cell := row.cells.get(name)) in pointed}
        )
        for row in rows
    ]


def _duplicate(first: Row, second: Row, columns: ColumnSettings) -> str:
    """Two rows of one id: two people numbered alike, two visits, one row twice, or contradictory ones."""
    where = f"lines {first.line} and {second.line}"
    if first.table != second.table:
        where = f"line {first.line} and in {second.table}, line {second.line}"
    fault = f"{first.table}: expected every subject once, found {first.subject!r} in {where}"
    cells, others = _whole_row(first), _whole_row(second)
    differing = [name for name in cells if name in others and cells[name] != others[name]]
    if not differing:
        return f"{fault}, which are equal; remove one."
    if columns.site in differing and columns.subject_prefix is None:
        return (
            f"{fault}, which differ in {columns.site!r} ({cells[columns.site]}, {others[columns.site]}); if the sites "
            f"number their patients alike, set `columns.subject_prefix: {columns.site}`, else remove the row that is "
            "wrong."
        )
    visit = next((name for name in differing if name not in columns.named and VISIT.search(name)), None)
    if visit is not None:
        return (
            f"{fault}, which differ in {visit!r} ({cells[visit]}, {others[visit]}); if the table has several rows a "
            f"subject, choose one with `rows: {{{visit}: [{cells[visit]}]}}`, else remove the row that is wrong."
        )
    name = next((name for name in differing if name in columns.named), differing[0])
    return (
        f"{fault}, which differ in {name!r} ({cells[name]}, {others[name]}); remove the row that is wrong, or choose "
        "with `rows` by a column that tells them apart."
    )


def _whole_row(row: Row) -> dict[str, str]:
    """All cells of a row, read again: column -> text."""
    text = read_table_text(row.table)
    reader = cells_of(text.lines, separator_of(text.lines[0], row.cells))
    header = [name.strip() for name in next(reader, (1, []))[1]]
    values = next((values for line, values in reader if line == row.line), [])
    return {name: value.strip() for name, value in zip(header, values, strict=False)}
