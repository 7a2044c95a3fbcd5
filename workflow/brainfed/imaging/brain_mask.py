"""The brain mask that fMRIPrep writes beside an image."""

from dataclasses import replace

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError

from brainfed.imaging.scan import Scan
from brainfed.runtime.errors import UserError


def within_brain(scan: Scan, mask: str) -> Scan:
    """The scan with its mask: voxels outside are without signal.

    Raises:
        UserError: the mask is damaged, lies on another grid than the image, or is empty.
    """
    where = f"Subject {scan.subject}, {mask}"
    try:
        image = nib.load(mask)
        values = np.asanyarray(image.dataobj)
    except (OSError, EOFError, ValueError, ImageFileError) as error:
        raise UserError(f"{where}: expected a brain mask, found a damaged file ({error}); fetch it again.") from error
    grid = scan.voxels.shape[:3]
    if values.shape != grid or not np.allclose(image.affine, scan.affine, atol=1e-3):
        raise UserError(
            f"{where}: expected the grid of {scan.file} {grid}, found {values.shape} or another affine; use the mask "
            "of the same space and resolution."
        )
    brain = values > 0
    if not brain.any():
        raise UserError(f"{where}: expected voxels in the mask, found none; fetch it again or set brain_mask: false.")
    return replace(scan, brain=brain)
