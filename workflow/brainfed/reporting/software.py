"""Which versions of the libraries computed the results, by the records that lie beside them.

The environment that writes the page may be another one: results are kept across versions (`library_versions: record`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.made import Made, record_of

UNCOUNTED = "brainfed"
"""Its edits are seen by the digest of the code, and recompute what they change."""


@dataclass(frozen=True)
class Software:
    """What computed the results behind a page.

    Attributes:
        versions: package -> number of results by the version that computed them.
        results: number of results.
        unrecorded: how many of them say nothing of versions.
        adopted: how many were kept on request, although they were not made by this config, code and data.
    """

    versions: Mapping[str, Mapping[str, int]]
    results: int
    unrecorded: int
    adopted: int

    @property
    def listing(self) -> str:
        """`numpy 2.4.6, torch 2.11.0 (40 results) and 2.13.0 (12 results)`."""
        return ", ".join(f"{name}\u00a0{_counted(found)}" for name, found in self.versions.items())


def software_of(cohorts: Iterable[CohortOutline]) -> Software:
    """What computed all results of the methods on a page, and what they were made from."""
    paths = [
        path
        for cohort in cohorts
        for experiment in cohort.experiments
        for variant in experiment.variants
        for path in result_files(variant)
    ]
    records = [_record(path) for path in dict.fromkeys(paths)]
    known = [made for made in records if made is not None and made.versions]
    names = sorted({name for made in known for name in made.versions}, key=str.casefold)
    return Software(
        {name: _counts(made.versions[name] for made in known if name in made.versions) for name in names},
        len(records),
        len(records) - len(known),
        sum(made is not None and made.adopted for made in records),
    )


def mixed_versions(experiment: ExperimentOutline) -> list[str]:
    """A sentence for each library of which several versions computed the results of one table."""
    used: dict[str, dict[str, list[str]]] = {}
    for variant in experiment.variants:
        for path in result_files(variant):
            made = _record(path)
            for name, version in (made.versions if made else {}).items():
                titles = used.setdefault(name, {}).setdefault(version, [])
                titles += [] if variant.title in titles else [variant.title]
    return [_sentence(name, used[name]) for name in sorted(used) if len(used[name]) > 1 and name != UNCOUNTED]


def result_files(variant: ShownVariant) -> list[str]:
    """What a variant's scores come from: features, generators, fused graphs and predictions."""
    generators = variant.inpainting.get("costs", [])
    return [*variant.feature_files, *generators, *variant.fused, *variant.costs]


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
    return " and ".join(f"{version} ({count} result{'s' if count != 1 else ''})" for version, count in found.items())


def _sentence(name: str, used: Mapping[str, list[str]]) -> str:
    parts = "; ".join(f"{version}: {', '.join(titles)}" for version, titles in sorted(used.items()))
    return (
        f"Several versions of {name} computed the results of this table ({parts}). `library_versions: rerun` in the "
        "config computes them all with the present one."
    )
