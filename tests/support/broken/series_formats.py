"""Generated files of region series in seven formats, sound or changed in one way, for tests of their readers."""

import io
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np
import scipy.io

FORMATS = ("csv", "tsv", "txt", "npy", "npz", "mat5", "mat73")
ENDINGS = {"mat5": ".mat", "mat73": ".mat"}
SEPARATORS = {"csv": ",", "tsv": "\t", "txt": " "}
MATLAB_CLASSES = {"f8": "double", "f4": "single", "i1": "int8", "i2": "int16", "i4": "int32", "u2": "uint16"}


@dataclass
class Case:
    """One file to be written, and what a reader should make of it.

    Attributes:
        form: one of `FORMATS`.
        truth: the (T, R) float32 numbers; a region that is missing throughout is NaN.
        settings: of the cohort, beside paths.
        refused: words of the refusal; empty: the file is read; None: either, as long as all agree.
        names: of the regions, where the file has them.
        kind: name of the change.
    """

    form: str
    truth: np.ndarray
    settings: dict = field(default_factory=dict)
    refused: str | None = ""
    names: tuple[str, ...] = ()
    kind: str = "sound"
    content: bytes = b""

    @property
    def file(self) -> str:
        return "s2" + ENDINGS.get(self.form, f".{self.form}")


def text_of(values: np.ndarray, form: str, names: tuple[str, ...] = ()) -> str:
    """The values as a text table."""
    separator = SEPARATORS[form]
    rows = [separator.join(f"{value:.9g}" for value in row) for row in values.tolist()]
    return "\n".join([*([separator.join(names)] if names else []), *rows, ""])


def npy_of(values: np.ndarray, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, **options)
    return stream.getvalue()


def npz_of(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def mat5_of(options: dict | None = None, **variables) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, variables, **(options or {}))
    return stream.getvalue()


def mat73_of(**variables) -> bytes:
    """MATLAB's version 7.3: HDF5 below a header of 512 bytes, columns first, cells as references."""
    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512) as file:
        references = file.create_group("#refs#")

        def write(group, name, value):
            if isinstance(value, str):
                held = group.create_dataset(name, data=np.array([[ord(letter)] for letter in value], dtype=np.uint16))
                held.attrs["MATLAB_class"] = np.bytes_("char")
            elif isinstance(value, list):
                cells = [write(references, f"{name}{number}", entry).ref for number, entry in enumerate(value)]
                held = group.create_dataset(name, (len(cells), 1), dtype=h5py.ref_dtype)
                held[:, 0] = cells
                held.attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                held = group.create_dataset(name, data=np.atleast_2d(value).T)
                held.attrs["MATLAB_class"] = np.bytes_(MATLAB_CLASSES.get(value.dtype.str[1:], "double"))
            return held

        for name, value in variables.items():
            write(file, name, value)
    content = bytearray(stream.getvalue())
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Fri Nov 27 2026 HDF5 schema 1.00 ."
    content[: len(head)] = head
    content[124:128] = b"\x00\x02IM"
    return bytes(content)


def cell_of(entries) -> np.ndarray:
    """A cell array of one row, as `scipy.io.savemat` writes it."""
    cell = np.empty((1, len(entries)), dtype=object)
    for place, entry in enumerate(entries):
        cell[0, place] = entry
    return cell


def plain(values: np.ndarray, form: str, names: tuple[str, ...] = ()) -> bytes:
    """The values as a sound file of a format."""
    if form in SEPARATORS:
        return text_of(values, form, names).encode()
    return {
        "npy": npy_of,
        "npz": lambda array: npz_of(series=array),
        "mat5": lambda array: mat5_of(ROISignals=array),
        "mat73": lambda array: mat73_of(ROISignals=array),
    }[form](values)


def drawn(draw: random.Random, volumes: int, regions: int) -> np.ndarray:
    """A (T, R) float32 series that is smooth in time."""
    noise = np.random.default_rng(draw.randrange(2**32)).standard_normal((volumes + 3, regions))
    return sum(noise[lag : lag + volumes] for lag in range(4)).astype(np.float32)


# Changes: each takes the draw and a sound case, and returns the changed one.


