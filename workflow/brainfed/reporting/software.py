"""Versions of the libraries that computed the results, from the records next to them.

The environment that writes the page may be another one: results are kept across versions (`library_versions: record`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.records.made import Made, record_of


@dataclass(frozen=True)
class Software:
    """Software of all jobs behind a page, down to the first job that read the data.

    Attributes:
        versions: package -> number of jobs by the version that they computed with.
        jobs: number of jobs that wrote the results.
        unrecorded: number of results without a record of versions.
        adopted: number of jobs with results kept on request, whatever made them.
    """

    versions: Mapping[str, Mapping[str, int]]
    jobs: int
    unrecorded: int
    adopted: int

    @property
    def listing(self) -> str:
        """`numpy 2.4.6, torch 2.11.0 (40 jobs) and 2.13.0 (12 jobs)`."""
        return ", ".join(f"{name}\u00a0{_counted(found)}" for name, found in self.versions.items())


def software_of(results: Iterable[str]) -> Software:
    """Software of the results of a page, and of all their inputs.

    Args:
        results: paths of results; files without a record are counted.
    """
    paths = list(results)
    behind = _behind(paths)
    known = [made for made in behind if made.versions]
    names = sorted({name for made in known for name in made.versions}, key=str.casefold)
    return Software(
        {name: _counts(made.versions[name] for made in known if name in made.versions) for name in names},
        len(behind),
        sum(_record(path) is None for path in paths) + len(behind) - len(known),
        sum(made.adopted for made in behind),
    )


def mixed_versions(experiment: ExperimentOutline) -> list[str]:
    """Warnings on mixed versions and on unverified results of a table.

    One for each library with several versions, and one if some results were kept on request.
    """
    used: dict[str, dict[str, list[str]]] = {}
    for variant in experiment.variants:
        for made in _behind(result_files(variant)):
            for name, version in made.versions.items():
                titles = used.setdefault(name, {}).setdefault(version, [])
                titles += [] if variant.title in titles else [variant.title]
    files = [path for variant in experiment.variants for path in result_files(variant)]
    adopted = sum(made.adopted for made in _behind([*files, *experiment.tables.values(), *experiment.figures.values()]))
    kept = [_adopted_sentence(adopted)] if adopted else []
    return kept + [_sentence(name, used[name]) for name in sorted(used) if len(used[name]) > 1]


def result_files(variant: ShownVariant) -> list[str]:
    """Inputs of a variant's scores: features, generators, fused graphs and predictions."""
    generators = variant.inpainting.get("costs", [])
    return [*variant.feature_files, *generators, *variant.fused, *variant.costs]


def _behind(paths: Sequence[str]) -> list[Made]:
    """The records of the jobs that wrote these files and, one after another, what those read; each once."""
    found: dict[str, Made] = {}
    waiting = list(paths)
    seen = set(waiting)
    while waiting:
        made = _record(waiting.pop())
        if made is not None and (first := next(iter(made.outputs))) not in found:
            found[first] = made
            waiting += [path for path in made.contents if path not in seen]
            seen |= made.contents.keys()
    return list(found.values())


@cache
def _record(path: str) -> Made | None:
    return record_of(Path(path))


def _counts(versions: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for version in versions:
        found[version] = found.get(version, 0) + 1
    return dict(sorted(found.items()))


def _counted(found: Mapping[str, int]) -> str:
    if len(found) == 1:
        return next(iter(found))
    return " and ".join(f"{version} ({count} job{'s' if count != 1 else ''})" for version, count in found.items())


def _adopted_sentence(count: int) -> str:
    whose = "The results of 1 job" if count == 1 else f"The results of {count} jobs"
    return (
        f"{whose} behind this table were kept on request (BRAINFED_ADOPT): nothing shows that this config, code and "
        "data made them."
    )


def _sentence(name: str, used: Mapping[str, list[str]]) -> str:
    parts = "; ".join(f"{version}: {', '.join(titles)}" for version, titles in sorted(used.items()))
    return (
        f"Several versions of {name} computed the results of this table ({parts}). `library_versions: rerun` in the "
        "config computes them all with the present one."
    )
