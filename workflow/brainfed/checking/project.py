"""A whole project: its config, every cohort, every split, the disk."""

from pathlib import Path

from brainfed.checking.cohort import check_cohort
from brainfed.checking.config import check_config
from brainfed.checking.disk import check_disk, needed_bytes
from brainfed.checking.finding import Finding, gathered
from brainfed.checking.split import check_harmonisation, check_sites_left_out, check_splits


def check_project(config: Path, results: Path = Path("results")) -> list[Finding]:
    """All mistakes that headers and tables show, as far as one does not hide another.

    Region series are read as the jobs read them; of images the headers alone, and voxels where a file looks cut off.
    """
    usable, findings = check_config(config)
    found: list[Finding] = []
    needed: dict[str, int] = {}
    for name, settings in usable.cohorts.items():
        checked = check_cohort(name, settings)
        found += checked.findings
        experiments = [experiment for experiment in usable.experiments if name in experiment.cohorts]
        place = f"cohort {name}: institutions and folds"
        if checked.people:
            found += check_splits(checked, experiments, usable.seed, place, settings.classes)
            found += check_sites_left_out(checked, experiments, place)
        found += check_harmonisation(experiments, place)
        needed[name] = needed_bytes(checked, experiments)
    return [*findings, *gathered(found), *check_disk(needed, results, "disk")]