def written(case: Case, content: bytes, kind: str, refused: str | None = "", **changes) -> Case:
    return replace(case, content=content, kind=kind, refused=refused, **changes)


def named_header(draw, case):
    names = tuple(f"R{place}" for place in range(case.truth.shape[1]))
    return written(case, plain(case.truth, case.form, names), "header", names=names)


def marked_header(draw, case):
    names = tuple(str(place + 1) for place in range(case.truth.shape[1]))
    marks = tuple(f"#{name}" for name in names)
    return written(case, plain(case.truth, case.form, marks), "marked header", names=names)


def byte_order_mark(draw, case):
    return written(case, b"\xef\xbb\xbf" + case.content, "byte order mark")


def other_line_ends(draw, case):
    return written(case, case.content.replace(b"\n", draw.choice([b"\r\n", b"\r"])), "line ends")


def comments_above(draw, case):
    above = draw.choice(
        [b"# C-PAC 1.8.5\n", b"# C-PAC\n# 2026-11-27, made by a pipeline\n", b'# <matrix\n# ni_type = "x"\n# >\n']
    )
    return written(case, above + case.content + draw.choice([b"", b"# end\n"]), "comments")


def comment_between(draw, case):
    lines = case.content.split(b"\n")
    return written(case, b"\n".join([lines[0], b"# second run", *lines[1:]]), "comment between", "expected")


def trailing_separators(draw, case):
    mark = SEPARATORS[case.form].encode() * draw.randint(1, 3)
    lines = [line + mark if line else line for line in named_header(draw, case).content.split(b"\n")]
    if draw.random() < 0.5:
        return written(case, b"\n".join(lines[1:]), "trailing separators")
    return written(case, b"\n".join(lines), "trailing separators", names=named_header(draw, case).names)


def between_bars(draw, case):
    text = text_of(case.truth, "csv", named_header(draw, case).names)
    framed = draw.choice([lambda line: f"| {line} |", lambda line: line])
    lines = [framed(line.replace(",", " | ")) for line in text.split("\n") if line]
    if lines[0].startswith("| ") and draw.random() < 0.5:
        lines.insert(1, "|" + "---|" * case.truth.shape[1])
    return written(case, "\n".join(lines).encode(), "bars", names=named_header(draw, case).names)


def index_column(draw, case):
    lines = [f"{number}{SEPARATORS[case.form]}{line}" for number, line in enumerate(case.content.decode().split("\n"))]
    return written(case, "\n".join(lines[:-1]).encode(), "index column", "regions, found")


def decimal_commas(draw, case):
    return written(case, case.content.replace(b",", b";").replace(b".", b","), "decimal commas", "decimal commas")


def one_cell(draw, case):
    cell = draw.choice(["n/a", "nan", "inf", "x", "", "1e99", "1_0", "NULL"])
    lines = [line.split(SEPARATORS[case.form]) for line in case.content.decode().split("\n")]
    lines[draw.randrange(len(lines) - 1)][draw.randrange(case.truth.shape[1])] = cell
    return written(case, "\n".join(map(SEPARATORS[case.form].join, lines)).encode(), f"one {cell!r}", "expected")


def missing_region(draw, case):
    column, truth = draw.randrange(case.truth.shape[1]), case.truth.copy()
    truth[:, column] = np.nan
    if case.form not in SEPARATORS:
        return written(case, plain(truth, case.form), "missing region", truth=truth)
    code = draw.choice(["n/a", "NaN", "NA", "nan", *([""] if case.form != "txt" else [])])
    named = named_header(draw, case) if draw.random() < 0.5 else case
    lines = [line.split(SEPARATORS[case.form]) for line in named.content.decode().split("\n")]
    for line in lines[1 if named.names else 0 : -1]:
        line[column] = code
    content = "\n".join(map(SEPARATORS[case.form].join, lines)).encode()
    return written(case, content, f"missing region {code!r}", truth=truth, names=named.names)


def constant_region(draw, case):
    truth = case.truth.copy()
    truth[:, draw.randrange(truth.shape[1])] = draw.choice([0.0, 3.5])
    return written(case, plain(truth, case.form), "constant region", truth=truth)


def transposed(draw, case):
    setting = draw.choice([True, None])
    refused = "" if setting else "the table is transposed"
    settings = case.settings | {"transposed": setting}
    return written(case, plain(case.truth.T, case.form), "transposed", refused, settings=settings)


