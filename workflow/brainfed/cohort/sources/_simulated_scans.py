"""Simulated scans: the parcellation, the connectivity of every subject, and the files of a lab."""

import gzip
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pandas as pd
from nibabel.affines import apply_affine
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.signal import lfilter

from brainfed.cohort.settings import CohortSettings, SimulateSettings
from brainfed.cohort.sources._simulated_subjects import SimulatedSubject, simulate_phenotypes, simulate_subjects
from brainfed.runtime import Streams, UserError, atomic, canonical_json, write_text, write_tsv

Matrix = NDArray[np.float64]


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
        return _in_mni(self.labels, self.affine)


def _in_mni(voxels: NDArray[np.int16], affine: NDArray[np.float64]) -> nib.Nifti1Image:
    image = nib.Nifti1Image(voxels, affine)
    image.set_sform(affine, code="mni")
    image.set_qform(affine, code="mni")
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


# Shared connectivity of the simulated brains, and its changes by diagnosis, age, sex and chance.

WITHIN_NETWORK = 0.75
SHARED = 0.35
OWN = 0.6
SMALLEST_EIGENVALUE = 0.02


@dataclass(frozen=True)
class Connectome:
    """True connectivity of the simulation.

    Attributes:
        loadings: (R, K) loading of each region on each of K latent sources.
        effects: (R, R) symmetric -1, 0, 1 for each of `diagnosis`, `age` and `sex`; the sets are disjoint.
    """

    loadings: Matrix
    effects: dict[str, Matrix]


def simulate_connectome(settings: SimulateSettings, atlas: SimulatedAtlas, streams: Streams) -> Connectome:
    """Draw the shared networks, and the connections that each phenotype moves, half of them up, half down."""
    random = streams.numpy("simulate", "connectome")
    regions = settings.regions
    follows = np.eye(len(NETWORKS))[atlas.network] * random.uniform(0.8, 1.2, (regions, 1))
    loadings = np.hstack([WITHIN_NETWORK * follows, SHARED * random.standard_normal((regions, len(NETWORKS)))])
    row, column = np.triu_indices(regions, 1)
    counts = {
        "diagnosis": settings.effect_connections,
        "age": settings.age_connections,
        "sex": settings.sex_connections,
    }
    free = random.permutation(len(row))
    effects: dict[str, Matrix] = {}
    for name, count in counts.items():
        chosen, free = free[:count], free[count:]
        effect = np.zeros((regions, regions))
        effect[row[chosen], column[chosen]] = np.where(np.arange(len(chosen)) % 2 == 0, 1.0, -1.0)
        effects[name] = effect + effect.T
    return Connectome(loadings, effects)


