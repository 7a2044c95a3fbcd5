"""Refusal of what needs the data of several sites, in a study whose sites are apart."""

from collections.abc import Iterable, Mapping
from typing import Any

from brainfed.configuration import ProjectSettings, StudySettings
from brainfed.configuration.planning._experiments import Experiment, Variant
from brainfed.configuration.stages.registry import with_parents
from brainfed.methods import METHODS
from brainfed.runtime import UserError

VALIDATION: Mapping[str, tuple[Any, ...]] = {"validation": ("folds", "leave_one_site_out")}
SPLIT: Mapping[str, tuple[Any, ...]] = {"institutions": ("sites",), "stratify": ("label",)}
STAGES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "graph": {"scope": ("local",)},
    "features": {"harmonise": ("none",), "selection": ("none",)},
}
"""Settings of splits and stages that no other site's data are needed for."""


def check_between_sites(project: ProjectSettings, experiments: Iterable[Experiment]) -> None:
    """Refuse experiments that sites that are apart cannot run.

    Raises:
        UserError: a split, a method or a setting needs the data of several sites in one place.
    """
    if not project.study.sites:
        return
    if project.models:
        raise UserError(
            f"models: expected none between sites that are apart, found {', '.join(project.models)}; their "
            "distances need the subjects of all sites. Remove the key."
        )
    regimes: dict[str, Experiment] = {}
    for experiment in (each for each in experiments if each.default):
        where = f"experiments.{experiment.group}"
        _require(where, f"{where}.split", vars(experiment.split), VALIDATION)
        if experiment.regime.unseen:
            _check_left_out(where, experiment.variants, project.study)
        else:
            _require(where, f"{where}.split", vars(experiment.split), SPLIT)
        if experiment.regime.labels != "true":
            raise UserError(
                f"{where}.labels: expected true between sites, found {experiment.regime.labels}; remove it."
            )
        for variant in experiment.variants:
            _check_variant(where, variant)
            _check_draws(where, variant, project.study)
            first = regimes.setdefault(variant.name, experiment)
            if first.regime.name != experiment.regime.name:
                raise UserError(
                    f"{where}.variants: expected {variant.name!r} under one split, as a site sends its counts by "
                    f"variant, found it under another in experiments.{first.group}; define it by a second name, or "
                    "use one split."
                )


def _check_variant(where: str, variant: Variant) -> None:
    method = variant.method
    topology = variant.settings["training"] if method.topology == "setting" else method.topology
    if topology == "central" or (topology == "federated" and method.crossing.between_sites is None):
        possible = ", ".join(sorted(name for name, each in METHODS.items() if each.crossing.between_sites is not None))
        reason = "pools subjects" if topology == "central" else "runs in a simulation alone"
        raise UserError(
            f"{where}.variants: expected methods that sites train together or each alone, found {variant.name!r} of "
            f"method {method.name!r}, which {reason}; choose among {possible}, or methods that train alone."
        )
    _require(where, f"variants.{variant.name}", variant.settings, method.crossing.between_sites or {})
    for held in variant.stages.values():
        for stage in with_parents(held):
            key = f"variants.{variant.name}.{stage.kind.key}"
            _require(where, key, stage.values, STAGES.get(stage.kind.name, {}))
            for name, view in stage.values.get("views", {}).items():
                _require(where, f"{key}.views.{name}", view, {**STAGES["features"], "centre": ("all",)})


def _check_left_out(where: str, variants: Iterable[Variant], study: StudySettings) -> None:
    """Refuse methods whose own networks of other sites would score the site that is left out, and masks without use.

    A site gives the same numbers in all folds in which it trains. The sums of all folds, each without one site, then
    show the numbers of every single site: the sum over folds, divided by the number of the others, less one fold's sum.
    """
    if unsuited := [variant for variant in variants if not variant.method.crossing.leaves_out]:
        possible = ", ".join(sorted(name for name, each in METHODS.items() if each.crossing.leaves_out))
        found = ", ".join(f"{variant.name!r} of method {variant.method.name!r}" for variant in unsuited)
        raise UserError(
            f"{where}.variants: expected methods whose shared model scores a site that is left out ({possible}), found "
            f"{found}; take {'it' if len(unsuited) == 1 else 'them'} out of `variants` and `reference`, or use "
            "split.validation: folds."
        )
    if study.secure_sums:
        raise UserError(
            f"{where}.split.validation: expected study.secure_sums: false to leave sites out in turn, found true: sums "
            "that lack another site in every fold show the numbers of every single one, so a mask would hide nothing; "
            "set it if the sites agree that the coordinator sees their models and sums, or use folds."
        )
    if len(study.sites) - 1 < study.least:
        raise UserError(
            f"{where}.split.validation: expected more than {study.least} sites (study.least), as the others train "
            f"where one is left out, found {len(study.sites)}; use folds."
        )


def _check_draws(where: str, variant: Variant, study: StudySettings) -> None:
    """Refuse rounds of so few sites that their sum would be nearly each site's own numbers."""
    inpainting = variant.stage("inpainting")
    held = {"": variant.settings, "inpainting.": inpainting.values if inpainting is not None else {}}
    for key, settings in held.items():
        drawn = max(round(settings.get("fraction", 1.0) * len(study.sites)), 1)
        if study.secure_sums and drawn < study.least:
            raise UserError(
                f"{where}: expected variants.{variant.name}.{key}fraction to draw at least {study.least} of "
                f"{len(study.sites)} sites (study.least), as their numbers are added up unseen, found "
                f"{settings['fraction']:g}, which draws {drawn}; raise it, or set study.secure_sums: false."
            )


def _require(where: str, key: str, found: Mapping[str, Any], allowed: Mapping[str, tuple[Any, ...]]) -> None:
    for name, values in allowed.items():
        if name in found and found[name] not in values:
            raise UserError(
                f"{where}: expected {key}.{name}: {' or '.join(map(str, values))} between sites that are apart, found "
                f"{found[name]}; set it so, or leave the experiment to a simulation (remove `study`)."
            )
