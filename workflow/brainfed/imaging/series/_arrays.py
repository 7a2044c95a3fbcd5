"""Region series of NumPy's and MATLAB's files, checked before they are read; nothing is executed."""

import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime import Float64, UserError

# Check that a variable of a MATLAB file of version 5 is whole before SciPy reads it.
#
# SciPy's reader trusts the sizes that a file states: a damaged cell array may end the whole process, or take all
# memory. The layout is that of MathWorks' "MAT-File Format", version 5: elements of a tag (type, bytes) and data.

Format = Literal["npy", "npz", "mat", "hdf5"]
Contents = tuple[Mapping[str, tuple[int, ...] | None], Callable[[str], Any]]
"""Variable -> its shape, None if it is no array of numbers; and how one is loaded."""

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
    parts_left, count = [*parts], math.prod(lengths)
    if kind == CELL and depth:
        if len(parts_left) != count or any(part.kind != MATRIX for part in parts_left):
            raise ValueError(f"{len(parts_left)} cells in place of {count}")
        for part in parts_left:
            _check_matrix(part.data, order, depth - 1)
    elif kind == CHARACTERS or kind in NUMBERS:
        for part in parts_left:
            values = len(part.data) // BYTES.get(part.kind, 1)
            if part.kind not in BYTES or (values < count if kind == CHARACTERS else values != count):
                raise ValueError(f"{values} values in place of {count}")
        if not parts_left:
            raise ValueError(f"no values in place of {count}")
    else:
        raise ValueError(f"a matrix of class {kind}")


# Notice files of region series that have a row a region, and matrices of correlations in place of series.
#
# Signals are smooth in time: neighbouring volumes resemble each other (a lag-1 autocorrelation of .46 to .89 in 400
# subjects of ABIDE), neighbouring regions of an atlas hardly do (-.06 to .02).

FEWEST = 20
"""Fewest rows and columns that are compared."""
SMOOTH = 0.3
"""Least mean autocorrelation along the rows of a table that has a row a region."""
ROUGH = 0.1
"""Largest mean autocorrelation along its columns."""


def refuse_other_orientation(where: str, exact: Float64, transposed: bool | None) -> None:
    """Refuse a (time, R) array that seems to have a row a region, or that holds correlations.

    Args:
        exact: values, NaN in regions that are missing throughout.
        transposed: the cohort's setting; the question is open where it is None.

    Raises:
        UserError: rows are smooth and columns are not, or the array is a symmetric matrix.
    """
    volumes, regions = exact.shape
    if volumes == regions > 2 and np.ptp(exact) > 0 and np.allclose(exact, exact.T, rtol=1e-6, atol=0):
        raise UserError(
            f"{where}: expected a row a volume, found a symmetric matrix, as correlations are; name the file of the "
            "series."
        )
    seen = exact[:, ~np.isnan(exact).any(axis=0)]
    if transposed is not None or min(seen.shape) < FEWEST:
        return
    along_rows = autocorrelation(seen.T)
    if along_rows >= SMOOTH and autocorrelation(seen) <= ROUGH:
        raise UserError(
            f"{where}: expected a row a volume, found rows that are smooth (autocorrelation {along_rows:.2f}) and "
            "columns that are not, as if each row were a region; set `transposed: true` for the cohort if it is so, "
            "`transposed: false` if rows are volumes."
        )


def autocorrelation(series: Float64) -> float:
    """Mean over the columns that vary of the autocorrelation with the row below; 0 if none varies."""
    centred = series - series.mean(axis=0)
    power = (centred**2).sum(axis=0)
    varying = power > 0
    if not varying.any():
        return 0.0
    return float(((centred[1:] * centred[:-1]).sum(axis=0)[varying] / power[varying]).mean())


# Read region series from NumPy's files (.npy, .npz) and MATLAB's (version 5, 7.3): arrays, and nothing is executed.
#
# Two toolboxes leave series in files with several variables. DPARSF (DPABI) writes the matrix `ROISignals`; CONN writes
# the cell arrays `data`, one column of volumes a region, and `names`, in `ROI_Subject*_Session*.mat` and
# `ROI_Subject*_Condition*.mat`.

Read = TypeVar("Read")

NUMPY = b"\x93NUMPY"
ZIP = b"PK\x03\x04"
HDF5 = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512
"""Bytes of MATLAB's own header before the HDF5 content of version 7.3."""
TOOLBOX = "ROISignals"
"""Variable of DPARSF and DPABI."""
NOT_REGIONS = re.compile(r"Grey Matter|White Matter|CSF|Effect of .*|Q[AC]_.*|realignment|scrubbing", re.IGNORECASE)
"""Entries of CONN's files beside the regions: tissues, covariates and conditions."""
COMPRESSION = 1032
"""Largest factor by which zlib compresses."""
SHOWN = 6


