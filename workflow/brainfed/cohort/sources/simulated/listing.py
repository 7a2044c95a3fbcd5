"""List a cohort of simulated scans."""

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.listed import ListedSubject, Listing, shard_name
from brainfed.cohort.sources.simulated.apportion import apportion


def simulated_subjects(settings: CohortSettings) -> dict[str, str]:
    """Subject id -> site of a simulated cohort; one more subject leaves the others where they are."""
    simulate = settings.simulate
    sites = apportion({name: site.share for name, site in simulate.sites.items()}, simulate.subjects)
    return {f"sub-{number:04d}": site for number, site in enumerate(sites, start=1)}


def list_simulated(name: str, settings: CohortSettings, folder: str) -> Listing:
    """List cohort `name`; its files will lie in `folder`."""
    subjects = tuple(
        ListedSubject(
            subject,
            site,
            f"{folder}/{subject}_bold.nii.gz",
            None,
            "",
            shard_name(subject, settings.shards),
            file=subject,
        )
        for subject, site in simulated_subjects(settings).items()
    )
    return Listing(
        name, settings.atlas, f"{folder}/participants.tsv", f"{folder}/atlas.nii.gz", f"{folder}/atlas.tsv", subjects
    )