def square(draw, case):
    truth = drawn(draw, 48, 48)
    settings = case.settings | {"regions": 48}
    if draw.random() < 0.3:
        return written(case, plain(truth, case.form), "square", truth=truth, settings=settings)
    return written(case, plain(truth.T, case.form), "square transposed", "rows that are smooth", settings=settings)


def correlations(draw, case):
    matrix = np.corrcoef(case.truth.T).astype(np.float32)
    return written(case, plain(matrix, case.form), "correlations", "expected a row a volume, found a symmetric")


def cut(draw, case):
    return written(case, case.content[: draw.randrange(len(case.content))], "cut", None)


def flipped(draw, case):
    content = bytearray(case.content)
    for _ in range(draw.choice([1, 1, 20])):
        content[draw.randrange(min(len(content), draw.choice([200, 10**9])))] = draw.randrange(256)
    return written(case, bytes(content), "flipped bytes", None)


def empty(draw, case):
    return written(case, b"", "empty", "found an empty file")


def pointer(draw, case):
    content = draw.choice(
        [b"/annex/objects/MD5E-s22--ab.npy\n", b"version https://git-lfs.github.com/spec/v1\noid x\n"]
    )
    return written(case, content, "pointer", "a content that was not fetched")


def another_type(draw, case):
    kind = draw.choice(["<f8", ">f8", ">f4", "<i2", ">i2", "<i4", "|i1", "<u2"])
    whole = np.abs(np.round(case.truth * 5)) if kind[1] == "u" else np.round(case.truth * 5)
    values = (case.truth if kind[1] == "f" else whole).astype(kind)
    values = np.asfortranarray(values) if draw.random() < 0.5 else values
    if case.form == "mat73":
        values = values.astype(values.dtype.newbyteorder("="))
    return written(case, plain(values, case.form), f"type {kind}", truth=values.astype(np.float32))


def no_numbers(draw, case):
    kind = draw.choice(["complex", "truth", "words"])
    values = {"complex": case.truth + 1j, "truth": case.truth > 0, "words": case.truth.astype(str)}[kind]
    if case.form == "mat73":
        values = case.truth.astype(complex)
    if case.form == "mat5" and kind == "words":
        values = cell_of([*"abcdefghi"])
    return written(case, plain(values, case.form), f"no numbers: {kind}", "expected")


def objects(draw, case):
    values = case.truth.astype(object)
    content = pickle.dumps(case.truth) if draw.random() < 0.3 else plain(values, case.form)
    return written(case, content, "objects", "expected")


def further_dimension(draw, case):
    single = case.truth[draw.choice([np.s_[None], np.s_[:, :, None], np.s_[:, None]])]
    other = draw.choice(
        [np.stack([case.truth] * 2), case.truth.ravel() if case.form != "mat73" else np.stack([case.truth] * 2)]
    )
    values, refused = draw.choice(
        [(single, ""), (other, "expected an array of volumes x regions|no matrix|a matrix of numbers")]
    )
    return written(case, plain(values, case.form), f"dimensions {values.ndim}", refused)


def no_row(draw, case):
    return written(case, plain(case.truth[:0], case.form), "no row", "expected")


def not_finite(draw, case):
    values = case.truth.astype(np.float64)
    values[draw.randrange(len(values)), 0] = draw.choice([np.nan, np.inf, -np.inf, 1e39])
    return written(case, plain(values, case.form), "not finite", "expected finite numbers")


def several(draw, case):
    other = np.ones((len(case.truth), 2))
    pack = {"npz": npz_of, "mat5": mat5_of, "mat73": mat73_of}[case.form]
    way = draw.choice(["named", "none named", "the toolbox's", "wrong", "scalars beside"])
    if way == "the toolbox's":
        return written(case, pack(other=other, ROISignals=case.truth), way)
    if way == "scalars beside":
        return written(case, pack(tr=np.array(2.0), series=case.truth, onset=np.arange(5.0)[:, None]), way)
    settings = case.settings | {"variable": {"named": "series", "wrong": "serie"}.get(way)}
    refused = {"named": "", "wrong": "found other .*fix `variable`"}.get(
        way, "found 2 .*name the right one as `variable`"
    )
    return written(case, pack(other=other, series=case.truth), f"several, {way}", refused, settings=settings)


