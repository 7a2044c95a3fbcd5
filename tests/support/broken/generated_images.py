"""Images, confounds and atlases as other programs write them, and damaged ones: each mutation says what must happen.

`read`: the job reads the numbers that were written; `refused`: check and job refuse in one sentence.
"""

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nibabel as nib
import numpy as np

SHAPE, VOLUMES, TR = (6, 5, 4), 60, 2.0
AFFINE = np.array([[8.0, 0, 0, -20], [0, 8, 0, -16], [0, 0, 8, -12], [0, 0, 0, 1]])
TURNED = np.array([[0.0, -1, 0, -100], [1, 0, 0, 100], [0, 0, 1, 0], [0, 0, 0, 1]])
"""A quarter turn about z, to a corner of the world."""
NAMES = ("Left, lateral", "B", "C")


@dataclass
class Made:
    """One subject's files and what is written into them: (x, y, z, time) voxels, (x, y, z) labels, (time, 3) confounds.

    `compared`: whether the series follow from them.
    """

    folder: Path
    draw: random.Random
    voxels: np.ndarray
    labels: np.ndarray
    confounds: np.ndarray
    settings: dict[str, object] = field(default_factory=dict)
    compared: bool = True

    @property
    def image(self) -> Path:
        return Path(str(self.settings["series"]).format(subject="s1"))

    @property
    def table(self) -> Path:
        return Path(str(self.settings["confounds"] or self.folder / "{subject}.tsv").format(subject="s1"))

    @property
    def atlas(self) -> Path:
        return Path(str(self.settings["parcellation"]))


@dataclass(frozen=True)
class Mutation:
    """One way in which files differ from the usual ones; `words` are of the sentence of the job, where known."""

    name: str
    make: Callable[[Made], None]
    verdict: str
    words: str | None = None


def nifti(values: np.ndarray, affine: np.ndarray = AFFINE, kind: type[nib.Nifti1Pair] = nib.Nifti1Image, **header):
    image = kind(values, affine, dtype=values.dtype)
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = TR
    for key, value in header.items():
        if key == "tr":
            image.header["pixdim"][4] = value
        else:
            image.header[key] = value
    return image


def sound(folder: Path, seed: int) -> Made:
    """Two subjects whose files have nothing unusual."""
    numbers = np.random.default_rng(seed)
    labels = np.zeros(SHAPE, dtype=np.int16)
    for at, label in enumerate((1, 2, 3)):
        labels[2 * at : 2 * at + 2, 1:] = label
    voxels = numbers.normal(1000, 30, (*SHAPE, VOLUMES)).astype(np.float32)
    made = Made(folder, random.Random(seed), voxels, labels, numbers.standard_normal((VOLUMES, 3)).round(6))
    for subject, values in (("s1", voxels), ("s2", numbers.normal(1000, 30, voxels.shape).astype(np.float32))):
        nib.save(nifti(values), folder / f"{subject}.nii.gz")
        write_table(folder / f"{subject}.tsv", made.confounds)
    nib.save(nib.Nifti1Image(labels, AFFINE), folder / "atlas.nii.gz")
    (folder / "atlas.tsv").write_text(region_table(), encoding="utf-8")
    (folder / "people.csv").write_text(
        "participant_id,site,age,sex,diagnosis\ns1,a,20,male,patient\ns2,a,30,female,control\n"
    )
    made.settings = {
        "source": "nifti",
        "phenotype": str(folder / "people.csv"),
        "series": f"{folder}/{{subject}}.nii.gz",
        "confounds": f"{folder}/{{subject}}.tsv",
        "parcellation": str(folder / "atlas.nii.gz"),
        "labels": str(folder / "atlas.tsv"),
    }
    return made


def write_table(path: Path, values: np.ndarray, names=("x", "y", "z"), separator="\t", end="\n") -> None:
    rows = [separator.join(f"{value:.6f}" for value in row) for row in values]
    path.write_bytes(end.join([*([separator.join(names)] if names else []), *rows, ""]).encode())


def region_table(separator: str = "\t", header=("index", "name"), rows=((1, NAMES[0]), (2, NAMES[1]), (3, NAMES[2]))):
    quoted = [[f'"{cell}"' if separator in str(cell) else str(cell) for cell in row] for row in (header, *rows)]
    return "".join(separator.join(row) + "\n" for row in quoted)


