"""Broken text files of region series."""

import numpy as np

from support.broken.broken_inputs import Broken, Cohort, numbers, write_series


def changed(change):
    """The series of s03 with its numbers changed."""

    def make(cohort: Cohort) -> None:
        write_series(cohort.series("s03"), change(numbers("s03")))

    return make


def rewritten(change):
    """The text of s03's file changed."""

    def make(cohort: Cohort) -> None:
        path = cohort.series("s03")
        path.write_bytes(change(path.read_bytes()))

    return make


def first_cell(word):
    def change(content: bytes) -> bytes:
        header, row, rest = content.split(b"\n", 2)
        return b"\n".join([header, b"\t".join([word, *row.split(b"\t")[1:]]), rest])

    return rewritten(change)


def not_a_number(series: np.ndarray) -> np.ndarray:
    series[3, 1] = np.nan
    return series


def infinite(series: np.ndarray) -> np.ndarray:
    series[3, 1] = np.inf
    return series


FILE = r"Subject s03, .*s03\.1D"

SERIES = [
    Broken("NaN in a series", changed(not_a_number), *[FILE + ", line 5: .*column 2, found 'nan'"] * 2, "s03"),
    Broken("infinity in a series", changed(infinite), *[FILE + ", line 5: .*column 2, found 'inf'"] * 2, "s03"),
    Broken("text in a series", first_cell(b"abc"), *[FILE + ", line 2: .*column 1, found 'abc'"] * 2, "s03"),
    Broken("empty cell in a series", first_cell(b""), *[FILE + ", line 2: .*column 1, found ''"] * 2, "s03"),
    Broken("another atlas", changed(lambda s: s[:, :3]), *[FILE + ": expected 4 regions, found 3 .*atlas"] * 2, "s03"),
    Broken(
        "longer row",
        rewritten(lambda t: t + b"1\t2\t3\t4\t5\n"),
        *[FILE + ", line 62: expected rows of equal length, found 5 cells below 4"] * 2,
        "s03",
    ),
    Broken("cut-off row", rewritten(lambda t: t[:-15]), *[FILE + ", line 61: expected a finite number"] * 2, "s03"),
    Broken(
        "too short", changed(lambda s: s[:49]), *["Subject s03, .*: expected at least 50 .*found 49; lower"] * 2, "s03"
    ),
    Broken("no rows", changed(lambda s: s[:0]), *[FILE + ": expected rows"] * 2, "s03"),
    Broken("empty file", rewritten(lambda t: b""), *[FILE + ": expected rows"] * 2, "s03"),
    Broken("no text at all", rewritten(lambda t: b"\xff\xfe\x00\xd8" * 99), *[FILE + ": expected a text"] * 2, "s03"),
    Broken(
        "all regions constant", changed(np.ones_like), *["Subject s03, .*: expected a signal, found all 4"] * 2, "s03"
    ),
]
