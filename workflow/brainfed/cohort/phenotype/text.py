"""Read the text of a file that a person saved; other contents are refused by name."""

import csv
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from brainfed.runtime.errors import UserError

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
    """Lines of a file, with their ends.

    Attributes:
        lines: without a byte order mark, in the composed form of Unicode (NFC): one letter has one spelling.
        certain: whether the encoding is known; if not, only ASCII characters are reliable.
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
    """The separator of a table's header: the one by which it has most of the wanted columns, then most columns."""

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
