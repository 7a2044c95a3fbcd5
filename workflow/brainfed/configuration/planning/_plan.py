"""The plan of a run: all that a config asks for, checked and named, and what sites apart cannot do."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.configuration import (
    QUICK,
    ExperimentSettings,
    ProjectSettings,
    StudySettings,
    check_name,
    check_names,
    known,
    nearest,
    validate,
)
from brainfed.configuration.planning._experiments import (
    Definitions,
    Experiment,
    KeptModel,
    Variant,
    check_definition,
    expand,
    expand_split,
    is_allowed,
    kept_models,
    resolve_variant,
    swept_values,
)
from brainfed.configuration.planning._figures import check_figure, refuse_other_than_graphs, takes_graphs
from brainfed.configuration.stages import Regime, Stage, registry, stage_name
from brainfed.configuration.stages.features import FEATURES
from brainfed.configuration.stages.registry import with_parents
from brainfed.methods import METHODS, ON_REQUEST, SHIPPED_VARIANTS, ChoiceSettings
from brainfed.runtime import UserError, restore

# Refusal of what needs the data of several sites, in a study whose sites are apart.

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
    for child in variant.stages.values():
        for stage in with_parents(child):
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
        methods = ", ".join(f"{variant.name!r} of method {variant.method.name!r}" for variant in unsuited)
        raise UserError(
            f"{where}.variants: expected methods whose shared model scores a site that is left out ({possible}), found "
            f"{methods}; take {'it' if len(unsuited) == 1 else 'them'} out of `variants` and `reference`, or use "
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
    groups = {"": variant.settings, "inpainting.": inpainting.values if inpainting is not None else {}}
    for key, settings in groups.items():
        drawn = max(round(settings.get("fraction", 1.0) * len(study.sites)), 1)
        if study.secure_sums and drawn < study.least:
            raise UserError(
                f"{where}: expected variants.{variant.name}.{key}fraction to draw at least {study.least} of "
                f"{len(study.sites)} sites (study.least), as their numbers are added up unseen, found "
                f"{settings['fraction']:g}, which draws {drawn}; raise it, or set study.secure_sums: false."
            )


def _require(where: str, key: str, settings: Mapping[str, Any], allowed: Mapping[str, tuple[Any, ...]]) -> None:
    for name, values in allowed.items():
        if name in settings and settings[name] not in values:
            raise UserError(
                f"{where}: expected {key}.{name}: {' or '.join(map(str, values))} between sites that are apart, found "
                f"{settings[name]}; set it so, or leave the experiment to a simulation (remove `study`)."
            )


# The plan of a run.

ADDED_LATER = frozenset({"stratify", "block", "tested", "held_back"})
"""Split settings added later; left out of names at their default."""


@dataclass(frozen=True)
class Plan:
    """All stages of a project: kind -> name -> stage; its splits, regimes and experiments by name; models to keep."""

    project: ProjectSettings
    splits: Mapping[str, SplitSettings]
    stages: Mapping[str, Mapping[str, Stage]]
    regimes: Mapping[str, Regime]
    experiments: Mapping[str, Experiment]
    models: tuple[KeptModel, ...] = ()

    def stage(self, kind: str, name: str) -> Stage:
        """The stage of this kind and name."""
        return self.stages[kind][name]

    def variant(self, regime: str, name: str) -> Variant:
        """The variant of this name under this regime."""
        return self._variants[regime, name]

    @cached_property
    def _variants(self) -> dict[tuple[str, str], Variant]:
        everywhere = self.experiments.values()
        return {(each.regime.name, variant.name): variant for each in everywhere for variant in each.variants}

    def split_of(self, regime: str) -> SplitSettings:
        """The split under this regime."""
        return self.splits[self.regimes[regime].split]

    def group(self, name: str) -> tuple[Experiment, ...]:
        """The experiments of this name in the config: several if its split is swept."""
        return tuple(experiment for experiment in self.experiments.values() if experiment.group == name)


def make_plan(project: ProjectSettings) -> Plan:
    """The plan of a validated config, with every experiment resolved.

    Raises:
        UserError: an unknown cohort, variant, method or setting, with the nearest valid name; a name that cannot be
            part of a path.
    """
    check_names(project)
    definitions = expand({**SHIPPED_VARIANTS, **project.variants})
    for name, definition in definitions.single.items():
        # A test checks those shipped; an experiment checks those that it uses.
        if name in project.variants or name not in SHIPPED_VARIANTS:
            check_definition(project, name, definition)
        check_name("variants", name)
    experiments = _experiments(project, definitions)
    for name in experiments:
        check_name("experiments", name)
    check_between_sites(project, experiments.values())
    variants = [variant for experiment in experiments.values() for variant in experiment.variants]
    return Plan(
        project,
        {experiment.regime.split: experiment.split for experiment in experiments.values()},
        _stages(variants),
        {experiment.regime.name: experiment.regime for experiment in experiments.values()},
        experiments,
        kept_models(project, experiments.values()),
    )


def _stages(variants: Iterable[Variant]) -> dict[str, dict[str, Stage]]:
    """Kind -> name -> stage: all stages of the variants, parents first."""
    stages: dict[str, dict[str, Stage]] = {kind.name: {} for kind in registry.KINDS}
    for lowest in (stage for variant in variants for stage in variant.stages.values()):
        for stage in with_parents(lowest):
            stages[stage.kind.name][stage.name] = stage
    return stages


def _experiments(project: ProjectSettings, definitions: Definitions) -> dict[str, Experiment]:
    """Every experiment, one for each value of a swept split, then a copy of each with one repeat."""
    written = [
        _experiment(project, name, group, replace(settings, split=split), definitions)
        for group, settings in project.experiments.items()
        for name, split in expand_split(group, settings.split).items()
    ]
    by_name: dict[str, Experiment] = {}
    for experiment in [*written, *map(_quick, written)]:
        if experiment.name in by_name:
            group = by_name[experiment.name].group
            raise UserError(
                f"experiments.{group}: there is another experiment {experiment.name!r}; rename one of them."
            )
        by_name[experiment.name] = experiment
    return by_name


def _quick(experiment: Experiment) -> Experiment:
    """The same experiment with one repeat."""
    return replace(
        experiment,
        name=experiment.group + QUICK + experiment.name.removeprefix(experiment.group),
        group=experiment.group + QUICK,
        split=replace(experiment.split, repeats=1),
        default=False,
    )


def _experiment(
    project: ProjectSettings, name: str, group: str, settings: ExperimentSettings, definitions: Definitions
) -> Experiment:
    where = f"experiments.{group}"
    for cohort in settings.cohorts:
        known(cohort, project.cohorts, f"{where}.cohorts", "cohort")
    split = validate(SplitSettings, asdict(project.split) | settings.split, f"{where}.split")
    regime = _regime(project, settings, split)
    cohorts = settings.cohorts or tuple(project.cohorts)
    compared = {cohort: project.cohorts[cohort] for cohort in cohorts}
    names = _variant_names(where, settings, definitions, regime, compared.values())
    if settings.reference not in names:
        raise UserError(
            f"{where}.reference: expected one of the experiment's variants, to which the others are compared, found "
            f"{settings.reference!r}{nearest(settings.reference, names)} It has {', '.join(names)}; name one of them."
        )
    variants = tuple(resolve_variant(project, variant, definitions.single[variant], regime) for variant in names)
    _refuse_equals(where, variants)
    _refuse_few_folds(where, split, variants)
    if not project.study.sites:  # check_between_sites has its sentence.
        _refuse_idle_harmonisation(where, split, variants)
    check_figure(where, settings, variants, split, swept_values(project.experiments[group].split), compared)
    for cohort in cohorts:
        if project.cohorts[cohort].kind == "graphs":
            refuse_other_than_graphs(where, cohort, project.cohorts[cohort], split, variants, definitions)
        else:
            _refuse_other_kind(where, cohort, project.cohorts[cohort], variants)
    return Experiment(name, group, settings, cohorts, regime, split, variants, settings.default)


def _refuse_few_folds(where: str, split: SplitSettings, variants: Sequence[Variant]) -> None:
    """Refuse a split with too few folds for `choose: inner`."""
    folds = split.test_folds
    for variant in variants:
        least = least_folds(variant)
        if folds is not None and folds < least:
            more = "raise split.folds" if split.validation == "folds" else "set split.validation: folds"
            raise UserError(
                f"{where}: variant {variant.name!r} with `choose: inner` needs {least} folds or more, "
                f"one to test, one to choose by and one to learn from, found {folds}; {more}, or set `choose: none`."
            )


def least_folds(variant: Variant) -> int:
    """The fewest folds, or sites that are left out, with which a variant trains."""
    if not issubclass(variant.method.settings, ChoiceSettings):
        return 1
    settings: ChoiceSettings = restore(variant.method.settings, variant.settings)
    return settings.least_folds


def _refuse_other_kind(where: str, name: str, cohort: CohortSettings, variants: Sequence[Variant]) -> None:
    """Reject features of another kind: series give no cortical thickness, FreeSurfer's tables no correlations."""
    for variant in variants:
        if variant.stage("series") is not None and "connectivity" not in cohort.kinds:
            raise UserError(
                f"{where}: expected variants with {cohort.kind} features for cohort {name!r}, whose source is "
                f"{cohort.source!r} and which has no region series, found {variant.name!r} of method "
                f"{variant.method.name!r}, which reads them; leave it out, or name other `cohorts` in the experiment."
            )
        features = variant.stage("features")
        for kind in sorted(features.settings.kinds - cohort.kinds) if features is not None else ():
            measured = f", set cohorts.{name}.freesurfer.tables" if kind == "morphometry" else ""
            raise UserError(
                f"{where}: expected variants with {cohort.kind} features for cohort {name!r}, whose source is "
                f"{cohort.source!r}, found {variant.name!r} with {kind}; set features.kind: "
                f"{cohort.kind}{measured}, or name other `cohorts` in the experiment."
            )


