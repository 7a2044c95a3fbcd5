"""Atlases that a config may name, and where their files lie.

Light: the listing reads it at parse time. `atlas_download` brings the files.
"""

from typing import NamedTuple

from brainfed.cohort.settings.cohort import CohortSettings

FOLDER = "resources/atlases"
FETCH = "snakemake fetch_atlases --cores 1"
KNOWN_ATLASES = ("basc122", "cc200", "harvard-oxford", "aal")


class AtlasFiles(NamedTuple):
    """An atlas NIfTI and its region table; None: there is none."""

    parcellation: str | None
    labels: str | None


def atlas_files(settings: CohortSettings) -> AtlasFiles:
    """The files that a cohort of images names, else those of the known atlas that `atlas` names."""
    if not by_name(settings):
        return AtlasFiles(settings.parcellation, settings.labels)
    path = f"{FOLDER}/{settings.atlas}"
    return AtlasFiles(f"{path}.nii.gz", settings.labels or f"{path}.tsv")


def by_name(settings: CohortSettings) -> bool:
    """Whether a cohort of images takes a known atlas and names no parcellation of its own."""
    images = settings.source not in ("simulate", "timeseries")
    return images and settings.parcellation is None and settings.atlas in KNOWN_ATLASES
