"""The text of a table that a person saved: what it is not, is said in a sentence."""

from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from brainfed.runtime.errors import UserError

WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of .xlsx (a zip archive) and .xls files."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of what Excel calls Unicode text."""


@dataclass(frozen=True)
class TableText:
    """The lines of a file, with their ends.

    Attributes:
        lines: without a byte order mark.
        certain: whether the encoding is known; if not, only ASCII characters mean what they seem to.
    """

    lines: list[str]
    certain: bool


def read_table_text(path: str | Path) -> TableText:
    """Read a UTF-8 or UTF-16 file, or one of an unknown encoding of single bytes (Latin-1, Windows-1252).

    Raises:
        UserError: the file is an Excel workbook, or is empty.
    """
    content = Path(path).read_bytes()
    if content.startswith(WORKBOOKS):
        raise UserError(
            f"{path}: expected a csv or tsv table, found an Excel workbook; save the sheet as `CSV UTF-8` and name "
            "that file."
        )
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise UserError(f"{path}: expected a header and one row a subject, found an empty file; is it the whole table?")
    certain = True
    try:
        text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        text, certain = content.decode("latin-1"), False
    return TableText(list(StringIO(text, newline="")), certain)