def _variant_names(
    where: str,
    settings: ExperimentSettings,
    definitions: Definitions,
    regime: Regime,
    cohorts: Collection[CohortSettings],
) -> list[str]:
    """The experiment's variants, sweeps expanded; by default all shipped ones that the regime and the cohorts allow."""
    names: list[str] = []
    for variant in settings.variants or _shipped(definitions, regime, cohorts):
        single = variant in definitions.single
        names += [variant] if single else known(variant, definitions.members, f"{where}.variants", "variant")
    if twice := [variant for variant in names if names.count(variant) > 1]:
        raise UserError(f"{where}.variants: expected every variant once, found {twice[0]!r} twice; remove one.")
    return names


def _shipped(definitions: Definitions, regime: Regime, cohorts: Collection[CohortSettings]) -> list[str]:
    return [
        name
        for name, members in definitions.members.items()
        if name in SHIPPED_VARIANTS
        and name not in ON_REQUEST
        and all(
            is_allowed(definitions.single[member], regime) and _reads(definitions.single[member], cohorts)
            for member in members
        )
    ]


def _reads(definition: Mapping[str, Any], cohorts: Collection[CohortSettings]) -> bool:
    """Whether all cohorts have the kind of features that a shipped variant names; most variants name none."""
    method = METHODS[str(definition["method"])]
    if any(cohort.kind == "graphs" for cohort in cohorts):
        return takes_graphs(method)
    if "series" in method.needs:
        return all("connectivity" in cohort.kinds for cohort in cohorts)
    kind = {**FEATURES.of_method(method), **(definition.get("features") or {})}.get("kind")
    return kind is None or all(kind in cohort.kinds for cohort in cohorts)


