"""Institutions and folds, drawn as the workflow will draw them, from tables and headers."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import pandas as pd

from brainfed.checking.finding import Finding, named
from brainfed.checking.people import Checked, Leaver, Person
from brainfed.cohort.class_words import class_words
from brainfed.cohort.settings.classes import Target
from brainfed.cohort.settings.splits import SplitSettings, institution_of_site
from brainfed.cohort.splits.copies import require_agreement
from brainfed.cohort.splits.institutions import draw_institutions, split
from brainfed.cohort.splits.public import draw_public
from brainfed.configuration.names import TWIN
from brainfed.configuration.planning.experiments import Experiment
from brainfed.configuration.planning.inner_folds import least_folds
from brainfed.configuration.planning.plan import Plan
from brainfed.configuration.stages.stage import Stage
from brainfed.deployment.attendance.released import Released, Stated, released_of, require_accepted
from brainfed.evaluation.metrics import sd_of_chance
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams

FEW_PEOPLE, FEW_OF_ONE = 50, 10
"""Numbers of tested people, and of one class, below which the reach of chance is noted."""


def check_splits(
    checked: Checked,
    experiments: Sequence[Experiment],
    seed: int,
    place: str,
    classes: Sequence[str] = (),
    target: Target = "diagnosis",
    study: Sequence[str] = (),
) -> list[Finding]:
    """Draw every split of the experiments; one that only a target uses does not stop a plain run.

    `classes` names the diagnoses, empty: patients and controls. `target` is what the cohort learns. `study` has the
    sites of a study between sites, in order.
    """
    findings: list[Finding] = []
    for name in dict.fromkeys(experiment.regime.split for experiment in experiments):
        asking = [experiment for experiment in experiments if experiment.regime.split == name]
        settings = max((experiment.split for experiment in asking), key=lambda one: one.repeats)
        usual = any(experiment.default for experiment in asking)
        targets = dict.fromkeys(experiment.group.removesuffix(TWIN) for experiment in asking)
        concerns = "" if usual else f" This concerns `snakemake {' '.join(targets)}` alone."
        findings += [
            Finding("stops" if usual else "notes", place, sentence + concerns)
            for sentence in _mistakes(checked, settings, seed, target, classes, study)
        ]
    return findings


def check_public(
    checked: Checked,
    experiments: Sequence[Experiment],
    seed: int,
    place: str,
    classes: Sequence[str] = (),
    target: Target = "diagnosis",
) -> Iterator[Finding]:
    """Draw the public subjects of every split and ratio, up to the first repeat that lacks some."""
    asking: dict[str, list[tuple[Experiment, Stage]]] = {}
    for experiment in experiments:
        found = {stage.name: stage for one in experiment.variants if (stage := one.stage("public"))}
        for name, stage in found.items():
            asking.setdefault(name, []).append((experiment, stage))
    included, participants = _tables(checked.people, checked.leavers, checked.sites)
    listed = participants.dropna(subset=["subject"])
    for reading in asking.values():
        longest, stage = max(reading, key=lambda one: one[0].split.repeats)
        try:
            for repeat in range(longest.split.repeats):
                streams = Streams(seed, repeat)
                try:
                    drawn = split(included, participants, longest.split, streams, target, classes)
                except UserError:  # check_splits has its sentence.
                    break
                draw_public(drawn, listed, included, stage.settings, streams, target, classes)
        except UserError as error:
            readers = dict.fromkeys(experiment.group.removesuffix(TWIN) for experiment, _ in reading)
            usual = any(experiment.default for experiment, _ in reading)
            yield Finding("stops" if usual else "notes", place, f"{', '.join(readers)}: {error}")


def check_copies(checked: Checked, place: str, target: Target) -> Iterator[Finding]:
    """Copies of one scan with different labels."""
    try:
        require_agreement(((one.subject, one.twin, one.diagnosis) for one in checked.people), target)
    except UserError as error:
        yield Finding("stops", place, str(error))


def check_harmonisation(checked: Checked, experiments: Sequence[Experiment], place: str) -> Iterator[Finding]:
    """ComBat without two sites in an institution, as sites are left out in turn or the cohort has one."""
    one_site = bool(checked.people) and len({person.site for person in checked.people}) == 1
    for experiment in experiments:
        left_out = experiment.split.validation == "leave_one_site_out"
        variants = [one.name for one in experiment.variants if one.harmonises]
        if variants and (left_out or one_site):
            reason, remedy = (
                ("every subject is of one site", "")
                if one_site
                else (
                    "every institution is one site and harmonises by itself",
                    "use split.validation: folds with split.institutions random or site_groups, or ",
                )
            )
            yield Finding(
                "notes",
                place,
                f"{experiment.name}: features.harmonise changes nothing for {named(variants)}, as {reason}; {remedy}"
                "set features.harmonise to none.",
            )


def check_few(
    checked: Checked, experiments: Sequence[Experiment], place: str, classes: Sequence[str], target: Target
) -> Iterator[Finding]:
    """A note where so few people are tested that a method without knowledge reaches high and low AUCs."""
    words = class_words(target, classes)
    if words.count != 2 or target == "class":
        return
    held = [sum(person.diagnosis == code for person in checked.people) for code in (0, 1)]
    noted: set[str] = set()
    for settings in (experiment.split for experiment in experiments if experiment.default):
        part = settings.tested if settings.validation == "holdout" else 1.0
        if settings.share is not None and settings.draws_institutions:
            part *= settings.share * settings.count
        controls, patients = (round(part * count) for count in held)
        if not min(controls, patients) or (controls + patients >= FEW_PEOPLE and min(controls, patients) >= FEW_OF_ONE):
            continue
        reach = min(1.96 * sd_of_chance(controls, patients), 0.5)
        noted.add(
            f"{controls + patients} people are tested, {controls} {words.many[0]} and {patients} {words.many[1]}: "
            f"guessing alone gives AUCs from {0.5 - reach:.2f} to {0.5 + reach:.2f} on as many."
        )
    for sentence in sorted(noted):
        yield Finding("notes", place, sentence)


def check_sites_left_out(checked: Checked, experiments: Sequence[Experiment], place: str) -> Iterator[Finding]:
    """Variants that choose on further folds need sites enough to leave out."""
    sites = len({person.site for person in checked.people})
    for experiment in experiments:
        short = [one for one in experiment.variants if sites < least_folds(one)]
        if experiment.split.validation == "leave_one_site_out" and short and not experiment.group.endswith(TWIN):
            yield Finding(
                "stops" if experiment.default else "notes",
                place,
                f"{experiment.name}: `choose: inner` of {named([one.name for one in short])} needs "
                f"{least_folds(short[0])} sites to leave out, found {sites}; set `choose: none`, or another "
                "split.validation.",
            )


def check_released(
    checked: Checked, plan: Plan, place: str, classes: Sequence[str] = (), target: Target = "diagnosis"
) -> Iterator[Finding]:
    """What `brainfed join` refuses of one site of a study: it has too few subjects for what the study releases."""
    study, seed = plan.project.study, plan.project.seed
    tables = _tables(checked.people, checked.leavers, checked.sites)
    drawn = dict[tuple[str, int], pd.DataFrame]()
    try:
        for experiment in (each for each in plan.experiments.values() if each.default):
            for repeat in range(experiment.repeats):
                streams, name = Streams(seed, repeat), experiment.regime.split
                drawn[name, repeat] = split(*tables, experiment.split, streams, target, classes, study.ordered)
    except UserError:  # check_splits has its sentence; the number of subjects is known all the same.
        released = Released(sum(person.diagnosis is not None for person in checked.people))
    else:
        released = released_of(plan, {one: folds["fold"].to_numpy() for one, folds in drawn.items()})
    try:
        require_accepted(f"site {study.site!r}", asdict(Stated.of(plan)), released.words())
    except UserError as error:
        yield Finding("stops", place, str(error))


def _mistakes(
    checked: Checked,
    settings: SplitSettings,
    seed: int,
    target: Target,
    classes: Sequence[str],
    study: Sequence[str],
) -> list[str]:
    def mistake(members: Sequence[Person], known: Sequence[str], settings: SplitSettings) -> tuple[int, str]:
        """The first repeat that cannot be drawn, and why; an empty sentence where all can be."""
        tables = _tables(members, checked.leavers, known)
        for repeat in range(settings.repeats if settings.institutions == "random" else 1):
            try:
                draw_institutions(*tables, settings, Streams(seed, repeat), target, classes, study)
            except UserError as error:
                return repeat, str(error)
        return 0, ""

    sentences: list[str] = []
    try:
        for members, known, alone in _institutions(checked.people, checked.sites, settings):
            repeat, sentence = mistake(members, known, alone)
            if sentence and alone.institutions == "random" and alone.validation == "folds":
                fewer = range(alone.folds - 1, 1, -1)
                works = next((one for one in fewer if not mistake(members, known, replace(alone, folds=one))[1]), None)
                sentence += f" This is repeat {repeat}." if alone.repeats > 1 else ""
                sentence += f" `folds: {works}` works." if works else ""
            sentences += [sentence] if sentence else []
    except UserError as error:
        return [str(error)]
    return sentences


def _tables(
    people: Sequence[Person], leavers: Sequence[Leaver], sites: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the jobs read as `included` and `participants`; sites without a subject have a row without a name."""
    stay = pd.DataFrame(map(vars, people), columns=["subject", "site", "diagnosis", "twin"]).sort_values("subject")
    # Draws depend on the names of groups: as the jobs name them, by their first subject.
    stay["twin"] = stay.groupby("twin")["subject"].transform("first")
    leave = pd.DataFrame(map(vars, leavers), columns=["subject", "site", "diagnosis", "reason"])
    seen = pd.concat([stay.assign(included=True, reason=""), leave.assign(included=False, twin="")], ignore_index=True)
    included = seen[["subject", "included", "reason"]].assign(twin_group=seen["twin"])
    participants = seen[["subject", "site"]].assign(diagnosis=seen["diagnosis"].astype("Int8"))
    others = pd.DataFrame({"site": sorted(set(sites) - set(seen["site"]))})
    return included, pd.concat([participants, others], ignore_index=True)


Part = tuple[Sequence[Person], Sequence[str], SplitSettings]


def _institutions(people: Sequence[Person], sites: Sequence[str], settings: SplitSettings) -> Iterator[Part]:
    """Named institutions one by one, so that mistakes of each are found; those that are drawn all together."""
    if settings.validation == "leave_one_site_out" or settings.counts_institutions or not people:
        yield people, sites, settings
    elif settings.institutions == "sites":
        for site in sorted({person.site for person in people}):
            yield [person for person in people if person.site == site], [site], settings
    else:
        owner = institution_of_site(settings.groups, sites, {person.site for person in people})
        for group in sorted({owner[person.site] for person in people}):
            held = [site for site in sites if owner.get(site) == group]
            members = [person for person in people if owner[person.site] == group]
            yield members, held, replace(settings, groups={group: tuple(held)})
