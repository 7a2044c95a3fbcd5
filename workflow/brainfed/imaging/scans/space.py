"""Check the space of a scan against an atlas: resampling, and evidence of a wrong space.

Not detected are an affine that mirrors left and right, as a brain is almost its own mirror image, and a shift or a
turn of few degrees of a partly seen brain, which only lowers coverage. An affine with a reversed x axis is no mirror
and is followed. The space that a header names is ignored: programs that write images in template space call them
scanner space (PCP's atlases, ANTs).
"""

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from nibabel.affines import apply_affine, voxel_sizes
from numpy.typing import NDArray

from brainfed.imaging.scans.scan import Scan

MASKED = 0.9
DARK = 0.2
BETTER = 0.05
LITTLE = 0.5
TURNED = 1.0
APART = 1.0
SAMPLE = 5000
VOLUMES = 10


@dataclass(frozen=True)
class AtlasGrid:
    """Grid of an atlas.

    Attributes:
        voxels: (V, 3) voxels of its regions.
        shape: (x, y, z).
        affine: (4, 4) voxel to mm.
    """

    voxels: NDArray[np.int64]
    shape: tuple[int, ...]
    affine: NDArray[np.float64]


def same_grid(
    shape: tuple[int, ...], affine: NDArray[np.float64], other: tuple[int, ...], placed: NDArray[np.float64]
) -> bool:
    """Whether two grids agree to 0.1 um."""
    return shape == other and np.allclose(affine, placed, atol=1e-4)


def resampling(scan: Scan, atlas: AtlasGrid) -> str:
    """Describe the resampling, `from 3 mm to 2 mm`; empty if the atlas is on the scan's grid."""
    if same_grid(scan.voxels.shape[:3], scan.affine, atlas.shape, atlas.affine):
        return ""
    own, other = _size(atlas.affine), _size(scan.affine)
    return f"from {own} to {other}" if own != other else f"from {own} to {other} on another grid"


def suspicion(scan: Scan, varying: NDArray[np.bool_], atlas: AtlasGrid) -> str:
    """Evidence against a scan being in the atlas' space, as one line; empty: none.

    Evidence are two different affines of the header, turned axes (an image in template space has the template's
    axes), a brain that holds more of the atlas with the scan's axes swapped or reversed, and an atlas with signal in
    less than half.

    Args:
        scan: the image.
        varying: (x, y, z) voxels of the scan with signal.
        atlas: grid of the atlas.
    """
    found = []
    if scan.affines_apart > APART:
        found.append(f"the header's two affines (sform, qform) lie {scan.affines_apart:.0f} mm apart")
    angle = _turn(scan.affine, atlas.affine)
    if angle > TURNED:
        found.append(f"the image's axes are turned by {angle:.0f} degrees against the atlas'")
    places = apply_affine(atlas.affine, atlas.voxels[:: max(1, len(atlas.voxels) // SAMPLE)])
    seen = _share(scan, varying, places)
    if seen < LITTLE:
        found.append(f"{100 * seen:.0f} % of the atlas have a signal")
    brain = _brain(scan, varying)
    own = _share(scan, brain, places)
    best = max(_share(scan, brain, places @ axes) for axes in _orientations())
    if best > own + BETTER:
        found.append(
            f"{100 * own:.0f} % of the atlas lie in the brain, {100 * best:.0f} % would with the image's axes swapped "
            "or reversed"
        )
    return "; ".join(found)


def _size(affine: NDArray[np.float64]) -> str:
    sizes = [f"{size:.3g}" for size in voxel_sizes(affine)]
    return f"{sizes[0] if len(set(sizes)) == 1 else ' x '.join(sizes)} mm"


def _turn(affine: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Largest angle in degrees between an axis of one grid and the nearest axis of another."""
    one, two = (matrix[:3, :3] / voxel_sizes(matrix) for matrix in (affine, other))
    return float(np.degrees(np.arccos(np.clip(np.abs(two.T @ one).max(axis=0).min(), 0, 1))))


def _brain(scan: Scan, varying: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Voxels with signal of a masked image, or bright voxels of an image with noise in its background."""
    if varying.mean() < MASKED:
        return varying
    volumes = scan.voxels[..., :: max(1, scan.voxels.shape[3] // VOLUMES)]
    brightness = np.abs(volumes.mean(axis=3))
    return np.asarray(brightness > DARK * np.percentile(brightness, 98))


def _share(scan: Scan, mask: NDArray[np.bool_], places: NDArray[np.float64]) -> float:
    """Fraction of (V, 3) places in mm with their nearest voxel of the scan in the mask."""
    nearest = np.rint(apply_affine(np.linalg.inv(scan.affine), places)).astype(np.int64)
    in_view = ((nearest >= 0) & (nearest < mask.shape)).all(axis=1)
    return float(mask[tuple(nearest[in_view].T)].sum() / len(places))


def _orientations() -> list[NDArray[np.float64]]:
    """The 23 other orientations of the axes of world space, mirrored left and right aside."""
    axes = np.eye(3)
    found = [
        axes[list(order)] * (1, *signs) for order in permutations(range(3)) for signs in product((1, -1), repeat=2)
    ]
    return found[1:]
