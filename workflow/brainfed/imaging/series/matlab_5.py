"""Check that a variable of a MATLAB file of version 5 is whole before SciPy reads it.

SciPy's reader trusts the sizes that a file states: a damaged cell array may end the whole process, or take all memory.
The layout is that of MathWorks' "MAT-File Format", version 5: elements of a tag (type, bytes) and data.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEADER = 128
"""Bytes above the first element; the last two tell the order of bytes."""
BYTES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
"""Type of data -> bytes of one value."""
MATRIX, COMPRESSED = 14, 15
CELL, CHARACTERS, NUMBERS = 1, 4, range(6, 16)
"""Classes of matrices."""
DEEPEST = 4
"""Most cells within cells."""


class Element(NamedTuple):
    """One element: its type and its data."""

    kind: int
    data: bytes


def check_variable(file: str | Path, name: str) -> None:
    """Check the sizes within a variable of numbers, characters, or cells of these.

    Raises:
        ValueError: a stated size does not fit, or the variable is of another class, or absent.
    """
    content = Path(file).read_bytes()
    order = ">" if content[HEADER - 2 : HEADER] == b"MI" else "<"
    for element in _elements(content[HEADER:], order):
        matrix = element
        if element.kind == COMPRESSED:
            matrix = next(_elements(zlib.decompress(element.data), order))
        if matrix.kind == MATRIX and _name_of(matrix.data, order) == name:
            _check_matrix(matrix.data, order, DEEPEST)
            return
    raise ValueError(f"no variable {name}")


def _elements(content: bytes, order: str) -> Iterator[Element]:
    """Elements of some bytes, one after the other; a short one has its data in its tag."""
    place = 0
    while place < len(content):
        first, size = struct.unpack_from(f"{order}II", content, place)
        if first >> 16:
            kind, size, start, end = first & 0xFFFF, first >> 16, place + 4, place + 8
        else:
            kind, start = first, place + 8
            end = start + size + (0 if kind == COMPRESSED else -size % 8)
        if start + size > min(len(content), end):
            raise ValueError("an element is longer than the file")
        yield Element(kind, content[start : start + size])
        place = end


def _name_of(matrix: bytes, order: str) -> str:
    """Name of a variable, its third element; that of an object, which has no dimensions, is empty."""
    names = [part.data for part, _ in zip(_elements(matrix, order), range(3), strict=False)][2:]
    return names[0].decode("latin-1") if names else ""


def _head(parts: Iterator[Element], order: str) -> tuple[int, tuple[int, ...], str]:
    """Class, dimensions and name of a matrix, from its first three elements."""
    flags, dimensions, name = next(parts), next(parts), next(parts)
    lengths = struct.unpack(f"{order}{len(dimensions.data) // 4}i", dimensions.data)
    if len(flags.data) != BYTES[12] or len(lengths) < 2 or min(lengths) < 0:
        raise ValueError("a matrix has no dimensions")
    return struct.unpack_from(f"{order}I", flags.data)[0] & 0xFF, lengths, name.data.decode("latin-1")


def _check_matrix(matrix: bytes, order: str, depth: int) -> None:
    if not matrix:
        return
    parts = _elements(matrix, order)
    kind, lengths, _ = _head(parts, order)
    held, count = [*parts], math.prod(lengths)
    if kind == CELL and depth:
        if len(held) != count or any(one.kind != MATRIX for one in held):
            raise ValueError(f"{len(held)} cells in place of {count}")
        for one in held:
            _check_matrix(one.data, order, depth - 1)
    elif kind == CHARACTERS or kind in NUMBERS:
        for one in held:
            values = len(one.data) // BYTES.get(one.kind, 1)
            if one.kind not in BYTES or (values < count if kind == CHARACTERS else values != count):
                raise ValueError(f"{values} values in place of {count}")
        if not held:
            raise ValueError(f"no values in place of {count}")
    else:
        raise ValueError(f"a matrix of class {kind}")
