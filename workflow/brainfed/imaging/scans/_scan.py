"""Open a subject's 4D image: intact, with its mask, in the space of the atlas."""

import filecmp
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, voxel_sizes
from nibabel.arrayproxy import ArrayProxy
from nibabel.openers import ImageOpener

from brainfed.runtime import BoolArray, Float32, Float64, IntArray, UserError

# Open a NIfTI file, read it to its last byte, and refuse any other or damaged file with one sentence.

BLOCK = 2**20
VOLUMES = "save it as NIfTI (.nii.gz)"
SURFACES = "only volumes can be averaged: give the volume in the same space, or extract region series and read them"
FORMATS = {
    "MGHImage": ("a FreeSurfer volume (.mgz)", f"{VOLUMES}, as by mri_convert"),
    "AnalyzeImage": ("an Analyze image without orientation (.hdr, .img)", VOLUMES),
    "Spm99AnalyzeImage": ("an Analyze image (.hdr, .img)", VOLUMES),
    "Spm2AnalyzeImage": ("an Analyze image (.hdr, .img)", VOLUMES),
    "GiftiImage": ("data on a surface (GIFTI)", SURFACES),
    "Cifti2Image": ("grayordinates (CIFTI)", SURFACES),
}
"""Image class of nibabel -> its name for a user, and the remedy."""
NIFTI_SIZES = (b"\x5c\x01\x00\x00", b"\x00\x00\x01\x5c", b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c")
"""First bytes of an uncompressed NIfTI: the size of its header, 348 or 540."""
GZIP = b"\x1f\x8b"


@contextmanager
def refuse_damaged(where: str, expected: str) -> Iterator[None]:
    """Refuse a file if reading it inside the context fails, for whatever reason nibabel gives.

    Args:
        expected: expected kind of file.

    Raises:
        UserError: the file is absent, truncated or not an image, its check sum is wrong, or its header is invalid.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        raise UserError(
            f"{where}: expected {expected}, found a damaged or absent file ({' '.join(str(error).split())}); fetch it "
            "again."
        ) from error


def load_nifti(where: str, file: str | Path, expected: str) -> nib.Nifti1Pair:
    """Open a NIfTI of real numbers; its voxels are not read yet.

    Args:
        expected: expected kind of file.

    Raises:
        UserError: the file is absent or damaged, has another format or a name that belies its compression, or its
            voxels are complex numbers or colours.
    """
    with refuse_damaged(where, expected):
        _refuse_wrong_suffix(where, Path(file), expected)
        image = nib.load(file)
        if not isinstance(image, nib.Nifti1Pair):
            kind = type(image).__name__
            content, remedy = FORMATS.get(kind, (f"another format ({kind})", VOLUMES))
            raise UserError(f"{where}: expected {expected}, found {content}; {remedy}.")
        dtype = image.get_data_dtype()
        if dtype.kind not in "iufb":
            content = "complex numbers" if dtype.kind == "c" else f"voxels of type {dtype}"
            remedy = "save their magnitude" if dtype.kind == "c" else "save one number a voxel"
            raise UserError(f"{where}: expected real numbers, found {content}; {remedy}.")
    return image


def _refuse_wrong_suffix(where: str, file: Path, expected: str) -> None:
    """Refuse a file that is compressed without being named so, or the other way round."""
    with file.open("rb") as stream:
        begin = stream.read(4)
    compressed = file.name.endswith(".gz")
    if compressed and begin in NIFTI_SIZES:
        raise UserError(
            f"{where}: expected {expected}, compressed as its name says, found one that is not; compress it, or take "
            ".gz out of its name."
        )
    if not compressed and begin.startswith(GZIP) and file.suffix in (".nii", ".img", ".hdr"):
        raise UserError(
            f"{where}: expected {expected}, uncompressed as its name says, found a gzip file; add .gz to its name."
        )


@contextmanager
def opened(image: nib.Nifti1Pair) -> Iterator[ArrayProxy]:
    """Open the voxels of an image, and read its file to the end afterwards.

    The check sum of a gzip stream follows the voxels and is compared at the end.
    """
    stored = image.dataobj
    with ImageOpener(stored.file_like) as stream:
        yield ArrayProxy(stream, (stored.shape, stored.dtype, stored.offset, stored.slope, stored.inter), mmap=False)
        while stream.read(BLOCK):
            pass


def content_of(file: str) -> str:
    """A key of a file's content: equal for gzip files with equal content; else the path."""
    return "gzip-{:08x}-{}".format(*gzip_trailer(file)) if file.endswith(".gz") else str(Path(file).resolve())


def gzip_trailer(file: str) -> tuple[int, int]:
    """Checksum and length (modulo 2^32) of the content of a gzip file (RFC 1952)."""
    with Path(file).open("rb") as stream:
        stream.seek(-8, 2)
        checksum, length = struct.unpack("<II", stream.read(8))
    return checksum, length


def same_content(first: str, second: str) -> bool:
    """Whether two images hold the same bytes, decompressed."""
    if first.endswith(".gz") and second.endswith(".gz"):
        return gzip_trailer(first) == gzip_trailer(second)
    return filecmp.cmp(first, second, shallow=False)


def read_brain(subject: str, mask: str, file: str, grid: tuple[int, ...], affine: Float64) -> BoolArray:
    """(x, y, z) mask of the voxels of an image in the brain.

    Raises:
        UserError: the mask is damaged, is on another grid than the image, or is empty.
    """
    where = f"Subject {subject}, {mask}"
    image = load_nifti(where, mask, "a brain mask")
    with refuse_damaged(where, "a brain mask"), opened(image) as stored:
        values = np.asanyarray(stored)
    if image.shape != grid or not np.allclose(image.affine, affine, atol=1e-3):
        raise UserError(
            f"{where}: expected the grid of {file} {grid}, found {image.shape} or another affine; use the mask of the "
            "same space and resolution."
        )
    brain = np.asarray(values > 0)
    if not brain.any():
        raise UserError(f"{where}: expected voxels in the mask, found none; fetch it again or set brain_mask: false.")
    return brain


SECONDS = {0: 1.0, 8: 1.0, 16: 1e-3, 24: 1e-6}
"""Code of NIfTI for the unit of time -> its length in s; an unknown unit is taken for seconds."""
UNIT_OF_TIME = 0o70
"""Bits of `xyzt_units` with that code."""
WHOLE = "a whole NIfTI image"
DEFLATED = 1032
"""Largest ratio by which gzip compresses."""
AT_A_TIME = 2**20
"""Voxels that are read at a time, but at least a volume."""


@dataclass(frozen=True)
class ScanHeader:
    """Header of a 4D image, read before its voxels.

    Attributes:
        shape: (x, y, z, time).
        affine: (4, 4) voxel to mm.
        tr: repetition time in s, NaN if the header has none.
        voxels: path of the file with the voxels: the image, or the .img of a pair.
        size: bytes of that file, decompressed.
    """

    shape: tuple[int, ...]
    affine: Float64
    tr: float
    voxels: str
    size: int


@dataclass(frozen=True)
class Scan:
    """One 4D image in memory.

    Attributes:
        subject: id.
        file: path of the image.
        voxels: (x, y, z, time) float32, finite.
        affine: (4, 4) voxel to mm.
        tr: repetition time in s of the header, NaN if it has none.
        affines_apart: largest distance in mm of a corner of the grid by sform and by qform; 0: one is unset.
        precision: type of its regions' means, as in nilearn: float32 if the voxels are stored so, else float64.
        brain: (x, y, z) mask of the voxels that may have a signal; None: all.
    """

    subject: str
    file: str
    voxels: Float32
    affine: Float64
    tr: float
    affines_apart: float = 0.0
    precision: type[np.float32] | type[np.float64] = np.float32
    brain: BoolArray | None = None


def read_header(subject: str, file: str | Path) -> ScanHeader:
    """Read the header of a 4D NIfTI.

    Raises:
        UserError: the file is absent or not a NIfTI of real numbers, the image is not 4D, or the affine is singular.
    """
    where = f"Subject {subject}, {file}"
    image = load_nifti(where, file, WHOLE)
    with refuse_damaged(where, WHOLE):
        return _header_of(subject, file, image)


def read_scan(subject: str, file: str | Path, mask: str | None = None) -> Scan:
    """Read a 4D NIfTI, and optionally a brain mask on its grid.

    Voxels that are NaN in every volume are background: they become 0 and have no signal. So do NaN and infinite voxels
    outside the mask.

    Raises:
        UserError: the file is absent, damaged or not a NIfTI; the image is not 4D; a voxel is infinite, or NaN in some
            volumes; the affine is singular; the mask is unusable.
    """
    where = f"Subject {subject}, {file}"
    image = load_nifti(where, file, WHOLE)
    with refuse_damaged(where, WHOLE):
        header = _header_of(subject, file, image)
        voxels = _voxels_of(image)
    brain = None if mask is None else read_brain(subject, mask, str(file), header.shape[:3], header.affine)
    _clear_background(where, voxels, brain)
    scaled = (image.dataobj.slope, image.dataobj.inter) != (1, 0)
    precision = np.float32 if image.get_data_dtype() == np.float32 and not scaled else np.float64
    return Scan(subject, str(file), voxels, header.affine, header.tr, _affines_apart(image), precision, brain)


def _clear_background(where: str, voxels: Float32, brain: BoolArray | None) -> None:
    """Set the background of an image to 0 in place, and refuse other voxels that are not finite."""
    volumes = np.moveaxis(voxels, 3, 0)
    if all(np.isfinite(volume).all() for volume in volumes):
        return
    background = np.isnan(volumes[0])
    for volume in volumes[1:]:
        background &= np.isnan(volume)
    voxels[background if brain is None else background | ~brain] = 0
    bad = int(voxels.size - np.isfinite(voxels).sum())
    if bad:
        first = np.argwhere(~np.isfinite(voxels))[0].tolist()
        raise UserError(
            f"{where}: expected finite voxels, found {bad} NaN or infinite ones (first at {first}); repair the image."
        )


def _voxels_of(image: nib.Nifti1Pair) -> Float32:
    """(x, y, z, time) voxels, read some volumes at a time: at once, nibabel holds a compressed file twice."""
    voxels = np.empty(image.shape, dtype=np.float32, order="F")
    some = max(1, AT_A_TIME // max(1, math.prod(image.shape[:3])))
    with opened(image) as stored:
        for first in range(0, image.shape[3], some):
            voxels[..., first : first + some] = stored[..., first : first + some]
    return voxels


def _header_of(subject: str, file: str | Path, image: nib.Nifti1Pair) -> ScanHeader:
    where = f"Subject {subject}, {file}"
    if len(image.shape) != 4:
        raise UserError(f"{where}: expected a 4D image (x, y, z, time), found shape {image.shape}; give the whole run.")
    affine = np.asarray(image.affine, dtype=np.float64)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise UserError(f"{where}: expected an invertible affine, found {affine.tolist()}; repair the header.")
    size = int(image.dataobj.offset) + math.prod(image.shape) * image.get_data_dtype().itemsize
    voxels = str(image.file_map["image"].filename)
    most = Path(voxels).stat().st_size * (DEFLATED if voxels.endswith(".gz") else 1)
    if size > most and voxels.endswith((".nii", ".img", ".gz")):
        raise EOFError(f"its header promises {size} bytes, it holds at most {most}")
    return ScanHeader(image.shape, affine, _repetition_time(image), voxels, size)


def _repetition_time(image: nib.Nifti1Pair) -> float:
    unit = int(image.header["xyzt_units"]) & UNIT_OF_TIME
    tr = float(image.header["pixdim"][4]) * SECONDS.get(unit, np.nan)
    return tr if tr > 0 else float("nan")


def _affines_apart(image: nib.Nifti1Pair) -> float:
    if not (image.header["sform_code"] and image.header["qform_code"]):
        return 0.0
    corners = np.argwhere(np.ones((2, 2, 2))) * (np.asarray(image.shape[:3]) - 1)
    between = apply_affine(image.get_sform(), corners) - apply_affine(image.get_qform(), corners)
    return float(np.linalg.norm(between, axis=1).max())


# Check the space of a scan against an atlas: resampling, and evidence of a wrong space.
#
# Not detected are an affine that mirrors left and right, as a brain is almost its own mirror image, and a shift or a
# turn of few degrees of a partly seen brain, which only lowers coverage. An affine with a reversed x axis is no mirror
# and is followed. The space that a header names is ignored: programs that write images in template space call them
# scanner space (PCP's atlases, ANTs).

MASKED = 0.9
DARK = 0.2
BETTER = 0.05
LITTLE = 0.5
TURNED = 1.0
APART = 1.0
SAMPLE = 5000
SAMPLED_VOLUMES = 10


@dataclass(frozen=True)
class AtlasGrid:
    """Grid of an atlas.

    Attributes:
        voxels: (V, 3) voxels of its regions.
        shape: (x, y, z).
        affine: (4, 4) voxel to mm.
    """

    voxels: IntArray
    shape: tuple[int, ...]
    affine: Float64


def same_grid(shape: tuple[int, ...], affine: Float64, other: tuple[int, ...], placed: Float64) -> bool:
    """Whether two grids agree to 0.1 um."""
    return shape == other and np.allclose(affine, placed, atol=1e-4)


def resampling(scan: Scan, atlas: AtlasGrid) -> str:
    """Describe the resampling, `from 3 mm to 2 mm`; empty if the atlas is on the scan's grid."""
    if same_grid(scan.voxels.shape[:3], scan.affine, atlas.shape, atlas.affine):
        return ""
    own, other = _size(atlas.affine), _size(scan.affine)
    return f"from {own} to {other}" if own != other else f"from {own} to {other} on another grid"


def suspicion(scan: Scan, varying: BoolArray, atlas: AtlasGrid) -> str:
    """Evidence against a scan being in the atlas' space, as one line; empty: none.

    Evidence are two different affines of the header, turned axes (an image in template space has the template's
    axes), a brain that holds more of the atlas with the scan's axes swapped or reversed, and an atlas with signal in
    less than half.

    Args:
        varying: (x, y, z) voxels of the scan with signal.
    """
    evidence = []
    if scan.affines_apart > APART:
        evidence.append(f"the header's two affines (sform, qform) lie {scan.affines_apart:.0f} mm apart")
    angle = _turn(scan.affine, atlas.affine)
    if angle > TURNED:
        evidence.append(f"the image's axes are turned by {angle:.0f} degrees against the atlas'")
    places = apply_affine(atlas.affine, atlas.voxels[:: max(1, len(atlas.voxels) // SAMPLE)])
    seen = _share(scan, varying, places)
    if seen < LITTLE:
        evidence.append(f"{100 * seen:.0f} % of the atlas have a signal")
    brain = _brain(scan, varying)
    own = _share(scan, brain, places)
    best = max(_share(scan, brain, places @ axes) for axes in _orientations())
    if best > own + BETTER:
        evidence.append(
            f"{100 * own:.0f} % of the atlas lie in the brain, {100 * best:.0f} % would with the image's axes swapped "
            "or reversed"
        )
    return "; ".join(evidence)


def _size(affine: Float64) -> str:
    sizes = [f"{size:.3g}" for size in voxel_sizes(affine)]
    return f"{sizes[0] if len(set(sizes)) == 1 else ' x '.join(sizes)} mm"


def _turn(affine: Float64, other: Float64) -> float:
    """Largest angle in degrees between an axis of one grid and the nearest axis of another."""
    axes, others = (matrix[:3, :3] / voxel_sizes(matrix) for matrix in (affine, other))
    return float(np.degrees(np.arccos(np.clip(np.abs(others.T @ axes).max(axis=0).min(), 0, 1))))


def _brain(scan: Scan, varying: BoolArray) -> BoolArray:
    """Voxels with signal of a masked image, or bright voxels of an image with noise in its background."""
    if varying.mean() < MASKED:
        return varying
    volumes = scan.voxels[..., :: max(1, scan.voxels.shape[3] // SAMPLED_VOLUMES)]
    brightness = np.abs(volumes.mean(axis=3))
    return np.asarray(brightness > DARK * np.percentile(brightness, 98))


def _share(scan: Scan, mask: BoolArray, places: Float64) -> float:
    """Fraction of (V, 3) places in mm with their nearest voxel of the scan in the mask."""
    nearest = np.rint(apply_affine(np.linalg.inv(scan.affine), places)).astype(np.int64)
    in_view = ((nearest >= 0) & (nearest < mask.shape)).all(axis=1)
    return float(mask[tuple(nearest[in_view].T)].sum() / len(places))


def _orientations() -> list[Float64]:
    """The 23 other orientations of the axes of world space, mirrored left and right aside."""
    axes = np.eye(3)
    orientations = [
        axes[list(order)] * (1, *signs) for order in permutations(range(3)) for signs in product((1, -1), repeat=2)
    ]
    return orientations[1:]
