"""FreeSurfer's measures beside scans: their files, their ids, and how many subjects have them."""

from collections.abc import Iterator
from dataclasses import replace

from brainfed.checking.finding import Finding, boundary, found_at, named
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.cohort.sources.freesurfer.further import further_identities, unusable_measures
from brainfed.cohort.sources.listing import list_cohort
from brainfed.imaging.morphometry.measures import read_measures
from brainfed.runtime.errors import UserError


def without_further(settings: CohortSettings) -> CohortSettings:
    """The same cohort of scans without FreeSurfer's measures."""
    return replace(settings, freesurfer=FreeSurferSettings())


def check_further_measures(name: str, settings: CohortSettings) -> Iterator[Finding]:
    """Mistakes of the measures, and subjects that lack them; nothing if the scans cannot be listed."""
    place = f"cohort {name}: measures"
    try:
        listing = list_cohort(name, replace(without_further(settings), on_invalid="drop"))
    except UserError:  # The check of the scans has its sentence.
        return
    wrong = [*unusable_measures(name, listing.subjects, settings)]
    if not wrong:
        with boundary(place, wrong.append):
            found = read_measures(further_identities(name, listing.subjects, settings), settings)
    yield from (found_at(place, error) for error in wrong)
    lacking = () if wrong else tuple(sorted({*listing.with_series} - {*map(str, found.values.index)}))
    if lacking:
        sentence = (
            f"{len(lacking)} of {len(listing.with_series)} subjects with a scan have no whole FreeSurfer measures and "
            f"lack this view: {named(lacking)}."
        )
        yield Finding("notes", place, sentence, lacking)
