"""Open a NIfTI file, read it to its last byte, and refuse any other or damaged file with one sentence."""

import filecmp
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nibabel as nib
from nibabel.arrayproxy import ArrayProxy
from nibabel.openers import ImageOpener

from brainfed.runtime.errors import UserError

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
        where: subject and file.
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
        where: subject and file.
        file: path of the image.
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
            found, remedy = FORMATS.get(kind, (f"another format ({kind})", VOLUMES))
            raise UserError(f"{where}: expected {expected}, found {found}; {remedy}.")
        dtype = image.get_data_dtype()
        if dtype.kind not in "iufb":
            found = "complex numbers" if dtype.kind == "c" else f"voxels of type {dtype}"
            remedy = "save their magnitude" if dtype.kind == "c" else "save one number a voxel"
            raise UserError(f"{where}: expected real numbers, found {found}; {remedy}.")
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


def same_content(one: str, other: str) -> bool:
    """Whether two images hold the same bytes, decompressed."""
    if one.endswith(".gz") and other.endswith(".gz"):
        return gzip_trailer(one) == gzip_trailer(other)
    return filecmp.cmp(one, other, shallow=False)
