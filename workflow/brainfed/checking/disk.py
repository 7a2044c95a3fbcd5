"""Room on the disk: the size of the large artefacts of a plain run, against the free space."""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from brainfed.checking.finding import Finding
from brainfed.checking.people import Checked
from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.planning.stages import Experiment, FusingStage
from brainfed.imaging.settings import FeatureSettings

FLOAT = 4


def needed_bytes(checked: Checked, experiments: Sequence[Experiment]) -> int:
    """Bytes of series, features and generated nodes (at most) of the experiments that always run."""
    sites, subjects = len(checked.sites), len(checked.people)
    total = sum(person.timepoints for person in checked.people) * checked.regions
    counted: set[str] = set()
    for experiment in experiments:
        runs = experiment.repeats * _folds(experiment.split, sites)
        for variant in experiment.variants if experiment.default else ():
            if variant.features and variant.features.name not in counted:
                counted.add(variant.features.name)
                width = _width(variant.features.settings, checked.regions)
                total += subjects * width * (runs if variant.features.fitted else 1)
            if variant.features and variant.fused and variant.fused.name not in counted:
                counted.add(variant.fused.name)
                width = _width(variant.features.settings, checked.regions)
                generated = math.ceil(subjects * _max_generated(variant.fused))
                total += generated * width * (runs if variant.fused.by_fold else experiment.repeats)
    return FLOAT * total


def _max_generated(fused: FusingStage) -> float:
    """Generated nodes a subject, at most; 2 k neighbours where nothing limits them."""
    limits = (fused.settings.cap, fused.inpainting.max_generated, 2 * fused.inpainting.graph.settings.k)
    return min(limit for limit in limits if limit is not None)


def check_disk(needed: dict[str, int], results: Path, place: str) -> list[Finding]:
    """Compare the bytes that the cohorts need, less those that they hold, with the free space for results."""
    missing = sum(max(0, size - _held(results / cohort)) for cohort, size in needed.items())
    standing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(standing).free
    if missing <= free:
        return []
    sentence = (
        f"{standing}: expected about {missing / 1e9:.1f} GB of free disk for series, features and generated nodes, "
        f"found {free / 1e9:.1f} GB; make room, or run where there is more."
    )
    return [Finding("stops", place, sentence)]


def _held(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def _folds(split: SplitSettings, sites: int) -> int:
    return sites if split.validation == "leave_one_site_out" else split.folds


def _width(settings: FeatureSettings, regions: int) -> int:
    connections = regions * (regions - 1) // 2
    return min(settings.selected, connections) if settings.reads_labels else connections