def _refuse_idle_harmonisation(where: str, split: SplitSettings, variants: Sequence[Variant]) -> None:
    """Reject ComBat where every institution is one site: its scores would look as if it had no effect."""
    single = split.institutions == "site_groups" and all(len(sites) < 2 for sites in split.groups.values())
    if split.validation == "leave_one_site_out" or not (single or split.institutions == "sites"):
        return
    if names := [variant.name for variant in variants if variant.harmonises]:
        harmonised = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        raise UserError(
            f"{where}: expected features.harmonise: none where every institution is one site (split.institutions: "
            f"{split.institutions}), as ComBat has no second site to compare and changes nothing, found combat in "
            f"{harmonised}; set split.institutions to random, or to site_groups with several sites in a group, or "
            "features.harmonise to none."
        )


def _refuse_equals(where: str, variants: Sequence[Variant]) -> None:
    """Reject equal variants: they would train twice and count twice in Holm's correction."""
    first: dict[str, str] = {}
    for variant in variants:
        stages = [stage.name for stage in variant.stages.values()]
        equal = first.setdefault(stage_name(variant.method.name, [variant.settings, stages]), variant.name)
        if equal != variant.name:
            raise UserError(f"{where}.variants: {equal!r} and {variant.name!r} have the same settings; remove one.")


def _regime(project: ProjectSettings, settings: ExperimentSettings, split: SplitSettings) -> Regime:
    split_name = _split_name(project, split)
    protocol = settings.protocol or project.protocol
    slug = f"{split_name.rsplit('-', 1)[0]}-{protocol}" + ("-permuted" if settings.labels == "permuted" else "")
    name = stage_name(slug, [split_name, protocol, settings.labels])
    unseen = split.validation == "leave_one_site_out"
    return Regime(name, split_name, protocol, settings.labels, unseen, split.leaves_subjects_out)


def _split_name(project: ProjectSettings, split: SplitSettings) -> str:
    if split.validation == "leave_one_site_out":
        slug = "leave-one-site-out"
    else:
        kind = split.institutions.replace("_", "-")
        parts = f"{split.count}-{kind}" if split.counts_institutions else kind
        tested = "holdout" if split.validation == "holdout" else f"{split.folds}-fold"
        slug = f"{parts}-{tested}" + ("-site-label" if split.stratifies_sites else "")
    return stage_name(slug, [split_content(split), project.seed])


def split_content(split: SplitSettings) -> dict[str, Any]:
    """The settings that decide one repeat of a split; the number of repeats can grow later.

    Settings without effect under the other settings are set to their defaults. Settings that were added later are left
    out at their defaults, so that they rename no split.
    """
    usual, void = asdict(SplitSettings()), _void(split)
    content = {key: usual[key] if key in void else value for key, value in asdict(split).items() if key != "repeats"}
    return {key: value for key, value in content.items() if key not in ADDED_LATER or value != usual[key]}


def _void(split: SplitSettings) -> set[str]:
    """The settings without effect under the others."""
    of_institutions, of_validation = {"count", "share", "groups", "block"}, {"folds", "tested", "held_back"}
    unstratified = set[str]() if split.stratifies_sites else {"stratify"}
    if split.validation == "leave_one_site_out":
        return {"institutions"} | of_institutions | of_validation | unstratified
    belongs = {
        "random": {"count", "share"},
        "sites": set[str](),
        "site_groups": {"groups"},
        "consecutive": {"count", "block"},
    }
    counted = {"folds"} if split.validation == "folds" else {"tested", "held_back"}
    return of_institutions - belongs[split.institutions] | of_validation - counted | unstratified
