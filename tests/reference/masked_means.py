"""Means of regions by nilearn's own masker, on the scan's grid and where the scan has a signal."""

import nibabel as nib
import numpy as np
from nilearn.image import resample_img
from nilearn.maskers import NiftiLabelsMasker


def masked_means(voxels, affine, labels, labels_affine):
    """(time, P) float32 means of the labels that are left, and the labels, ascending."""
    image = nib.Nifti1Image(voxels, affine)
    placed = resample_img(
        nib.Nifti1Image(labels, labels_affine),
        target_affine=affine,
        target_shape=voxels.shape[:3],
        interpolation="nearest",
    )
    seen = np.where(np.ptp(voxels, axis=3) > 0, np.asarray(placed.dataobj), 0).astype(np.int32)
    masker = NiftiLabelsMasker(nib.Nifti1Image(seen, affine), standardize=None, resampling_target=None, reports=False)
    return masker.fit_transform(image), np.unique(seen[seen > 0])
