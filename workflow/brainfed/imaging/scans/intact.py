"""Read an image file to its last byte, and refuse a damaged one with one sentence."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from nibabel.arrayproxy import ArrayProxy
from nibabel.filebasedimages import ImageFileError, SerializableImage
from nibabel.openers import ImageOpener

from brainfed.runtime.errors import UserError

BLOCK = 2**20


@contextmanager
def refuse_damaged(where: str, expected: str) -> Iterator[None]:
    """Refuse a file if reading it inside the context fails.

    Args:
        where: subject and file.
        expected: expected kind of file.

    Raises:
        UserError: the file is absent, truncated or not an image, or its check sum is wrong.
    """
    try:
        yield
    except (OSError, EOFError, ValueError, zlib.error, ImageFileError) as error:
        raise UserError(
            f"{where}: expected {expected}, found a damaged or absent file ({' '.join(str(error).split())}); fetch it "
            "again."
        ) from error


@contextmanager
def opened(image: SerializableImage) -> Iterator[ArrayProxy]:
    """Open the voxels of an image, and read its file to the end afterwards.

    The check sum of a gzip stream follows the voxels and is compared at the end.
    """
    stored = image.dataobj
    if type(stored) is not ArrayProxy:
        yield stored
        return
    with ImageOpener(stored.file_like) as stream:
        yield ArrayProxy(stream, (stored.shape, stored.dtype, stored.offset, stored.slope, stored.inter), mmap=False)
        while stream.read(BLOCK):
            pass