def array_format(file: str | Path) -> Format | None:
    """Format of a file of arrays by its content; None for other files, and for files that cannot be opened."""
    try:
        with Path(file).open("rb") as stream:
            head = stream.read(USER_BLOCK + len(HDF5))
    except OSError:
        return None
    if HDF5 in (head[: len(HDF5)], head[USER_BLOCK:]):
        return "hdf5"
    if head.startswith(NUMPY):
        return "npy"
    if head.startswith(ZIP):
        return "npz" if _holds_arrays(file) else None
    version_4 = Path(file).suffix.lower() == ".mat" and b"\0" in head[:4]
    return "mat" if version_4 or (head.startswith(b"MATLAB") and b"MAT-file" in head) else None


def read_array(
    where: str, file: str | Path, variable: str | None, known: Sequence[str], regions: int | None
) -> tuple[Float64, tuple[str, ...]]:
    """Read the (time, R) series in a file of arrays, and the names of its regions: empty where the file has none.

    Args:
        variable: name of the array; None: the only matrix of the file, or `ROISignals`.
        known: names of the cohort's regions; those of a CONN file are chosen by them if it has them all.
        regions: number of regions; None if it is not known.

    Raises:
        UserError: the file is damaged, holds no matrix of numbers or several, or no such variable.
    """
    form = array_format(file)
    if form == "npy":
        return _matrix(where, _intact(where, lambda: _read_npy(file))), ()
    contents = {"npz": _of_npz, "mat": _of_mat, "hdf5": _of_hdf5}[str(form)]
    shapes, load = _intact(where, lambda: contents(file))
    if {"Z", "names2"} <= shapes.keys() and variable is None:
        raise UserError(
            f"{where}: expected region series, found CONN's connectivity; name its ROI_Subject*_Condition*.mat, which "
            "lie under results/preprocessing."
        )
    if {"data", "names"} <= shapes.keys() and shapes["data"] is None and variable in (None, "data"):
        entries, names = _intact(where, lambda: (load("data"), load("names")))
        return _of_conn(where, entries, names, known, regions)
    name = _chosen(where, shapes, variable)
    return _matrix(where, _intact(where, lambda: np.asarray(load(name)))), ()


def _holds_arrays(file: str | Path) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except Exception:
        return Path(file).suffix.lower() == ".npz"
    return bool(names) and all(name.endswith(".npy") for name in names)


def _intact(where: str, read: Callable[[], Read]) -> Read:
    """Call a library's reader.

    Raises:
        UserError: it raises any error, as a damaged file may.
    """
    try:
        return read()
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        if "bject" in reason and isinstance(error, ValueError):
            raise UserError(
                f"{where}: expected an array of numbers, found Python objects, which are not loaded as they may run "
                "code; save a numeric array."
            ) from error
        raise UserError(
            f"{where}: expected whole arrays, found a damaged file ({type(error).__name__}: {reason}); copy or save it "
            "again."
        ) from error


def _read_npy(file: str | Path) -> NDArray[Any]:
    with Path(file).open("rb") as stream:
        values: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        if stream.read(1):
            raise EOFError("further bytes below the array")
    return values


def _of_npz(file: str | Path) -> Contents:
    def load(name: str) -> NDArray[Any]:
        with np.load(file, allow_pickle=False) as archive:
            values: NDArray[Any] = archive[name]
        return values

    with np.load(file, allow_pickle=False) as archive:
        return {name: archive[name].shape for name in archive.files}, load


