"""The brain mask that fMRIPrep writes beside an image."""

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.intact import damage_named, opened
from brainfed.runtime.errors import UserError


def read_brain(
    subject: str, mask: str, file: str, grid: tuple[int, ...], affine: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """(x, y, z) mask of the voxels of an image that lie in the brain.

    Raises:
        UserError: the mask is damaged, lies on another grid than the image, or is empty.
    """
    where = f"Subject {subject}, {mask}"
    with damage_named(where, "a brain mask"):
        image = nib.load(mask)
        with opened(image) as stored:
            values = np.asanyarray(stored)
    refuse_other_grid(subject, mask, image, file, grid, affine)
    brain = np.asarray(values > 0)
    if not brain.any():
        raise UserError(f"{where}: expected voxels in the mask, found none; fetch it again or set brain_mask: false.")
    return brain


def refuse_other_grid(
    subject: str, mask: str, image: nib.Nifti1Image, file: str, grid: tuple[int, ...], affine: NDArray[np.float64]
) -> None:
    """Refuse a mask that does not lie on its image's grid (x, y, z) with that affine (4, 4).

    Raises:
        UserError: it does not.
    """
    if image.shape != grid or not np.allclose(image.affine, affine, atol=1e-3):
        raise UserError(
            f"Subject {subject}, {mask}: expected the grid of {file} {grid}, found {image.shape} or another affine; "
            "use the mask of the same space and resolution."
        )