# --- images ---------------------------------------------------------------------------------------------------------


def stored(dtype: str, **header):
    """Voxels of another type; whole numbers if it is one of whole numbers."""

    def make(made: Made) -> None:
        made.voxels = (np.rint(made.voxels) if np.dtype(dtype).kind in "iu" else made.voxels).astype(dtype)
        nib.save(nifti(made.voxels, **header), made.image)

    return make


def scaled(made: Made) -> None:
    """Whole numbers with a slope and an intercept."""
    image = nib.Nifti1Image(made.voxels, AFFINE)
    image.header.set_data_dtype(np.int16)
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = TR
    nib.save(image, made.image)
    made.voxels = np.asarray(nib.load(made.image).dataobj)


def saved(**header):
    return lambda made: nib.save(nifti(made.voxels, **header), made.image)


def unit(text: str, tr: float):
    def make(made: Made) -> None:
        image = nifti(made.voxels)
        image.header.set_xyzt_units("mm", text)
        image.header["pixdim"][4] = tr
        nib.save(image, made.image)

    return make


def placed(change: Callable[[nib.Nifti1Image], None], compared: bool = True):
    def make(made: Made) -> None:
        image = nifti(made.voxels)
        change(image)
        nib.save(image, made.image)
        made.compared = made.compared and compared

    return make


def named(ending: str, kind: type[nib.Nifti1Pair] = nib.Nifti1Image):
    """All images with another ending."""

    def make(made: Made) -> None:
        for subject in ("s1", "s2"):
            old = made.folder / f"{subject}.nii.gz"
            nib.save(nifti(np.asarray(nib.load(old).dataobj), kind=kind), made.folder / f"{subject}{ending}")
            old.unlink()
        made.settings["series"] = f"{made.folder}/{{subject}}{ending}"

    return make


def bytes_of(change: Callable[[bytes], bytes]):
    """The file with other bytes."""
    return lambda made: made.image.write_bytes(change(made.image.read_bytes()))


def content_of(change: Callable[[bytes], bytes]):
    """The file with other bytes in its gzip stream."""
    return bytes_of(lambda content: gzip.compress(change(gzip.decompress(content))))


def patched(place: int, value: bytes):
    """A header with other bytes; nibabel would not write it."""
    return content_of(lambda content: content[:place] + value + content[place + len(value) :])


def members(content: bytes) -> bytes:
    plain = gzip.decompress(content)
    return b"".join(gzip.compress(plain[start : start + 5000]) for start in range(0, len(plain), 5000))


