"""Write a simulated cohort in the files of a lab: NIfTI scans, a parcellation, a phenotype table.

Streams keyed by the subject's id generate all its data, so scans have the same bytes in any order and number of jobs.
"""

import gzip
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import lfilter

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.simulation import SimulateSettings
from brainfed.cohort.sources.simulated.atlas import SimulatedAtlas, simulate_atlas
from brainfed.cohort.sources.simulated.connectivity import Connectome, simulate_connectome, subject_correlation
from brainfed.cohort.sources.simulated.phenotype import SimulatedSubject, simulate_phenotypes, simulate_subjects
from brainfed.runtime.artefacts import atomic, canonical_json, write_text, write_tsv
from brainfed.runtime.streams import Streams

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
    image = nib.Nifti1Image(voxels, atlas.affine)
    image.set_sform(atlas.affine, code="mni")
    image.set_qform(atlas.affine, code="mni")
    image.header.set_xyzt_units("mm", "sec")
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
    recorded = asdict(simulate)
    if not simulate.thickness_regions:
        recorded = {key: value for key, value in recorded.items() if not key.startswith("thickness")}
    if not simulate.groups:
        alone = {key: value for key, value in recorded.items() if not key.startswith("group")}
        return {"settings": alone, "connections": connections}
    members: list[list[str]] = [[] for _ in range(simulate.groups)]
    for subject in simulate_subjects(settings, Streams(simulate.seed)).values():
        if subject.group is not None:
            members[subject.group].append(subject.participant_id)
    return {"settings": recorded, "connections": connections, "groups": members}
