"""Text of a file of region series: its first line with content, and the lines below it."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from brainfed.cohort.phenotype.plain_number import PLAIN
from brainfed.cohort.phenotype.text import EXCEL_SEPARATOR, decoded, excel_line, foreign_content
from brainfed.runtime.errors import UserError

BLANKS = r"\s+"
"""The separator of a file without commas, semicolons, tabs and bars in its first line."""
MARKS = ",;\t|"
BARS = re.compile(r"\s*\|.*\|[ \t]*(\n|$)")
"""A first line between bars, as tables of databases and of Markdown have them."""
RULE = re.compile(r"\s*[|+]?([ :]*-+[ :]*[|+]?)+\s*")
"""A line of dashes below the names of such a table."""
QUOTED = re.compile(r'"[^"]*"')
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
AFNI_COMMENT = re.compile(r"#\s*<")
POINTERS = (b"/annex/objects/", b"version https://git-lfs.github.com/spec/")
"""First bytes of the files that git-annex and Git LFS leave in place of a content that was not fetched."""


@dataclass(frozen=True)
class SeriesText:
    """Text of a file.

    Attributes:
        first: first line that is neither blank nor a comment: a line of names may begin with #.
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
    """Read a UTF-8 or UTF-16 file with line ends of any kind; comments above and below the rows are left out.

    Raises:
        UserError: the file is absent, empty or not text, has decimal commas, or begins with Excel's `sep=`.
    """
    where = f"Subject {subject}, {file}"
    text = _text(where, file)
    text, skipped = _without_comments(where, text) if "#" in text else (text, 0)
    above = skipped + text[: len(text) - len(text.lstrip(" \t\n"))].count("\n")
    if BARS.match(text):
        text = "\n".join("" if RULE.fullmatch(line) else _unframed(line) for line in text.split("\n"))
    first, _, rest = text.lstrip("\n \t").partition("\n")
    if not first:
        raise UserError(f"{where}: expected rows of numbers, found an empty file; is it the whole file?")
    if EXCEL_SEPARATOR.fullmatch(first.strip()):
        raise UserError(f"{where}, line {above + 1}: expected region names or numbers, found {excel_line(first)}.")
    below = rest.lstrip("\n \t").partition("\n")[0]
    for number, line in ((above + 1, first), (above + 2, below)):
        if has_decimal_commas(line):
            raise UserError(
                f"{where}, line {number}: expected numbers with decimal points, found decimal commas, "
                f"{line.strip()[:40]!r}; write points."
            )
    return SeriesText(first, above + 1, rest, _separator(first, below))


def cells_of(line: str, separator: str) -> list[str]:
    """Cells of one line without surrounding blanks and quotes; a quoted cell may hold the separator."""
    if separator == BLANKS:
        if '"' not in line:
            return line.split()
        spaced = " ".join(line.split())
        return [cell for cell in next(csv.reader([spaced], delimiter=" "), []) if cell]
    row = next(
        csv.reader(
            [line.strip(" ") if separator != "\t" else line.rstrip()], delimiter=separator, skipinitialspace=True
        ),
        [],
    )
    return [cell.strip() for cell in row]


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
        if content.startswith(POINTERS):
            raise UserError(
                f"{where}: expected region series, found a pointer to a content that was not fetched; run `git annex "
                "get` or `git lfs pull` there."
            )
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


def _without_comments(where: str, text: str) -> tuple[str, int]:
    """The text from its line of names or first row on to its last row, and the number of lines above.

    Raises:
        UserError: there are comments alone.
    """
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    rows = [number for number in filled if not lines[number].lstrip().startswith("#")]
    comments = [number for number in filled if not rows or number < rows[0]]
    if not rows:
        raise UserError(
            f"{where}: expected rows of numbers, found lines that begin with # alone; is it the whole file?"
        )
    start = comments[-1] if comments and _names(lines[comments[-1]], lines[rows[0]]) else rows[0]
    end = rows[-1] + 1
    return "\n".join([*lines[start:end], *("" for _ in lines[end:])]), start


def _names(comment: str, row: str) -> bool:
    """Whether the last line with # above the first row names regions: one a column, or each with a mark (#1 #2)."""
    if AFNI_COMMENT.match(comment):
        return False
    bare = comment.strip().lstrip("# ")
    separator = _separator(row, bare)
    names, cells = cells_of(bare, separator), cells_of(row, separator)
    return len(names) == len(cells) or (len(names) > 1 and all(name.startswith("#") for name in names[1:]))


def bare_rows(rows: str, separator: str, columns: int | None) -> str:
    """Rows without the separators that end all of them.

    Args:
        rows: lines ended by a line feed.
        separator: one of `MARKS` or `BLANKS`.
        columns: number of columns where it is known: rows that have it with an empty last cell keep that cell.
    """
    top = rows.lstrip("\n ").partition("\n")[0]
    if separator == BLANKS or not top.rstrip(" ").endswith(separator):
        return rows
    lines = rows.split("\n")
    least = min(_trailing(line, separator) for line in lines if line.strip(" "))
    if not least or (columns is not None and top.count(separator) + 1 <= columns):
        return rows
    return "\n".join(_cut(line, separator, least) for line in lines)


def _unframed(line: str) -> str:
    return line.strip().removeprefix("|").removesuffix("|")


def _trailing(line: str, separator: str) -> int:
    return line[len(line.rstrip(f"{separator} ")) :].count(separator)


def _cut(line: str, separator: str, count: int) -> str:
    for _ in range(count if line.strip() else 0):
        line = line.rstrip(" ").removesuffix(separator)
    return line


def _separator(first: str, second: str) -> str:
    """Mark with equal counts in both lines outside quotes, else the most frequent mark of the first line."""
    bare = QUOTED.sub("", first)
    marks = [mark for mark in MARKS if mark in bare]
    agreeing = [mark for mark in marks if bare.count(mark) == second.count(mark)]
    return max(agreeing or marks, key=bare.count, default=BLANKS)
