"""Region series in text files: names, columns, length and foreign characters, without parsing a number."""

import hashlib
from pathlib import Path

import numpy as np

from brainfed.checking.people import Look
from brainfed.imaging.roi_series import SeriesHead, read_head, read_roi_series
from brainfed.imaging.shard import check_length

FIGURES = b"0123456789+-.eE "


def look_at_series(subject: str, file: str, regions: int | None, least: int) -> tuple[Look, tuple[str, ...]]:
    """The length of one subject's series and the names of its header.

    The whole file is taken to memory but not parsed: only what is odd in it makes the job's own reader read it, which
    says what is wrong. A region that is constant is not seen.

    Raises:
        UserError: the file cannot be used.
    """
    head = read_head(subject, file)
    content = Path(file).read_bytes()
    body = content.partition(b"\n")[2] if head.names else content
    rows = _rows(body, head, regions)
    names = head.names
    if rows is None:
        series = read_roi_series(subject, file, regions)
        rows, names = len(series.series), series.regions
    check_length(subject, rows, least)
    return Look(rows, hashlib.blake2b(body).hexdigest()), names


def _rows(body: bytes, head: SeriesHead, regions: int | None) -> int | None:
    """Number of rows, None if anything is unusual."""
    mark = head.separator.encode()
    columns = regions or len(head.names)
    if len(mark) > 1 or head.before or not columns or (head.names and len(head.names) != columns):
        return None
    body = body.replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
    rows = body.count(b"\n")
    if body.translate(None, FIGURES) != (mark * (columns - 1) + b"\n") * rows:
        return None
    marks = np.frombuffer(b"\n" + body, dtype=np.uint8)
    between = (marks == mark[0]) | (marks == ord("\n"))
    return None if (between[1:] & between[:-1]).any() else rows