def further_bytes(draw, case):
    return written(case, case.content + b"more", "further bytes", "found a damaged file")


def toolbox(draw, case):
    """CONN's file: tissues first, one column a region, covariates last."""
    volumes, regions = case.truth.shape
    names = tuple(f"atlas.R{place} (a region)" for place in range(regions))
    tissues = {
        "Grey Matter": np.ones((volumes, 1)),
        "White Matter": np.ones((volumes, 5)),
        "CSF": np.ones((volumes, 5)),
    }
    after = {
        "realignment": np.ones((volumes, 6)),
        "QC_timeseries": np.ones((volumes, 1)),
        "Effect of rest": np.ones((volumes, 1)),
    }
    series = tissues | {name: case.truth[:, [place]].astype(np.float64) for place, name in enumerate(names)} | after
    beside = {"sampledata": np.ones((volumes, 30)), "xyz": [np.ones((1, 3))] * len(series)}
    if draw.random() < 0.3:
        del series[names[-1]]
        refused = "regions, found .* in CONN's file"
    else:
        refused = ""
    data, held = list(series.values()), list(series)
    if case.form == "mat5":
        beside["xyz"] = cell_of(beside["xyz"])
        content = mat5_of(data=cell_of(data), names=cell_of(held), **beside)
    else:
        content = mat73_of(data=data, names=held, **beside)
    return written(case, content, "CONN", refused, names=names)


def connectivity_of_toolbox(draw, case):
    pack = {"mat5": mat5_of, "mat73": mat73_of}[case.form]
    names = {"mat5": cell_of(["a"]), "mat73": ["a"]}[case.form]
    return written(
        case, pack(Z=case.truth, names=names, names2=names), "CONN's connectivity", "found CONN's connectivity"
    )


def old_version(draw, case):
    way = draw.choice(["4", "compressed", "text"])
    if way == "text":
        return written(case, text_of(case.truth, "txt").encode(), "MATLAB's text")
    options = {"format": "4"} if way == "4" else {"do_compression": True}
    return written(case, mat5_of(options, ROISignals=case.truth.astype(np.float64)), f"version {way}")


def structure(draw, case):
    return written(case, mat5_of(result={"series": case.truth}), "structure", "expected a matrix of numbers")


Change = Callable[[random.Random, Case], Case]

ALL: tuple[Change, ...] = (
    missing_region,
    constant_region,
    transposed,
    square,
    correlations,
    cut,
    flipped,
    empty,
    pointer,
)
TEXT: tuple[Change, ...] = (
    *(named_header, marked_header, byte_order_mark, other_line_ends, comments_above, comment_between),
    *(trailing_separators, between_bars, index_column, decimal_commas, one_cell),
)
ARRAYS: tuple[Change, ...] = (another_type, no_numbers, further_dimension, no_row, not_finite)
CHANGES: dict[str, tuple[Change, ...]] = {
    "csv": (*ALL, *TEXT),
    "tsv": (*ALL, *TEXT),
    "txt": (*ALL, *(change for change in TEXT if change is not trailing_separators)),
    "npy": (*ALL, *ARRAYS, objects, further_bytes),
    "npz": (*ALL, *ARRAYS, objects, several),
    "mat5": (*ALL, *ARRAYS, several, toolbox, connectivity_of_toolbox, old_version, structure),
    "mat73": (*ALL, *ARRAYS, several, toolbox, connectivity_of_toolbox),
}


def made(seed: int) -> Case:
    """The case of a seed; all changes of all formats come in turn, before one comes again."""
    draw = random.Random(seed)
    turns = [(form, change) for form in FORMATS for change in (None, *CHANGES[form])]
    random.Random(0).shuffle(turns)
    form, change = turns[seed % len(turns)]
    truth = drawn(draw, draw.randint(12, 19), draw.randint(4, 9))
    case = Case(form, truth, {"regions": truth.shape[1]})
    case = replace(case, content=plain(truth, form))
    return case if change is None else change(draw, case)


def write(case: Case, folder: Path) -> Path:
    path = folder / case.file
    path.write_bytes(case.content)
    return path
