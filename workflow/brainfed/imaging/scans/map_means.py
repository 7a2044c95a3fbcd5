"""Series of the maps of a probabilistic atlas, by nilearn's NiftiMapsMasker."""

from functools import lru_cache

import nibabel as nib
import numpy as np
from nilearn.image import resample_img
from nilearn.maskers import NiftiMapsMasker
from numpy.typing import NDArray

from brainfed.imaging.scans.coverage import check_present, seen_voxels
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.imaging.scans.scan import Scan
from brainfed.imaging.scans.space import same_grid


def map_means(
    scan: Scan, varying: NDArray[np.bool_], atlas: ProbabilisticAtlas, voxels: NDArray[np.int64]
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """(time, R) least-squares weights of the maps in every volume, NaN for unseen maps, and (R,) coverage.

    Coverage is the seen fraction of a map's absolute weight.

    Args:
        scan: the image.
        varying: (x, y, z) voxels of the scan with signal; the others do not count.
        atlas: the maps, interpolated linearly if on another grid than the scan's.
        voxels: (V, 3) voxels of the atlas with a weight in any map.

    Raises:
        UserError: no map is in the field of view, or no voxel of any map varies.
    """
    seen = seen_voxels(scan, varying, atlas.name, atlas.affine, voxels)
    weights = np.abs(atlas.maps[tuple(voxels.T)]).astype(np.float64)
    maps = _maps_on_grid(atlas, scan.voxels.shape[:3], scan.affine.tobytes())
    present = np.asarray(maps[varying].any(axis=0))
    check_present(scan, atlas.name, present)
    masker = NiftiMapsMasker(
        nib.Nifti1Image(maps[..., present], scan.affine),
        mask_img=nib.Nifti1Image(varying.astype(np.uint8), scan.affine),
        standardize=None,
        resampling_target=None,
        reports=False,
    )
    means = np.full((scan.voxels.shape[3], len(atlas.regions)), np.nan, dtype=np.float32)
    means[:, present] = masker.fit_transform(nib.Nifti1Image(scan.voxels, scan.affine))
    total = weights.sum(axis=0)
    covered = weights[seen].sum(axis=0)
    return means, np.where(present, covered / np.where(total > 0, total, 1.0), 0.0)


@lru_cache(maxsize=1)
def _maps_on_grid(atlas: ProbabilisticAtlas, shape: tuple[int, int, int], affine: bytes) -> NDArray[np.float32]:
    """(x, y, z, R) maps on a scan's grid, cached for the next scan on the same grid."""
    target = np.frombuffer(affine, dtype=np.float64).reshape(4, 4)
    if same_grid(shape, target, atlas.maps.shape[:3], atlas.affine):
        return atlas.maps
    resampled = resample_img(
        nib.Nifti1Image(atlas.maps, atlas.affine), target_affine=target, target_shape=shape, interpolation="linear"
    )
    return np.asarray(resampled.dataobj, dtype=np.float32)
