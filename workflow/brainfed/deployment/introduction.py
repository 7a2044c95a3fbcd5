"""What the coordinator compares before it begins: versions, and everything that decides a result."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any

import yaml

import brainfed
from brainfed.configuration.planning.plan import Plan
from brainfed.runtime.artefacts import canonical_json
from brainfed.runtime.errors import UserError

START = "start"
"""Of what a site says: name of the start of its `brainfed join`."""
COMPUTING = ("numpy", "scipy", "scikit-learn", "torch")
"""Packages whose version must be the same at all sites."""
CODE = ("*.py", "*.smk", "Snakefile")
"""Files that decide a result."""
A_SITES_OWN = frozenset(
    {
        "phenotype",
        "rows",
        "columns",
        "codes",
        "missing",
        "series",
        "header",
        "transposed",
        "variable",
        "confounds",
        "tr",
        "parcellation",
        "labels",
        "bids.derivatives",
        "bids.resolution",
        "bids.reconstruction",
        "bids.task",
        "bids.sessions",
        "bids.run_numbers",
        "bids.export",
        "freesurfer.tables",
        "freesurfer.subjects_dir",
        "freesurfer.id",
        "freesurfer.subject",
        "freesurfer.rows",
        "tudataset.folder",
        "tudataset.names",
        "fetch",
        "shards",
    }
)
"""Settings of a cohort that say where a site's files lie, how they are written and named, or how they are stored.

All other settings decide who takes part and what a number means. A new setting is one of these unless it is added here.
"""


def introduction(plan: Plan, clock: float, **release: Mapping[str, Any]) -> dict[str, Any]:
    """What a site says of itself, or the coordinator expects.

    Args:
        plan: of its config.
        clock: seconds since 1970.
        release: `stated`, of the coordinator, words of what the study's file states to release of a site's subjects; or
            `released`, of a site, words of what it would release of its own (`attendance.released`).
    """
    return {
        **release,
        "site": plan.project.study.site,
        "study": study_digest(plan),
        "versions": {name: version(name) for name in COMPUTING} | {"brainfed": _code()},
        "settings": settings_of(plan),
        "clock": clock,
    }


def study_digest(plan: Plan) -> str:
    """SHA-256 of everything that decides a result, as 64 hexadecimal characters."""
    return hashlib.sha256(canonical_json(settings_of(plan)).encode()).hexdigest()


def settings_of(plan: Plan) -> dict[str, Any]:
    """Dotted key -> value as JSON has it, of all settings that sites must share."""
    project = plan.project
    shared: dict[str, Any] = {"seed": project.seed, "protocol": project.protocol}
    shared["study.sites"] = project.study.ordered
    study = project.study
    shared |= {"study.noise": study.noise, "study.secure_sums": study.secure_sums}
    shared |= {"study.accept_reconstruction": study.accept_reconstruction, "study.epsilon": study.epsilon}
    for name, cohort in project.cohorts.items():
        shared[f"cohorts.{name}"] = {key: value for key, value in _flat(asdict(cohort)) if not _a_sites_own(key)}
    for experiment in (each for each in plan.experiments.values() if each.default):
        shared[f"experiments.{experiment.group}.split"] = asdict(experiment.split)
        for variant in experiment.variants:
            own = {"method": variant.method.name, **variant.settings}
            stages = {kind: values for kind, values in variant.stage_settings().items() if values}
            shared[f"variants.{variant.name}"] = own | stages
    return dict(_flat(json.loads(canonical_json(shared))))


def check_introduction(name: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a site that would compute something else.

    Args:
        name: of the site.
        found: its `introduction`.
        expected: the coordinator's.

    Raises:
        UserError: the name, a version or a setting differs; the first that does is named.
    """
    if found.get("site") != name:
        raise UserError(
            f"site {name!r}, by its key: expected `study.site: {name}`, found {found.get('site')!r}; correct it in the "
            "site's config, or put each site's own key under its name into `federation/keys` of the coordinator."
        )
    for package, own in expected["versions"].items():
        if found.get("versions", {}).get(package) != own:
            remedy = "check out the same commit" if package == "brainfed" else "install its requirements.lock"
            raise UserError(
                f"site {name!r}: expected {package} {own}, as at the coordinator, found "
                f"{found.get('versions', {}).get(package, 'none')}; {remedy}."
            )
    require_same_settings(f"site {name!r}", found["settings"], expected["settings"])


def require_same_settings(where: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse settings that are not the study's.

    Args:
        where: whose they are.
        found: `settings_of` its plan.
        expected: those of the study.

    Raises:
        UserError: a setting differs; the first that does is named.
    """
    for key in sorted(expected.keys() | found.keys()):
        own, other = (held.get(key, "none") for held in (expected, found))
        if own != other:
            raise UserError(
                f"{where}: expected {key}: {_written(own)}, as in the study, found {_written(other)}; let its config "
                "extend the study's present file, and set paths, names and codes of its own files alone."
            )


def _written(value: Any) -> str:
    """A value as YAML writes it, on one line."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=inf)).removesuffix("...\n").strip()


def _a_sites_own(key: str) -> bool:
    """Whether a dotted key of a cohort, or a group of keys that it is in, is a site's own."""
    parts = key.split(".")
    return any(".".join(parts[:length]) in A_SITES_OWN for length in range(1, len(parts) + 1))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _code() -> str:
    """Digest of the workflow's own code, as 16 hexadecimal characters: library, scripts and rules."""
    total, folder = hashlib.sha256(), Path(brainfed.__file__).parents[1]
    for path in sorted(path for ending in CODE for path in folder.rglob(ending)):
        total.update(f"{path.relative_to(folder).as_posix()} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]
