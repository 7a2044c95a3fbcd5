"""A whole project: its config, every cohort, every split, the disk."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from brainfed.checking.cohort import check_cohort
from brainfed.checking.config import PLACE as CONFIG
from brainfed.checking.config import UsableConfig, check_config
from brainfed.checking.disk import check_disk, needed_bytes
from brainfed.checking.files import check_dates, check_others
from brainfed.checking.finding import Finding, boundary, collected, found_at, gathered
from brainfed.checking.people import Checked
from brainfed.checking.split import (
    check_copies,
    check_few,
    check_harmonisation,
    check_public,
    check_released,
    check_sites_left_out,
    check_splits,
)
from brainfed.cohort.splits.own_subjects import require_own
from brainfed.configuration.planning.experiments import Experiment
from brainfed.graphs.connectome.settings import require_connections
from brainfed.runtime.errors import UserError

DISK = "disk"
AT_THE_SITES = (
    "This is the coordinator's config of a study between sites: paths and files of the cohort are the sites' own; each "
    "site checks them in its own config. If this is a site's config, set `study.site`."
)


def check_project(
    config: Path, results: Path = Path("results"), *, few: bool = False, every_scan: bool = False
) -> list[Finding]:
    """All mistakes that tables and files show, as far as one does not hide another.

    Region series are read as the jobs read them; of images the headers, and the voxels of some subjects of each site.

    Args:
        config: path of the config.
        results: folder of the results, for the disk that they need.
        few: note also that few people are tested, which no file shows to be a mistake.
        every_scan: read the voxels of all images.
    """
    usable, findings = UsableConfig({}, (), 0), list[Finding]()
    with boundary(str(config), lambda error: findings.append(found_at(CONFIG, error))):
        usable, findings = check_config(config)
    found: list[Finding] = []
    needed: dict[str, int] = {}
    for name, settings in usable.cohorts.items():
        if usable.coordinates and settings.source != "simulate":
            found.append(Finding("notes", f"cohort {name}: files", AT_THE_SITES))
            continue
        checked = check_cohort(name, settings, every_scan=every_scan)
        files = f"cohort {name}: files"
        found += [*checked.findings, *collected(files, check_dates, name, settings, files)]
        if len(usable.cohorts) > 1:
            found += collected(files, check_others, name, settings, usable.cohorts, files)
        experiments = [experiment for experiment in usable.experiments if name in experiment.cohorts]
        place = f"cohort {name}: institutions and folds"
        foreign = collected(place, check_own, checked, usable.site, place)
        found += foreign
        if checked.people and not foreign:
            learnt = settings.classes, settings.target
            found += collected(place, check_splits, checked, experiments, usable.seed, place, *learnt, usable.sites)
            found += collected(place, check_public, checked, experiments, usable.seed, place, *learnt)
            found += collected(place, check_sites_left_out, checked, experiments, place)
            if usable.site and usable.plan:
                found += collected(place, check_released, checked, usable.plan, place, *learnt)
            if settings.refuses_contradictions:
                found += collected(place, check_copies, checked, place, settings.target)
            if few:
                found += collected(place, check_few, checked, experiments, place, *learnt)
        found += collected(place, check_harmonisation, checked, experiments, place)
        connectomes = f"cohort {name}: connectomes"
        found += collected(connectomes, check_connectomes, checked.regions, experiments, connectomes)
        with boundary(place, lambda error: findings.append(found_at(DISK, error))):
            needed[name] = needed_bytes(checked, experiments)
    return [*findings, *gathered(found), *collected(DISK, check_disk, needed, results, DISK)]


def check_own(checked: Checked, site: str, place: str) -> Iterator[Finding]:
    """Subjects of other sites in the table of one site of a study."""
    if not site or not checked.people:
        return
    try:
        require_own(sorted({person.site for person in checked.people}), site)
    except UserError as error:
        yield Finding("stops", place, str(error))


def check_connectomes(regions: int, experiments: Sequence[Experiment], place: str) -> Iterator[Finding]:
    """Variants whose graphs would have no edge; a number of regions that is not known is 0."""
    reading = [experiment for experiment in experiments if any(one.stage("connectomes") for one in experiment.variants)]
    if not reading or regions == 0:
        return
    try:
        require_connections(regions, ", ".join(experiment.name for experiment in reading))
    except UserError as error:
        yield Finding("stops" if any(one.default for one in reading) else "notes", place, str(error))
