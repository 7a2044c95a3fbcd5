"""Missing settings and files of a cohort of images or series, found before its table is read."""

import difflib
from collections.abc import Iterator
from pathlib import Path

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.known_atlases import FETCH, KNOWN_ATLASES, atlas_files
from brainfed.cohort.sources.path_patterns import lying_near, remedy_for
from brainfed.runtime.errors import UserError

NEEDED = {"nifti": ("phenotype", "series"), "timeseries": ("phenotype", "series", "regions"), "bids": ()}


def missing_inputs(name: str, settings: CohortSettings) -> Iterator[UserError]:
    """Mistakes of a cohort of images or series that lacks settings, or the files that these name."""
    files = atlas_files(settings)
    for key in NEEDED[settings.source]:
        if getattr(settings, key) is None:
            yield UserError(f"Cohort {name!r}: source {settings.source!r} needs `{key}`, found nothing; set it.")
    if settings.source != "timeseries" and files.parcellation is None:
        near = difflib.get_close_matches(settings.atlas.casefold(), KNOWN_ATLASES, n=1)
        yield UserError(
            f"Cohort {name!r}: source {settings.source!r} needs `parcellation`, or an `atlas` among "
            f"{', '.join(KNOWN_ATLASES)}, found neither (atlas {settings.atlas!r}); "
            f"{f'did you mean {near[0]!r}?' if near else 'set one.'}"
        )
    tables = [("phenotype", table) for table in settings.tables]
    for key, path in (*tables, ("parcellation", files.parcellation), ("labels", files.labels)):
        if path is not None and not Path(path).is_file():
            remedy = (
                f"run `{FETCH}` with this config or fix `atlas`"
                if key != "phenotype" and path != getattr(settings, key)
                else remedy_for(settings, key, path) + lying_near(path)
            )
            yield UserError(f"Cohort {name!r}: expected the {key} file {path}, found none; {remedy}.")
    if settings.confounds is not None and settings.source == "timeseries":
        yield UserError(
            f"Cohort {name!r}: confounds are regressed out of NIfTI images only, found source {settings.source!r}; "
            "remove `confounds`."
        )
