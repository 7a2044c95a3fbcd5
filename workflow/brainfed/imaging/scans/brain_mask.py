"""Read the brain mask that fMRIPrep writes beside an image."""

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.scans.intact import load_nifti, opened, refuse_damaged
from brainfed.runtime.errors import UserError


def read_brain(
    subject: str, mask: str, file: str, grid: tuple[int, ...], affine: NDArray[np.float64]
) -> NDArray[np.bool_]:
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
