"""Room on the disk: the size of the large artefacts of a plain run, against the free space."""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from brainfed.checking.finding import Finding
from brainfed.checking.people import Checked
from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.planning.experiments import Experiment

FLOAT = 4


def needed_bytes(checked: Checked, experiments: Sequence[Experiment]) -> int:
    """Bytes of series and of stages with many numbers (as many as there may be) of the experiments that always run."""
    sites, subjects = len(checked.sites), len(checked.people)
    series = sum(person.timepoints for person in checked.people) * checked.regions
    total = series
    counted: set[str] = set()
    for experiment in experiments:
        folds = _folds(experiment.split, sites)
        for stage in (held for one in experiment.variants if experiment.default for held in one.stages.values()):
            if stage.name not in counted:
                counted.add(stage.name)
                parts = (experiment.repeats if stage.split else 1) * (folds if stage.by_fold else 1)
                total += math.ceil(stage.kind.numbers(stage, subjects, checked.regions)) * parts
                total += series if stage.kind.holds_series else 0
                total += math.ceil(stage.kind.numbers_of_all_parts(stage, subjects, checked.regions))
    return FLOAT * total


def check_disk(needed: dict[str, int], results: Path, place: str) -> list[Finding]:
    """Compare the bytes that the cohorts need, less those that they hold, with the free space for results."""
    missing = sum(max(0, size - _held(results / cohort)) for cohort, size in needed.items())
    standing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(standing).free
    if missing <= free:
        return []
    sentence = (
        f"{standing}: expected about {missing / 1e9:.1f} GB of free disk for series, features, connectomes and "
        f"generated nodes, found {free / 1e9:.1f} GB; make room, or run where there is more."
    )
    return [Finding("stops", place, sentence)]


def _held(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def _folds(split: SplitSettings, sites: int) -> int:
    return sites if split.test_folds is None else split.test_folds
