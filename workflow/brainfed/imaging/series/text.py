"""Text of a file of region series: its first line with content, and the lines below it."""

import re
from dataclasses import dataclass
from pathlib import Path

from brainfed.cohort.phenotype.plain_number import PLAIN
from brainfed.cohort.phenotype.text import EXCEL_SEPARATOR, decoded, excel_line, foreign_content
from brainfed.runtime.errors import UserError

BLANKS = r"\s+"
"""The separator of a file without commas, semicolons and tabs in its first line."""
MARKS = ",;\t"
QUOTED = re.compile(r'"[^"]*"')
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
AFNI_COMMENT = re.compile(r"#\s*<")


@dataclass(frozen=True)
class SeriesText:
    """Text of a file.

    Attributes:
        first: first line that is not blank.
        line: its number, counted from 1.
        rest: everything below it, lines ended by a line feed.
        separator: separator of cells, one of `MARKS` or `BLANKS`.
    """

    first: str
    line: int
    rest: str
    separator: str

    @property
    def second(self) -> str:
        """First line of the rest that is not blank; empty if there is none."""
        return next((line for _, line in self.filled()), "")

    def filled(self) -> "list[tuple[int, str]]":
        """Number and text of every line below the first that is not blank."""
        blanks = " " if self.separator == "\t" else " \t"
        numbered = enumerate(self.rest.split("\n"), start=self.line + 1)
        return [(number, line) for number, line in numbered if line.strip(blanks)]


def read_series_text(subject: str, file: str | Path) -> SeriesText:
    """Read a UTF-8 or UTF-16 file with line ends of any kind.

    Raises:
        UserError: the file is absent, empty or not text, has decimal commas, or begins with comments or Excel's `sep=`.
    """
    where = f"Subject {subject}, {file}"
    text = _text(where, file)
    above = text[: len(text) - len(text.lstrip(" \t\n"))].count("\n")
    first, _, rest = text.lstrip("\n \t").partition("\n")
    if not first:
        raise UserError(f"{where}: expected rows of numbers, found an empty file; is it the whole file?")
    if EXCEL_SEPARATOR.fullmatch(first.strip()):
        raise UserError(f"{where}, line {above + 1}: expected region names or numbers, found {excel_line(first)}.")
    below = rest.lstrip("\n \t").partition("\n")[0]
    if first.startswith("#") and (AFNI_COMMENT.match(first) or below.startswith("#")):
        raise UserError(
            f"{where}, line {above + 1}: expected region names or numbers, found a comment, "
            f"{first.strip()[:40]!r}; remove the lines that begin with #, but for one that names the regions."
        )
    for number, line in ((above + 1, first), (above + 2, below)):
        if has_decimal_commas(line):
            raise UserError(
                f"{where}, line {number}: expected numbers with decimal points, found decimal commas, "
                f"{line.strip()[:40]!r}; write points."
            )
    return SeriesText(first, above + 1, rest, _separator(first, below))


def has_decimal_commas(line: str) -> bool:
    """Whether the cells between semicolons, tabs or blanks are numbers, at least one with a comma in it."""
    for mark in (";", "\t", None) if "," in line else ():
        cells = [cell.strip() for cell in line.split(mark)]
        commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
        if len(cells) > 1 and commas and all(cell in commas or PLAIN.fullmatch(cell) for cell in cells):
            return True
    return False


def _text(where: str, file: str | Path) -> str:
    try:
        content = Path(file).read_bytes()
        foreign = foreign_content(content)
        if foreign:
            raise UserError(f"{where}: expected a text file of region series, found {foreign}.")
        text = decoded(content)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{where}: expected a text file of region series, found an unreadable one ({error}); check the path "
            "and save the text as UTF-8."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _separator(first: str, second: str) -> str:
    """Mark with equal counts in both lines outside quotes, else the most frequent mark of the first line."""
    bare = QUOTED.sub("", first)
    marks = [mark for mark in MARKS if mark in bare]
    agreeing = [mark for mark in marks if bare.count(mark) == second.count(mark)]
    return max(agreeing or marks, key=bare.count, default=BLANKS)