def subject_correlation(
    settings: SimulateSettings, connectome: Connectome, subject: SimulatedSubject, streams: Streams
) -> Matrix:
    """(R, R) correlation matrix of one subject's signal.

    The shared loadings plus the site's, the group's and the subject's own give a correlation matrix; diagnosis
    (+-effect / 2), age (effect_age a standard deviation) and sex (+-effect_sex / 2) are added to their connections;
    small eigenvalues are raised so that the result is positive definite, with a diagonal of 1.
    """
    random = streams.numpy("simulate", "individual", subject.participant_id)
    scanner = streams.numpy("simulate", "site", subject.site)
    shape = connectome.loadings.shape
    own = settings.individuality * random.standard_normal(shape) + settings.site_spread * scanner.standard_normal(shape)
    if subject.group is not None:
        own = own + settings.group_spread * streams.numpy("simulate", "group", subject.group).standard_normal(shape)
    loadings = connectome.loadings + WITHIN_NETWORK * own
    correlation = _unit_diagonal(loadings @ loadings.T + OWN * np.eye(len(loadings)))
    shifts = {
        "diagnosis": settings.effect * (0.5 if subject.diagnosis == "patient" else -0.5),
        "age": settings.effect_age * (subject.age - settings.age_mean) / max(settings.age_sd, 1e-9),
        "sex": settings.effect_sex * (0.5 if subject.sex == "male" else -0.5),
    }
    for name, shift in shifts.items():
        correlation = correlation + shift * connectome.effects[name]
    values, vectors = np.linalg.eigh(correlation)
    return _unit_diagonal((vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T)


def _unit_diagonal(covariance: Matrix) -> Matrix:
    scale = 1 / np.sqrt(np.diagonal(covariance))
    return covariance * scale * scale[:, None]


# Write a simulated cohort in the files of a lab: NIfTI scans, a parcellation, a phenotype table.
#
# Streams keyed by the subject's id generate all its data, so scans have the same bytes in any order and number of jobs.

logger = logging.getLogger(__name__)

BASELINE = 1000.0
SIGNAL = 15.0
DRIFT = 10.0


def region_signals(
    settings: SimulateSettings, connectome: Connectome, subject: SimulatedSubject, streams: Streams
) -> NDArray[np.float64]:
    """(volumes, R) neural signal of one subject, unit variance, autocorrelated in time."""
    site = settings.sites[subject.site]
    correlation = subject_correlation(settings, connectome, subject, streams)
    random = streams.numpy("simulate", "signal", subject.participant_id)
    warm_up = int(np.ceil(5 * settings.memory / site.tr))
    carry = np.exp(-site.tr / settings.memory)
    drive = random.standard_normal((warm_up + site.volumes, settings.regions))
    latent = lfilter([np.sqrt(1 - carry**2)], [1, -carry], drive, axis=0)[warm_up:]
    return np.asarray(latent @ np.linalg.cholesky(correlation).T)


def simulate_scan(
    settings: SimulateSettings,
    atlas: SimulatedAtlas,
    connectome: Connectome,
    subject: SimulatedSubject,
    streams: Streams,
) -> nib.Nifti1Image:
    """One subject's 4D image: baseline, drift, the region's signal and the site's voxel noise, int16."""
    site = settings.sites[subject.site]
    signal = region_signals(settings, connectome, subject, streams)
    inside = atlas.labels > 0
    region = atlas.labels[inside].astype(np.int64) - 1
    random = streams.numpy("simulate", "scanner", subject.participant_id)
    baseline = BASELINE * random.uniform(0.9, 1.1, len(region))
    drift = DRIFT * random.standard_normal(len(region)) * np.linspace(-1, 1, site.volumes)[:, None]
    noise = SIGNAL * site.noise * random.standard_normal((site.volumes, len(region)), dtype=np.float32)
    voxels = np.zeros((*atlas.labels.shape, site.volumes), dtype=np.int16)
    voxels[inside] = np.rint(baseline + drift + SIGNAL * signal[:, region] + noise).T
    image = _in_mni(voxels, atlas.affine)
    image.header["pixdim"][4] = site.tr
    return image


def write_scans(files: Mapping[str, str | Path], settings: CohortSettings) -> None:
    """Write the scans of some subjects: subject id -> path of its `.nii.gz`."""
    simulate = settings.simulate
    streams = Streams(simulate.seed)
    atlas = simulate_atlas(simulate, streams)
    connectome = simulate_connectome(simulate, atlas, streams)
    subjects = simulate_subjects(settings, streams)
    for done, (subject, path) in enumerate(sorted(files.items()), start=1):
        write_image(path, simulate_scan(simulate, atlas, connectome, subjects[subject], streams))
        logger.info("%s simulated (%d/%d)", subject, done, len(files))


def write_atlas(folder: str | Path, simulate: SimulateSettings) -> None:
    """Write atlas.nii.gz and atlas.tsv; they depend on the grid and the regions, not on subjects."""
    atlas = simulate_atlas(simulate, Streams(simulate.seed))
    write_image(Path(folder) / "atlas.nii.gz", atlas.image)
    names = pd.DataFrame({"index": range(1, len(atlas.names) + 1), "name": atlas.names})
    write_tsv(Path(folder) / "atlas.tsv", names, keep_names=True)


def write_participants(folder: str | Path, settings: CohortSettings) -> None:
    """Write participants.tsv and truth.json."""
    simulate, streams = settings.simulate, Streams(settings.simulate.seed)
    atlas = simulate_atlas(simulate, streams)
    connectome = simulate_connectome(simulate, atlas, streams)
    write_tsv(Path(folder) / "participants.tsv", simulate_phenotypes(settings, streams), keep_names=True)
    write_text(Path(folder) / "truth.json", canonical_json(_truth(settings, atlas, connectome)))


def write_image(path: str | Path, image: nib.Nifti1Image) -> None:
    """Write a gzipped NIfTI; the same image gives the same bytes under any name."""
    with atomic(path) as temporary:
        temporary.write_bytes(gzip.compress(image.to_bytes(), compresslevel=1, mtime=0))


def _truth(settings: CohortSettings, atlas: SimulatedAtlas, connectome: Connectome) -> dict[str, Any]:
    """Settings, connections of each phenotype as [region, region, sign], and members of each group."""
    simulate = settings.simulate
    connections = {}
    for name, effect in connectome.effects.items():
        row, column = np.nonzero(np.triu(effect, 1))
        connections[name] = [
            [atlas.names[i], atlas.names[j], int(effect[i, j])] for i, j in zip(row, column, strict=True)
        ]
    idle = {"thickness": not simulate.thickness_regions, "group": not simulate.groups}
    unused = tuple(start for start, without in idle.items() if without)
    recorded = {key: value for key, value in asdict(simulate).items() if not key.startswith(unused)}
    if not simulate.groups:
        return {"settings": recorded, "connections": connections}
    members: list[list[str]] = [[] for _ in range(simulate.groups)]
    for subject in simulate_subjects(settings, Streams(simulate.seed)).values():
        if subject.group is not None:
            members[subject.group].append(subject.participant_id)
    return {"settings": recorded, "connections": connections, "groups": members}
