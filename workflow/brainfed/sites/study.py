"""What a person's config says of a study between sites: its plan, its one cohort, the files of Flower."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any

import yaml

import brainfed
from brainfed.cohort.sources import list_cohort
from brainfed.configuration import extended, extends, load_plan, read_config
from brainfed.configuration.layout import Layout
from brainfed.configuration.planning import Plan
from brainfed.runtime import UserError, canonical_json

FOLDER = Path("federation")
"""Keys, certificate, logs and state, beside `results`."""
OUTCOME = "outcome.json"
"""What came of a study: the sites' scores, or the sentence of an error."""
PAGE = "outcome.html"
"""The same scores, to be read."""
LEDGER = FOLDER / "left-this-site.tsv"
"""What left a site, at the site."""


@dataclass(frozen=True)
class StudyPlace:
    """A config with `study`, by its path, and what it plans."""

    config: Path
    plan: Plan

    @classmethod
    def of(cls, config: Path) -> "StudyPlace":
        """Read a config.

        Raises:
            UserError: it has no study, or several cohorts.
        """
        plan = load_plan(read_config(config), [config])
        if not plan.project.study.sites:
            raise UserError(f"{config}: expected `study` with the names of all sites, found none; add it.")
        if len(plan.project.cohorts) != 1:
            raise UserError(
                f"{config}: expected one cohort, whose subjects each site has of its own, found "
                f"{', '.join(plan.project.cohorts)}; keep one of them."
            )
        return cls(config, plan)

    @property
    def cohort(self) -> str:
        """Name of the cohort."""
        return next(iter(self.plan.project.cohorts))

    @property
    def layout(self) -> Layout:
        """The files of this site's run; its subjects are listed now.

        Raises:
            UserError: as of the cohort's source.
        """
        settings = self.plan.project.cohorts[self.cohort]
        return Layout(self.plan, {self.cohort: list_cohort(self.cohort, settings)})


# What the coordinator compares before it begins: versions, and everything that decides a result.

START = "start"
"""Of what a site says: name of the start of its `brainfed join`."""
COMPUTING = ("numpy", "scipy", "scikit-learn", "torch")
"""Packages whose version must be the same at all sites."""
CODE = ("*.py", "*.smk", "Snakefile")
"""Files that decide a result."""
A_SITES_OWN = frozenset(
    {
        *("phenotype", "rows", "columns", "codes", "missing"),
        *("series", "header", "transposed", "variable", "confounds", "tr", "parcellation", "labels"),
        *("bids.derivatives", "bids.resolution", "bids.reconstruction", "bids.task", "bids.sessions"),
        *("bids.run_numbers", "bids.export"),
        *("freesurfer.tables", "freesurfer.subjects_dir", "freesurfer.id", "freesurfer.subject", "freesurfer.rows"),
        *("tudataset.folder", "tudataset.names", "fetch", "shards"),
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
            `released`, of a site, words of what it would release of its own (`sites.released`).
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
    project, study = plan.project, plan.project.study
    shared: dict[str, Any] = {
        "seed": project.seed,
        "protocol": project.protocol,
        "study.sites": study.ordered,
        "study.noise": study.noise,
        "study.secure_sums": study.secure_sums,
        "study.accept_reconstruction": study.accept_reconstruction,
        "study.epsilon": study.epsilon,
    }
    for name, cohort in project.cohorts.items():
        shared[f"cohorts.{name}"] = {
            key: value
            for key, value in _flat(asdict(cohort))
            if not any(f"{key}.".startswith(f"{own}.") for own in A_SITES_OWN)
        }
    for experiment in (each for each in plan.experiments.values() if each.default):
        shared[f"experiments.{experiment.group}.split"] = asdict(experiment.split)
        for variant in experiment.variants:
            own = {"method": variant.method.name, **variant.settings}
            stages = {kind: values for kind, values in variant.stage_settings().items() if values}
            shared[f"variants.{variant.name}"] = own | stages
    return dict(_flat(json.loads(canonical_json(shared))))


def check_introduction(name: str, sent: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a site whose `introduction` says that it would compute something else.

    Raises:
        UserError: the name, a version or a setting differs; the first that does is named.
    """
    if sent.get("site") != name:
        raise UserError(
            f"site {name!r}, by its key: expected `study.site: {name}`, found {sent.get('site')!r}; correct it in the "
            "site's config, or put each site's own key under its name into `federation/keys` of the coordinator."
        )
    for package, own in expected["versions"].items():
        if (other := sent["versions"].get(package, "none")) != own:
            remedy = "check out the same commit" if package == "brainfed" else "install its requirements.lock"
            raise UserError(f"site {name!r}: expected {package} {own}, as at the coordinator, found {other}; {remedy}.")
    require_same_settings(f"site {name!r}", sent["settings"], expected["settings"])


def require_same_settings(where: str, settings: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse settings (`settings_of` a plan) that are not the study's; `where` says whose they are.

    Raises:
        UserError: a setting differs; the first that does is named.
    """
    for key in sorted(expected.keys() | settings.keys()):
        own, other = expected.get(key, "none"), settings.get(key, "none")
        if own != other:
            raise UserError(
                f"{where}: expected {key}: {_written(own)}, as in the study, found {_written(other)}; let its config "
                "extend the study's present file, and set paths, names and codes of its own files alone."
            )


def _written(value: Any) -> str:
    """A value as YAML writes it, on one line."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=inf)).removesuffix("...\n").strip()


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


# A site's config beside the study's file that it extends: a change of the study is refused at home already.


def require_study_of(config: Path, plan: Plan) -> None:
    """Refuse a site's config that changes the study which it extends.

    A config that extends no study is left to the coordinator.

    Raises:
        UserError: a setting of the study differs, or the study's file is not valid by itself.
    """
    if not plan.project.study.site:
        return
    path = next(_studies(read_config(config)), None)
    if path is None:
        return
    study = load_plan(read_config(path), [path])
    require_same_settings(f"{config}: site {plan.project.study.site!r}", settings_of(plan), settings_of(study))


def require_extended_study(config: Path) -> None:
    """Refuse a site's config that extends no study, or has a cohort of another name: all that follows would mislead.

    A coordinator's config passes.

    Raises:
        UserError: as above, or a file does not exist or is no YAML.
    """
    content = read_config(config)
    whole = extended(content)
    study = whole.get("study")
    if not isinstance(study, Mapping) or not study.get("site"):
        return
    if not study.get("sites"):
        raise UserError(
            f"{config}: expected `extends` with the path of the study's file beside `study.site: {study['site']}`, "
            "found no file that names the sites of a study; add it, as `extends: study.yaml`."
        )
    path = next(_studies(content), None)
    known = extended(read_config(path)).get("cohorts") if path is not None else None
    own = whole.get("cohorts")
    if not isinstance(known, Mapping) or not isinstance(own, Mapping):
        return
    if foreign := [str(name) for name in own if name not in known]:
        raise UserError(
            f"{config}: cohorts.{foreign[0]}: expected the cohort's name in {path}, {', '.join(map(str, known))}, "
            "found another; correct it."
        )


def _studies(config: Mapping[str, Any]) -> Iterator[Path]:
    """The files that are a study's, among those that a config extends: the nearest first."""
    for path in reversed(extends(config)):
        content = read_config(path)
        study = extended(content).get("study")
        if isinstance(study, Mapping) and study.get("sites") and not study.get("site"):
            yield path
        yield from _studies(content)
