"""Atlases that a config may name, with the paths of their files.

The module is light: the listing reads it at parse time. `atlas_download` downloads the files.
"""

from typing import NamedTuple

from brainfed.cohort.settings.cohort import CohortSettings

FOLDER = "resources/atlases"
FETCH = "snakemake fetch_atlases --cores 1"
KNOWN_ATLASES = ("basc122", "cc200", "harvard-oxford", "aal")


class AtlasFiles(NamedTuple):
    """Atlas NIfTI and region table, None where absent."""

    parcellation: str | None
    labels: str | None


def atlas_files(settings: CohortSettings) -> AtlasFiles:
    """Files that the settings name, else those of the known atlas `atlas`."""
    if not by_name(settings):
        return AtlasFiles(settings.parcellation, settings.labels)
    path = f"{FOLDER}/{settings.atlas}"
    return AtlasFiles(f"{path}.nii.gz", settings.labels or f"{path}.tsv")


def by_name(settings: CohortSettings) -> bool:
    """Whether a cohort of images uses a known atlas and no parcellation of its own."""
    images = settings.source not in ("simulate", "timeseries")
    return images and settings.parcellation is None and settings.atlas in KNOWN_ATLASES
