"""Read an image file to its last byte, and say in a sentence that it is damaged."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from nibabel.arrayproxy import ArrayProxy
from nibabel.filebasedimages import ImageFileError, SerializableImage
from nibabel.openers import ImageOpener

from brainfed.runtime.errors import UserError

BLOCK = 2**20


@contextmanager
def damage_named(where: str, expected: str) -> Iterator[None]:
    """Refuse a file that cannot be read within.

    Args:
        where: subject and file.
        expected: what the file should be.

    Raises:
        UserError: it is absent, cut off, no image, or its check sum is wrong.
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
    """The voxels of an image, read from one open file that is read to its end after them.

    The check sum of a gzip stream stands behind the voxels, and is compared when the end is reached.
    """
    stored = image.dataobj
    if type(stored) is not ArrayProxy:
        yield stored
        return
    with ImageOpener(stored.file_like) as stream:
        yield ArrayProxy(stream, (stored.shape, stored.dtype, stored.offset, stored.slope, stored.inter), mmap=False)
        while stream.read(BLOCK):
            pass