NUMBER_CLASSES = frozenset(
    {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
"""MATLAB's classes of numbers."""


def _of_mat(file: str | Path) -> Contents:
    from scipy.io import loadmat, whosmat

    def load(name: str) -> Any:
        if version_5:
            check_variable(file, name)
        content = loadmat(str(file), appendmat=False, variable_names=[name])[name]
        return content.ravel(order="F").tolist() if content.dtype == object else content

    with Path(file).open("rb") as stream:
        version_5 = stream.read(len(b"MATLAB")) == b"MATLAB"
    listed = whosmat(str(file), appendmat=False)
    largest = COMPRESSION * Path(file).stat().st_size
    for name, shape, _ in listed:
        if math.prod(shape) > largest:
            raise ValueError(f"{name} of {' x '.join(map(str, shape))} does not fit into the file")
    return {name: tuple(shape) if kind in NUMBER_CLASSES else None for name, shape, kind in listed}, load


def _of_hdf5(file: str | Path) -> Contents:
    import h5py

    def load(name: str) -> Any:
        with h5py.File(file, "r", locking=False) as content:
            dataset = content[name]
            if dataset.dtype == object:
                return [_of_reference(content, reference) for reference in np.ravel(dataset[()])]
            return _of_matlab(dataset)

    shapes: dict[str, tuple[int, ...] | None] = {}
    with h5py.File(file, "r", locking=False) as content:
        for name in content:
            item = content.get(name)
            if isinstance(item, h5py.Dataset):
                numeric = item.dtype.kind in "iuf" and _class_of(item, "double") in NUMBER_CLASSES
                shapes[name] = tuple(item.shape[:: -1 if _class_of(item) else 1]) if numeric else None
    return shapes, load


def _class_of(data: Any, other: str = "") -> str:
    """MATLAB's class of a data set; `other` where another program wrote it."""
    kind = data.attrs.get("MATLAB_class", other)
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _of_reference(content: Any, reference: Any) -> Any:
    data = content[reference]
    if _class_of(data) == "char":
        return "".join(map(chr, np.ravel(data[()])))
    return _of_matlab(data)


def _of_matlab(data: Any) -> NDArray[Any]:
    """Float64 of a data set: MATLAB writes columns first, so its matrices lie there transposed."""
    if data.attrs.get("MATLAB_empty", 0):
        return np.empty(tuple(np.ravel(data[()]).astype(int)))
    values: NDArray[Any] = data[()]
    return values.T if _class_of(data) else values


def _chosen(where: str, shapes: Mapping[str, tuple[int, ...] | None], variable: str | None) -> str:
    """Name of the variable that holds the series.

    Raises:
        UserError: there is none, several may be it, or there is no variable of this name.
    """
    arrays = {name: shape for name, shape in shapes.items() if shape is not None}
    listed = ", ".join(
        f"{name} ({' x '.join(map(str, shape)) or '1'})" if shape is not None else name
        for name, shape in [*shapes.items()][:SHOWN]
    ) + (" ..." if len(shapes) > SHOWN else "")
    if variable is not None:
        if variable not in arrays:
            raise UserError(
                f"{where}: expected an array of numbers {variable!r}, found {listed or 'none'}; fix `variable`."
            )
        return variable
    matrices = [name for name, shape in arrays.items() if sum(length != 1 for length in shape) > 1]
    if len(matrices) == 1:
        return matrices[0]
    if TOOLBOX in matrices:
        return TOOLBOX
    if matrices:
        raise UserError(
            f"{where}: expected one matrix of region series, found {len(matrices)} ({listed}); name the right one as "
            "`variable` of the cohort."
        )
    raise UserError(
        f"{where}: expected a matrix of numbers with a row a volume, found {listed or 'no variable'}; save the "
        "series as one."
    )


def _matrix(where: str, values: NDArray[Any]) -> Float64:
    """The array as (time, R) numbers.

    Raises:
        UserError: it has another number of dimensions, or values that are no real numbers.
    """
    if values.dtype.kind not in "iuf":
        kind = {"c": "complex numbers", "b": "truth values"}.get(values.dtype.kind, f"values of type {values.dtype}")
        raise UserError(f"{where}: expected real numbers, found {kind}; save the series as numbers.")
    if values.ndim > 2:
        values = values.squeeze()
    if values.ndim != 2 or 0 in values.shape:
        shape = " x ".join(map(str, values.shape)) or "a single number"
        raise UserError(
            f"{where}: expected an array of volumes x regions, found {shape}; save one matrix a subject with a row a "
            "volume."
        )
    return np.asarray(values, dtype=np.float64)


def _of_conn(
    where: str, entries: Sequence[Any], texts: Sequence[Any], known: Sequence[str], regions: int | None
) -> tuple[Float64, tuple[str, ...]]:
    """Series and names of the regions of a CONN file.

    Raises:
        UserError: names and series are not of one number, or the regions are not those that are expected.
    """
    names = [text if isinstance(text, str) else "".join(map(str, np.ravel(text))) for text in texts]
    series = dict(zip(names, (np.atleast_2d(np.asarray(entry)) for entry in entries), strict=False))
    if not len(names) == len(entries) == len(series):
        raise UserError(
            f"{where}: expected a name of its own for each of {len(entries)} regions of CONN, found {len(names)}; save "
            "the file again."
        )
    chosen = list(known)
    if not chosen or not set(chosen) <= series.keys():
        chosen = [name for name, entry in series.items() if entry.shape[1] == 1 and not NOT_REGIONS.fullmatch(name)]
    if not chosen or (regions is not None and len(chosen) != regions):
        groups = Counter(name.partition(".")[0] for name in chosen)
        listed = ", ".join(f"{count} of {group}" for group, count in groups.most_common(SHOWN))
        raise UserError(
            f"{where}: expected {regions or 'some'} regions, found {len(chosen)} in CONN's file ({listed or 'none'}); "
            "set `regions`, or list the names of the regions to read in a table under `labels`."
        )
    if len({series[name].shape for name in chosen}) > 1:
        raise UserError(f"{where}: expected one column of volumes a region, found other lengths; save the file again.")
    return np.hstack([_matrix(where, series[name]) for name in chosen]), tuple(chosen)
