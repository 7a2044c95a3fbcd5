"""Rows of data sets of graphs, as of a phenotype table: an id, a data set, a class.

The module is light, as the Snakefile lists cohorts.
"""

from collections.abc import Sequence
from pathlib import Path

from brainfed.cohort.phenotype.table import Row
from brainfed.cohort.settings.cohort import CodeSettings, ColumnSettings
from brainfed.runtime.errors import UserError

SITE = "data set"
COLUMNS = ColumnSettings(subject="subject", site=SITE, age="age", sex="sex", diagnosis="class")
"""Columns of these rows."""
DIGITS = 5
"""Least number of digits of a graph's number in its id."""
SUFFIX = "_graph_labels.txt"


def class_codes(classes: Sequence[str]) -> CodeSettings:
    """Codes of these rows: a class by its own name."""
    return CodeSettings(diagnosis={name: name for name in classes})


def graph_rows(tables: Sequence[str | Path], classes: Sequence[str]) -> list[Row]:
    """A row a graph, in ascending order of id.

    The label values of a data set mean the classes in ascending order: -1 and 1 the first two.

    Args:
        tables: the files `NAME_graph_labels.txt`, a line a graph.
        classes: names of the classes.

    Raises:
        UserError: a label is no integer, or a data set has no graph, one class, or more classes than
            there are names, or a name stands for no graph.
    """
    rows = [row for table in tables for row in _rows(Path(table), classes)]
    held = {row.cells[str(COLUMNS.diagnosis)] for row in rows}
    if idle := [name for name in classes if name not in held]:
        raise UserError(
            f"{tables[0]}: expected a graph of every class in `classes`, found none of {idle[0]!r}: no data set has so "
            f"many different labels; remove {'it' if len(idle) == 1 else 'the last ' + str(len(idle))}."
        )
    return sorted(rows, key=lambda row: row.subject)


def _rows(path: Path, classes: Sequence[str]) -> list[Row]:
    name = path.name.removesuffix(SUFFIX)
    lines = _text(path).splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    labels = [_label(path, number, line) for number, line in enumerate(lines, start=1)]
    values = sorted(set(labels))
    if len(values) < 2:
        raise UserError(
            f"{path}: expected graphs of two classes or more, found {len(values) or 'no graph'}"
            f"{' class' if values else ''}; remove the data set from `tudataset.names`, or fetch it again."
        )
    if len(values) > len(classes):
        shown = ", ".join(map(str, values[:8]))
        raise UserError(
            f"{path}: expected at most {len(classes)} different labels, as many as `classes` has names, found "
            f"{len(values)} ({shown}); name every class."
        )
    meaning = dict(zip(values, classes, strict=False))
    width = max(DIGITS, len(str(len(labels))))
    cells = {SITE: name, str(COLUMNS.age): None, str(COLUMNS.sex): None}
    return [
        Row(number, f"{name}-{number:0{width}d}", cells | {str(COLUMNS.diagnosis): meaning[label]}, str(path))
        for number, label in enumerate(labels, start=1)
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: expected a text file with a label a line, found one that cannot be read ({error}); fetch the "
            "data set again."
        ) from error


def _label(path: Path, number: int, line: str) -> int:
    try:
        return int(line)
    except ValueError:
        raise UserError(
            f"{path}, line {number}: expected the label of a graph, an integer, found {line[:40]!r}; fetch the data "
            "set again."
        ) from None
