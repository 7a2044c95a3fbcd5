"""Parcellation of the simulated brains: an ellipsoid in MNI-like space, cut into compact regions."""

from dataclasses import dataclass

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from brainfed.cohort.settings.simulation import SimulateSettings
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams

NETWORKS = ("Visual", "Somatomotor", "DorsalAttention", "Salience", "Limbic", "Control", "Default")
CENTRE = (0.0, -18.0, 12.0)
FILLED = 0.46


@dataclass(frozen=True)
class SimulatedAtlas:
    """A parcellation.

    Attributes:
        labels: (x, y, z) int16, 0 outside the brain, 1 ... R inside.
        affine: (4, 4) voxel to mm.
        names: R region names, `Default-03`.
        network: (R,) position of each region's network in `NETWORKS`.
    """

    labels: NDArray[np.int16]
    affine: NDArray[np.float64]
    names: tuple[str, ...]
    network: NDArray[np.int64]

    @property
    def image(self) -> nib.Nifti1Image:
        """The parcellation as a NIfTI image in MNI space."""
        image = nib.Nifti1Image(self.labels, self.affine)
        image.set_sform(self.affine, code="mni")
        image.set_qform(self.affine, code="mni")
        image.header.set_xyzt_units("mm", "sec")
        return image


def simulate_atlas(settings: SimulateSettings, streams: Streams) -> SimulatedAtlas:
    """Cut an ellipsoid that fills most of the grid into `settings.regions` compact regions.

    Raises:
        UserError: the brain on the grid has too few voxels for the regions.
    """
    shape = np.asarray(settings.grid)
    affine = np.diag([settings.voxel_size] * 3 + [1.0])
    affine[:3, 3] = np.asarray(CENTRE) - settings.voxel_size * (shape - 1) / 2
    voxels = np.stack(np.meshgrid(*map(np.arange, settings.grid), indexing="ij"), axis=-1)
    inside = (((voxels - (shape - 1) / 2) / (FILLED * shape)) ** 2).sum(axis=-1) <= 1
    places = apply_affine(affine, voxels[inside])
    if len(places) < 2 * settings.regions:
        raise UserError(
            f"simulate: a brain on the grid {settings.grid} has {len(places)} voxels, expected two or more for each "
            f"of {settings.regions} regions; enlarge `grid` or lower `regions`."
        )
    region = _compact_parts(places, settings.regions, streams.numpy("simulate", "parcellation"))
    centroids = np.stack([places[region == index].mean(axis=0) for index in range(settings.regions)])
    count = min(len(NETWORKS), settings.regions // 2)
    network = _compact_parts(centroids, count, streams.numpy("simulate", "networks"))
    order = np.lexsort((centroids[:, 0], network))
    labels = np.zeros(settings.grid, dtype=np.int16)
    labels[inside] = np.argsort(order)[region] + 1
    network = network[order]
    names = tuple(f"{NETWORKS[n]}-{(network[:i] == n).sum() + 1:02d}" for i, n in enumerate(network))
    return SimulatedAtlas(labels, affine, names, network)


def _compact_parts(places: NDArray[np.float64], parts: int, random: np.random.Generator) -> NDArray[np.int64]:
    """(n,) nearest of `parts` centres for every place; no part is empty."""
    start = places[np.sort(random.choice(len(places), parts, replace=False))]
    _, part = kmeans2(places, start, iter=10, minit="matrix", missing="raise")
    return np.asarray(part, dtype=np.int64)