def other_byte(place: int) -> Callable[[bytes], bytes]:
    """A byte is turned, as in the check sum that gunzip compares."""

    def change(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[place] ^= 0xFF
        return bytes(changed)

    return change


def bad_block(content: bytes) -> bytes:
    """Bytes that zlib cannot inflate."""
    middle = len(content) // 2
    return content[:middle] + b"\xff" * 200 + content[middle + 200 :]


def of_shape(change: Callable[[np.ndarray], np.ndarray]):
    return lambda made: nib.save(nifti(change(made.voxels)), made.image)


def shortened(made: Made) -> None:
    made.voxels = made.voxels[..., :34]
    nib.save(nifti(made.voxels), made.image)


def voxel(value: float):
    def make(made: Made) -> None:
        made.voxels[2, 2, 2, 7] = value
        nib.save(nifti(made.voxels), made.image)

    return make


def background(made: Made) -> None:
    """NaN in all volumes, where no region is and in a part of one."""
    made.voxels[:, 0] = np.nan
    made.voxels[0, 1:3] = np.nan
    nib.save(nifti(made.voxels), made.image)


def other_format(kind: str):
    def make(made: Made) -> None:
        ending = {"mgz": ".mgz", "analyze": ".img", "gii": ".func.gii", "cifti": ".dtseries.nii"}[kind]
        for subject in ("s1", "s2"):
            path = made.folder / f"{subject}{ending}"
            nib.save(in_format(kind, made.voxels), path)
        made.settings["series"] = f"{made.folder}/{{subject}}{ending}"

    return make


def in_format(kind: str, values: np.ndarray):
    if kind == "mgz":
        return nib.MGHImage(values.astype(np.float32), AFFINE)
    if kind == "analyze":
        return nib.Spm2AnalyzeImage(values.astype(np.float32), AFFINE)
    if kind == "gii":
        return nib.GiftiImage(darrays=[nib.gifti.GiftiDataArray(np.arange(9, dtype=np.float32), "NIFTI_INTENT_LABEL")])
    axes = (
        nib.cifti2.SeriesAxis(0, TR, 4),
        nib.cifti2.BrainModelAxis.from_mask(np.ones((2, 2, 2), bool), affine=AFFINE),
    )
    return nib.Cifti2Image(np.zeros((4, 8), dtype=np.float32), axes)


def link(target: str):
    def make(made: Made) -> None:
        held = made.image.read_bytes()
        made.image.unlink()
        if target == "content":
            (made.folder / "annex").write_bytes(held)
            made.image.symlink_to("annex")
        else:
            made.image.symlink_to(target)

    return make


def in_config(**settings):
    return lambda made: made.settings.update(settings)


def both(*parts: Callable[[Made], None]):
    def make(made: Made) -> None:
        for part in parts:
            part(made)

    return make


def only_qform(image: nib.Nifti1Image) -> None:
    image.set_sform(None, 0)
    image.set_qform(AFFINE, 1)


def two_affines(image: nib.Nifti1Image) -> None:
    image.set_sform(AFFINE, 2)
    image.set_qform(AFFINE @ np.diag([1.0, 1, 1, 1]) + np.array([[0, 0, 0, 40.0], [0] * 4, [0] * 4, [0] * 4]), 1)


def no_affine(image: nib.Nifti1Image) -> None:
    image.set_sform(None, 0)
    image.set_qform(None, 0)


IMAGE, TABLE, ATLAS, NAMED = r"Subject s1, .*s1\.nii", r"Subject s1, .*s1\.tsv", r"atlas\.nii\.gz", r"names\.tsv"
WHOLE = IMAGE + ".*expected a whole NIfTI image"
SENTENCES = {
    **dict.fromkeys(("scaled", "ms", "us", "TR of the config", "only a low-pass", "34 volumes that suffice"), ""),
    **dict.fromkeys(("no filter and no TR", "background of NaN", "derivatives", "without a header"), ""),
    "cut": WHOLE + ".*fetch it again",
    "cut inside": WHOLE,
    "cut, uncompressed": WHOLE + ".*fetch it",
    "check sum": WHOLE,
    "block": WHOLE,
    "text": WHOLE,
    "empty": WHOLE,
    "3D": IMAGE + r".*expected a 4D .*found shape \(6, 5, 4\)",
    "another place": IMAGE + r".*space of atlas .*shares no voxel with it \(x 10000 \.\.\. 10040 mm.*fix its affine",
    "another place, turned": IMAGE + ".*shares no voxel.*fix its affine",
    "flat affine": IMAGE + ".*expected an invertible affine",
    "TR of 0": IMAGE + ".*expected a repetition time for the band-pass, found none.*set `tr`",
    "TR too long for the band": IMAGE + ".*expected low_pass below 0.08333 Hz .*TR 6 s.*lower it",
    "2000 s": IMAGE + ".* of at most 30 s, found 2000 s; is it in ms",
    "33 volumes": IMAGE + ".*at least 34 volumes for the band-pass, found 33; leave the scan out",
    "NaN": IMAGE + r".*found 1 NaN or infinite .*first at \[2, 2, 2, 7\].*repair the image",
    "infinite voxel": IMAGE + ".*found 1 NaN or infinite .*repair the image",
    "constant": IMAGE + ".*found no voxel that varies in time",
    "no table of confounds": r"confounds file .*s1\.tsv of subject s1, found none",
    "a row less": TABLE + ".*expected 60 rows, one a volume, found 59",
    "words": TABLE + ".*numbers in column 'x', found text",
    "absent column": TABLE + ".*confounds y, found none of that name among x, b, z; name columns of the table",
    "gap": TABLE + ", line 10: expected a finite value in column 'y'",
    "labels 0.3 off": ATLAS + ": expected whole numbers",
    "unnamed label": r"found 1 more \(9\); add",
    "cut atlas": ATLAS + ": expected a NIfTI parcellation, found a damaged or absent",
    "check sum of the atlas": ATLAS + ": expected a NIfTI parcellation, found a damaged or absent",
    "text atlas": ATLAS + ": expected a NIfTI parcellation",
    "no index": NAMED + ".*found label, name; add index",
    "empty region table": NAMED + ": expected a tab-separated text table",
    "binary region table": NAMED + ": expected a tab-separated",
}
"""Name of a mutation that the first tier always draws -> words of the sentence that a user reads; empty: it is read."""


def of(*mutations: tuple[str, str, Callable[[Made], None]]) -> tuple[Mutation, ...]:
    return tuple(Mutation(name, make, verdict, SENTENCES.get(name)) for verdict, name, make in mutations)


IMAGES = of(
    ("read", "int16", stored("int16")),
    ("read", "uint16", stored("uint16")),
    ("read", "int32", stored("int32")),
    ("read", "int64", stored("int64")),
    ("read", "float64", stored("float64")),
    ("read", "big-endian", stored(">f4")),
    ("read", "scaled", scaled),
    ("read", "slope of 0", both(saved(), patched(112, np.float32(0).tobytes()))),
    ("read", "slope of NaN", both(saved(), patched(112, np.float32(np.nan).tobytes()))),
    ("refused", "intercept of infinity", both(saved(), patched(112, np.array([1, np.inf], np.float32).tobytes()))),
    ("read", "NIfTI-2", lambda made: nib.save(nifti(made.voxels, kind=nib.Nifti2Image), made.image)),
    ("read", "uncompressed", named(".nii")),
    ("read", "pair", named(".img", nib.Nifti1Pair)),
    ("read", "ms", unit("msec", 2000)),
    ("read", "us", unit("usec", 2e6)),
    ("read", "unknown unit", unit("unknown", 2)),
    ("read", "unknown unit of space", saved(xyzt_units=15)),
    ("refused", "2 ms", unit("msec", 2)),
    ("refused", "2 us", unit("usec", 2)),
    ("refused", "2000 us", unit("usec", 2000)),
    ("refused", "2000 s", unit("sec", 2000)),
    ("refused", "2 million", unit("unknown", 2e6)),
    ("refused", "infinite TR", saved(tr=np.inf)),
    ("refused", "TR of 0", saved(tr=0)),
    ("refused", "negative TR", saved(tr=-2)),
    ("refused", "TR of NaN", saved(tr=np.nan)),
    ("refused", "TR in Hz", unit("hz", 2)),
    ("refused", "TR too long for the band", saved(tr=6)),
    ("read", "TR of the config", both(unit("msec", 2), in_config(tr={"a": TR}))),
    ("refused", "TR of the config in ms", in_config(tr={"a": 2000.0})),
    ("refused", "TR of the config in ks", in_config(tr={"a": 0.002})),
    ("read", "no filter and no TR", both(saved(tr=0), in_config(extraction={"high_pass": None, "low_pass": None}))),
    ("read", "only a low-pass", in_config(extraction={"high_pass": None})),
    ("read", "only a high-pass", in_config(extraction={"low_pass": None})),
    ("read", "neither trend nor scale", in_config(extraction={"detrend": False, "standardise": False})),
    ("read", "gzip in members", bytes_of(members)),
    ("read", "zeros behind gzip", bytes_of(lambda content: content + bytes(9))),
    ("refused", "garbage behind gzip", bytes_of(lambda content: content + b"garbage!!")),
    ("read", "longer than its header says", content_of(lambda content: content + bytes(99))),
    ("refused", "cut", bytes_of(lambda content: content[: len(content) // 2])),
    ("refused", "cut, uncompressed", both(named(".nii"), bytes_of(lambda content: content[: len(content) // 2]))),
    ("refused", "cut by a byte", bytes_of(lambda content: content[:-1])),
    ("refused", "cut inside", content_of(lambda content: content[: len(content) // 2])),
    ("refused", "header alone", content_of(lambda content: content[:352])),
    ("refused", "half a header", content_of(lambda content: content[:100])),
    ("refused", "check sum", bytes_of(other_byte(-7))),
    ("refused", "block", bytes_of(bad_block)),
    ("refused", "length", bytes_of(other_byte(-3))),
    ("refused", "first byte", bytes_of(other_byte(0))),
    ("refused", "no magic", patched(344, b"abcd")),
    ("read", "size of the header", patched(0, b"\x07\x00\x00\x00")),
    ("refused", "unknown type", patched(70, np.int16(9999).tobytes())),
    ("refused", "type 0", patched(70, np.int16(0).tobytes())),
    ("refused", "voxels far behind", patched(108, np.float32(1e9).tobytes())),
    ("refused", "32767 volumes", patched(48, np.int16(32767).tobytes())),
    ("refused", "huge", patched(42, np.full(4, 32767, np.int16).tobytes())),
    ("refused", "no volume", patched(48, np.int16(0).tobytes())),
    ("refused", "negative volumes", patched(48, np.int16(-4).tobytes())),
    ("refused", "eight axes", patched(40, np.int16(8).tobytes())),
    ("refused", "no axis", patched(40, np.int16(0).tobytes())),
    ("refused", "3D", of_shape(lambda values: values[..., 0])),
    ("refused", "5D", of_shape(lambda values: values[..., None])),
    ("refused", "33 volumes", both(of_shape(lambda values: values[..., :33]), in_config(confounds=None))),
    ("refused", "34 volumes", both(of_shape(lambda values: values[..., :34]), in_config(confounds=None))),
    ("read", "34 volumes that suffice", both(shortened, in_config(confounds=None, min_timepoints=34))),
    ("refused", "complex", of_shape(lambda values: values.astype(np.complex64))),
    ("refused", "colours", of_shape(lambda values: np.zeros(values.shape, [("R", "u1"), ("G", "u1"), ("B", "u1")]))),
    ("refused", "affine of NaN", patched(280, np.float32(np.nan).tobytes())),
    ("refused", "flat affine", patched(280, bytes(16))),
    ("refused", "another place", patched(292, np.float32(1e4).tobytes())),
    ("refused", "another place, turned", lambda made: nib.save(nifti(made.voxels, TURNED @ AFFINE), made.image)),
    ("read", "qform alone", placed(only_qform)),
    ("read", "two affines", placed(two_affines)),
    ("read", "no affine", placed(no_affine, compared=False)),
    ("refused", "NaN", voxel(np.nan)),
    ("refused", "infinite voxel", voxel(np.inf)),
    ("refused", "constant", of_shape(np.ones_like)),
    ("read", "background of NaN", background),
    ("refused", "mgz", other_format("mgz")),
    ("refused", "Analyze", other_format("analyze")),
    ("refused", "GIFTI", other_format("gii")),
    ("refused", "CIFTI", other_format("cifti")),
    ("refused", "not compressed", bytes_of(gzip.decompress)),
    ("refused", "compressed", both(named(".nii"), bytes_of(gzip.compress))),
    ("refused", "empty", bytes_of(lambda _: b"")),
    ("refused", "text", bytes_of(lambda _: b"/annex/objects/MD5E-s1--abc.nii.gz\n")),
    ("refused", "text in gzip", bytes_of(lambda _: gzip.compress(b"not an image" * 99))),
    ("read", "link", link("content")),
    ("refused", "link without content", link("../.git/annex/objects/xx/MD5E")),
    ("refused", "link to itself", link("s1.nii.gz")),
    ("refused", "folder", lambda made: (made.image.unlink(), made.image.mkdir())),
    ("refused", "absent", lambda made: made.image.unlink()),
)  # fmt: skip


# --- confounds ------------------------------------------------------------------------------------------------------


def table(names=("x", "y", "z"), separator="\t", end="\n"):
    return lambda made: write_table(made.table, made.confounds, names, separator, end)


def text_of(change: Callable[[str], str], encoding: str = "utf-8"):
    return lambda made: made.table.write_bytes(change(made.table.read_text()).encode(encoding))


def line(number: int, change: Callable[[str], str]):
    def make(made: Made) -> None:
        lines = made.table.read_text().split("\n")
        lines[number] = change(lines[number])
        made.table.write_text("\n".join(lines))

    return make


def derivatives(made: Made) -> None:
    """The first row is unknown, as of a temporal derivative; the second row's values stand for it."""
    made.confounds[0] = made.confounds[1]
    rows = made.table.read_text().split("\n")
    code = made.draw.choice(["n/a", "NaN", "", "NA"])
    made.table.write_text("\n".join([rows[0], "\t".join([code] * 3), *rows[2:]]))


def by_tool(made: Made) -> None:
    """Motion parameters without a header: SPM pads with blanks, FSL ends lines with two, AFNI begins with a comment."""
    numbers = [[f"{value:.6f}" for value in row] for row in made.confounds]
    spm = "".join("".join(f"{cell:>16}" for cell in row) + "\n" for row in numbers)
    fsl = "".join("  ".join(row) + "  \n" for row in numbers)
    afni = "# 1dcat dfile_rall.1D\n" + "".join(" ".join(row) + "\n" for row in numbers)
    made.table.write_text(made.draw.choice([spm, fsl, afni]))


def many(count: int, alike: bool = False):
    """More columns, new ones or copies of the three."""

    def make(made: Made) -> None:
        numbers = np.random.default_rng(count).standard_normal((VOLUMES, count)).round(6)
        further = made.confounds[:, np.arange(count) % 3] if alike else numbers
        whole = np.hstack([made.confounds, further])
        write_table(made.table, whole, tuple(f"c{number}" for number in range(whole.shape[1])))
        made.confounds = whole

    return make


def chosen(*columns: str):
    def make(made: Made) -> None:
        made.settings["confound_columns"] = list(columns)
        made.confounds = made.confounds[:, ["xyz".index(column) for column in columns]]

    return make


def row_numbers(made: Made) -> None:
    lines = made.table.read_text().split("\n")
    made.table.write_text("\n".join(["\t" + lines[0], *(f"{at}\t{one}" for at, one in enumerate(lines[1:-1]))]))


CONFOUNDS = of(
    ("read", "commas", table(separator=",")),
    ("read", "semicolons", table(separator=";")),
    ("read", "blanks", table(separator="   ")),
    ("read", "commas and blanks", table(separator=", ")),
    ("read", "CRLF", table(end="\r\n")),
    ("read", "CR", table(end="\r")),
    ("read", "BOM", text_of(str, "utf-8-sig")),
    ("read", "UTF-16", text_of(str, "utf-16")),
    ("refused", "UTF-16 without a mark", text_of(str, "utf-16-le")),
    ("refused", "Latin-1", text_of(lambda text: text.replace("x", "\u00e9"), "latin-1")),
    ("read", "trailing tabs", text_of(lambda text: text.replace("\n", "\t\n"))),
    ("read", "trailing tabs of rows", text_of(lambda text: text.replace("\n", "\t\n").replace("z\t", "z"))),
    ("read", "no last line end", text_of(str.rstrip)),
    ("read", "blank lines", text_of(lambda text: text.replace("\n", "\n\n", 3) + "\n\n")),
    ("read", "comment", text_of(lambda text: "# made by a program\n" + text)),
    ("read", "header in a comment", text_of(lambda text: "# " + text)),
    ("read", "quotes", text_of(lambda text: text.replace("x\ty\tz", '"x"\t"y"\t"z"'))),
    ("read", "without a header", table(names=())),
    ("read", "of a program without a header", by_tool),
    ("read", "numbered columns", table(names=("0", "1", "2"))),
    ("refused", "a column of no header", both(table(names=()), chosen("x"))),
    ("read", "one column", chosen("y")),
    ("read", "columns in another order", chosen("z", "x")),
    ("refused", "absent column", both(table(names=("x", "b", "z")), chosen("y"))),
    ("refused", "name twice", table(names=("x", "x", "z"))),
    ("read", "a chosen column beside a name twice", both(chosen("z"), lambda made: line(0, lambda _: "x\tx\tz")(made))),
    ("refused", "row numbers", row_numbers),
    ("read", "a chosen column beside row numbers", both(row_numbers, chosen("x"))),
    ("read", "derivatives", derivatives),
    ("refused", "gap", line(9, lambda one: one.replace(one.split("\t")[1], "n/a"))),
    ("refused", "words", text_of(lambda text: text.replace("\n", "\nword").removesuffix("word"))),
    ("refused", "no table of confounds", lambda made: made.table.unlink()),
    ("refused", "word", line(9, lambda one: "x" + one)),
    ("refused", "infinity", line(9, lambda one: one.replace(one.split("\t")[1], "inf"))),
    ("refused", "too large", line(9, lambda one: one.replace(one.split("\t")[1], "1e999"))),
    ("refused", "underscore", line(9, lambda one: one.replace(one.split("\t")[1], "1_0"))),
    ("refused", "longer row", line(9, lambda one: one + "\t1")),
    ("refused", "shorter row", line(9, lambda one: one.rpartition("\t")[0])),
    ("refused", "longer rows", text_of(lambda text: text.replace("\n", "\t1\n").replace("z\t1", "z"))),
    ("refused", "a row less", line(9, lambda _: "")),
    ("refused", "a row more", line(9, lambda one: one + "\n" + one)),
    ("refused", "no header and a row more", both(table(names=()), line(9, lambda one: one + "\n" + one))),
    ("refused", "decimal commas", text_of(lambda text: text.replace(".", ","))),
    ("refused", "decimal commas and semicolons", text_of(lambda text: text.replace(".", ",").replace("\t", ";"))),
    ("refused", "header alone", text_of(lambda text: text.split("\n")[0])),
    ("refused", "empty table", text_of(lambda _: "")),
    ("refused", "zip", lambda made: made.table.write_bytes(b"PK\x03\x04" + bytes(99))),
    ("refused", "gzip", lambda made: made.table.write_bytes(gzip.compress(made.table.read_bytes()))),
    ("refused", "pointer", text_of(lambda _: "/annex/objects/MD5E-s1--abc.tsv\n")),
    ("refused", "as many as degrees of freedom", many(30)),
    ("refused", "more than volumes", many(70)),
    ("read", "many copies", many(30, alike=True)),
    ("read", "many without a filter", both(many(30), in_config(extraction={"high_pass": None, "low_pass": None}))),
    ("read", "none", in_config(confounds=None)),
)  # fmt: skip


# --- atlases --------------------------------------------------------------------------------------------------------


def labels(change: Callable[[np.ndarray], np.ndarray], **header):
    return lambda made: nib.save(
        nib.Nifti1Image(changed := change(made.labels), AFFINE, dtype=changed.dtype), made.atlas
    )


def rows(text: str | bytes, ending: str = ".tsv"):
    def make(made: Made) -> None:
        path = made.folder / f"names{ending}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        made.settings["labels"] = str(path)

    return make


def atlas_in(kind: str):
    def make(made: Made) -> None:
        ending = {"mgz": ".mgz", "analyze": ".img", "gii": ".label.gii", "cifti": ".dlabel.nii"}[kind]
        path = made.folder / f"atlas{ending}"
        nib.save(in_format(kind, made.labels.astype(np.float32)), path)
        made.settings["parcellation"] = str(path)

    return make


def atlas_bytes(change: Callable[[bytes], bytes]):
    return lambda made: made.atlas.write_bytes(change(made.atlas.read_bytes()))


ROWS = tuple(enumerate(NAMES, start=1))
ATLASES = of(
    ("read", "uint8 labels", labels(lambda values: values.astype(np.uint8))),
    ("read", "float64 labels", labels(lambda values: values.astype(np.float64))),
    ("read", "int64 labels", labels(lambda values: values.astype(np.int64))),
    ("read", "labels 5e-7 off", labels(lambda values: values + 5e-7)),
    ("read", "labels off both ways", labels(lambda values: values * np.float32(1 - 1e-6))),
    ("refused", "labels 0.3 off", labels(lambda values: values + 0.3)),
    ("read", "NaN outside", labels(lambda values: np.where(values, values, np.nan).astype(np.float32))),
    ("refused", "infinite label", labels(lambda values: np.where(values == 2, np.inf, values).astype(np.float32))),
    ("refused", "negative label", labels(lambda values: np.where(values == 2, -2, values).astype(np.int16))),
    ("refused", "label beyond 32 bits", labels(lambda values: np.where(values == 2, 2.0**33, values))),
    ("refused", "no label", labels(np.zeros_like)),
    ("refused", "unnamed label", labels(lambda values: np.where(values == 2, 9, values).astype(np.int16))),
    ("read", "fourth axis of one", labels(lambda values: values[..., None])),
    ("refused", "stack of parcellations", labels(lambda values: np.stack([values, values], axis=-1))),
    ("refused", "complex labels", labels(lambda values: values.astype(np.complex64))),
    ("refused", "2D", labels(lambda values: values[0])),
    ("refused", "mgz atlas", atlas_in("mgz")),
    ("refused", "Analyze atlas", atlas_in("analyze")),
    ("refused", "GIFTI atlas", atlas_in("gii")),
    ("refused", "CIFTI atlas", atlas_in("cifti")),
    ("refused", "cut atlas", atlas_bytes(lambda content: content[:60])),
    ("refused", "check sum of the atlas", atlas_bytes(other_byte(-7))),
    ("refused", "empty atlas", atlas_bytes(lambda _: b"")),
    ("refused", "text atlas", atlas_bytes(lambda _: b"1 2 3\n")),
    ("refused", "atlas not compressed", atlas_bytes(gzip.decompress)),
    ("refused", "no atlas", lambda made: made.atlas.unlink()),
    ("read", "no table", in_config(labels=None)),
    ("read", "table with commas", rows(region_table(","), ".csv")),
    ("read", "table with semicolons", rows(region_table(";"), ".csv")),
    ("read", "tabs in a csv", rows(region_table(), ".csv")),
    ("read", "table with BOM", rows("\ufeff" + region_table())),
    ("read", "table in UTF-16", rows(region_table().encode("utf-16"))),
    ("refused", "table in Latin-1", rows(region_table().replace("B", "\u00e9").encode("latin-1"))),
    ("read", "CRLF table", rows(region_table().replace("\n", "\r\n"))),
    ("read", "background", rows(region_table(rows=((0, "Unknown"), *ROWS)))),
    ("read", "background without a name", rows(region_table(rows=((0, ""), *ROWS)))),
    ("read", "BIDS table", rows(region_table(header=("index", "name", "color"), rows=[(*row, "#00") for row in ROWS]))),
    ("read", "capital header", rows(region_table(header=("Index", "Name")))),
    ("read", "name first", rows(region_table(header=("name", "index"), rows=[row[::-1] for row in ROWS]))),
    ("read", "real indices", rows(region_table(rows=[(f"{index}.0", name) for index, name in ROWS]))),
    ("read", "padded indices", rows(region_table(rows=[(f" 0{index}", name) for index, name in ROWS]))),
    ("read", "blank lines of a table", rows(region_table().replace("\n", "\n\n"))),
    ("refused", "row less", rows(region_table(rows=ROWS[:2]))),
    ("refused", "index twice", rows(region_table(rows=(*ROWS, (3, "D"))))),
    ("refused", "region twice", rows(region_table(rows=(*ROWS, (4, "C"))))),
    ("refused", "no name", rows(region_table(rows=(*ROWS, (4, ""))))),
    ("refused", "fraction as index", rows(region_table(rows=(*ROWS, ("4.5", "D"))))),
    ("refused", "word as index", rows(region_table(rows=(*ROWS, ("four", "D"))))),
    ("refused", "longer row of a table", rows(region_table(rows=(*ROWS, (4, "D", "x"))))),
    ("refused", "no index", rows(region_table(header=("label", "name")))),
    ("refused", "background alone", rows(region_table(rows=((0, "Unknown"),)))),
    ("refused", "empty region table", rows("")),
    ("refused", "binary region table", rows(b"PK\xff\xfe\x00")),
    ("refused", "workbook", rows(b"PK\x03\x04" + bytes(99), ".xlsx")),
    ("refused", "absent table", in_config(labels="absent.tsv")),
)  # fmt: skip

READERS = {"images": IMAGES, "confounds": CONFOUNDS, "atlases": ATLASES}
