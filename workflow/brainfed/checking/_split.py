"""Institutions and folds, drawn as the workflow will draw them, from tables and headers."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from brainfed.checking._finding import Finding, Severity, named, note, refusals
from brainfed.checking._people import Checked, Person
from brainfed.cohort import Target, class_words
from brainfed.cohort.settings import SplitSettings, institution_of_site
from brainfed.cohort.splits import draw_institutions, draw_public, require_agreement, split
from brainfed.configuration import QUICK, RELEASED
from brainfed.configuration.planning import Experiment, Plan, least_folds
from brainfed.configuration.stages import Stage
from brainfed.evaluation import sd_of_chance
from brainfed.graphs import require_connections
from brainfed.runtime import Streams, UserError, resolve

FEW_PEOPLE, FEW_OF_ONE = 50, 10
"""Numbers of tested people, and of one class, below which the reach of chance is noted."""


@dataclass(frozen=True)
class SplitCheck:
    """The splits of the people and experiments of one cohort; `study` are the sites of a study, in order."""

    checked: Checked
    experiments: Sequence[Experiment]
    seed: int = 0
    classes: Sequence[str] = ()
    target: Target = "diagnosis"
    study: Sequence[str] = ()

    def splits(self) -> Iterator[Finding]:
        """Draw every split of the experiments; one that only a target uses does not stop a plain run."""
        of_split: dict[str, list[Experiment]] = {}
        for experiment in self.experiments:
            of_split.setdefault(experiment.regime.split, []).append(experiment)
        for asking in of_split.values():
            settings = max((experiment.split for experiment in asking), key=lambda each: each.repeats)
            severity = _severity(asking)
            concerns = "" if severity == "stops" else f" This concerns `snakemake {' '.join(_targets(asking))}` alone."
            for sentence in self._mistakes(settings):
                yield Finding(severity, "", sentence + concerns)

    def public(self) -> Iterator[Finding]:
        """Draw the public subjects of every split and ratio, up to the first repeat that lacks some."""
        asking: dict[str, list[tuple[Experiment, Stage]]] = {}
        for experiment in self.experiments:
            stages = {stage.name: stage for variant in experiment.variants if (stage := variant.stage("public"))}
            for name, stage in stages.items():
                asking.setdefault(name, []).append((experiment, stage))
        included, participants = self._tables(self.checked.people, self.checked.sites)
        listed = participants.dropna(subset=["subject"])
        for reading in asking.values():
            longest, stage = max(reading, key=lambda each: each[0].split.repeats)
            try:
                for repeat in range(longest.split.repeats):
                    streams = Streams(self.seed, repeat)
                    try:
                        drawn = split(included, participants, longest.split, streams, self.target, self.classes)
                    except UserError:  # `splits` has its sentence.
                        break
                    draw_public(drawn, listed, included, stage.settings, streams, self.target, self.classes)
            except UserError as error:
                readers = [experiment for experiment, _ in reading]
                yield Finding(_severity(readers), "", f"{', '.join(_targets(readers))}: {error}")

    def copies(self) -> list[Finding]:
        """Copies of one scan with different labels."""
        scans = [(person.subject, person.content, person.diagnosis) for person in self.checked.people]
        return refusals("", require_agreement, scans, self.target)

    def harmonisation(self) -> Iterator[Finding]:
        """ComBat without two sites in an institution, as sites are left out in turn or the cohort has one."""
        one_site = len({person.site for person in self.checked.people}) == 1
        for experiment in self.experiments:
            left_out = experiment.split.validation == "leave_one_site_out"
            variants = [variant.name for variant in experiment.variants if variant.harmonises]
            if variants and (left_out or one_site):
                reason, remedy = "every subject is of one site", ""
                if not one_site:
                    reason = "every institution is one site and harmonises by itself"
                    remedy = "use split.validation: folds with split.institutions random or site_groups, or "
                yield note(
                    f"{experiment.name}: features.harmonise changes nothing for {named(variants)}, as {reason}; "
                    f"{remedy}set features.harmonise to none."
                )

    def few(self) -> Iterator[Finding]:
        """A note where so few people are tested that a method without knowledge reaches high and low AUCs."""
        words = class_words(self.target, self.classes)
        if words.count != 2 or self.target == "class":
            return
        of_class = [sum(person.diagnosis == code for person in self.checked.people) for code in (0, 1)]
        noted: set[str] = set()
        for settings in (experiment.split for experiment in self.experiments if experiment.default):
            part = settings.tested if settings.validation == "holdout" else 1.0
            if settings.share is not None and settings.draws_institutions:
                part *= settings.share * settings.count
            controls, patients = (round(part * count) for count in of_class)
            fewest, tested = min(controls, patients), controls + patients
            if fewest and (tested < FEW_PEOPLE or fewest < FEW_OF_ONE):
                reach = min(1.96 * sd_of_chance(controls, patients), 0.5)
                noted.add(
                    f"{tested} people are tested, {controls} {words.many[0]} and {patients} {words.many[1]}: "
                    f"guessing alone gives AUCs from {0.5 - reach:.2f} to {0.5 + reach:.2f} on as many."
                )
        yield from map(note, sorted(noted))

    def sites_left_out(self) -> Iterator[Finding]:
        """Variants that choose on further folds need sites enough to leave out."""
        sites = len({person.site for person in self.checked.people})
        for experiment in self.experiments:
            short = [variant for variant in experiment.variants if sites < least_folds(variant)]
            if experiment.split.validation == "leave_one_site_out" and short and not experiment.group.endswith(QUICK):
                sentence = (
                    f"{experiment.name}: `choose: inner` of {named([variant.name for variant in short])} needs "
                    f"{least_folds(short[0])} sites to leave out, found {sites}; set `choose: none`, or another "
                    "split.validation."
                )
                yield Finding(_severity([experiment]), "", sentence)

    def released(self, plan: Plan) -> list[Finding]:
        """What `brainfed join` refuses of one site of a study: it has too few subjects for what the study releases."""
        study, tables = plan.project.study, self._tables(self.checked.people, self.checked.sites)
        labelled = sum(person.diagnosis is not None for person in self.checked.people)
        drawn, folds = dict[tuple[str, int], Any](), None
        with suppress(UserError):  # `splits` has its sentence; the number of subjects is known all the same.
            for experiment in (each for each in plan.experiments.values() if each.default):
                for repeat in range(experiment.repeats):
                    streams, name = Streams(plan.project.seed, repeat), experiment.regime.split
                    people = split(*tables, experiment.split, streams, self.target, self.classes, study.ordered)
                    drawn[name, repeat] = people["fold"].to_numpy()
            folds = drawn
        return refusals("", resolve(RELEASED), plan, labelled, folds)

    def connectomes(self) -> Iterator[Finding]:
        """Variants whose graphs would have no edge; a number of regions that is not known is 0."""
        reading = [each for each in self.experiments if any(variant.stage("connectomes") for variant in each.variants)]
        if not reading or self.checked.regions == 0:
            return
        try:
            require_connections(self.checked.regions, ", ".join(experiment.name for experiment in reading))
        except UserError as error:
            yield Finding(_severity(reading), "", str(error))

    def _mistakes(self, settings: SplitSettings) -> list[str]:
        """Why a split cannot be drawn, institution by institution where they are named."""
        sentences: list[str] = []
        try:
            for members, known, alone in _institutions(self.checked.people, self.checked.sites, settings):
                repeat, sentence = self._mistake(members, known, alone)
                if sentence and alone.institutions == "random" and alone.validation == "folds":
                    fewer = [replace(alone, folds=folds) for folds in range(alone.folds - 1, 1, -1)]
                    works = next((trial.folds for trial in fewer if not self._mistake(members, known, trial)[1]), None)
                    sentence += f" This is repeat {repeat}." if alone.repeats > 1 else ""
                    sentence += f" `folds: {works}` works." if works else ""
                sentences += [sentence] if sentence else []
        except UserError as error:
            return [str(error)]
        return sentences

    def _mistake(self, members: Sequence[Person], known: Sequence[str], settings: SplitSettings) -> tuple[int, str]:
        """The first repeat that cannot be drawn, and why; an empty sentence where all can be."""
        tables = self._tables(members, known)
        for repeat in range(settings.repeats if settings.institutions == "random" else 1):
            try:
                draw_institutions(*tables, settings, Streams(self.seed, repeat), self.target, self.classes, self.study)
            except UserError as error:
                return repeat, str(error)
        return 0, ""

    def _tables(self, people: Sequence[Person], sites: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """What the jobs read as `included` and `participants`; sites without a subject have a row without a name."""
        stay = pd.DataFrame(map(vars, people), columns=["subject", "site", "diagnosis", "content"])
        stay = stay.sort_values("subject")
        # Draws depend on the names of groups: as the jobs name them, by their first subject.
        stay["group"] = stay.groupby("content")["subject"].transform("first")
        leave = pd.DataFrame(map(vars, self.checked.leavers), columns=["subject", "site", "diagnosis", "reason"])
        seen = pd.concat(
            [stay.assign(included=True, reason=""), leave.assign(included=False, group="")], ignore_index=True
        )
        included = seen[["subject", "included", "reason"]].assign(twin_group=seen["group"])
        participants = seen[["subject", "site"]].assign(diagnosis=seen["diagnosis"].astype("Int8"))
        others = pd.DataFrame({"site": sorted(set(sites) - set(seen["site"]))})
        return included, pd.concat([participants, others], ignore_index=True)


def _severity(asking: Sequence[Experiment]) -> Severity:
    """A mistake stops a plain run if one of the experiments that it concerns is part of it."""
    return "stops" if any(experiment.default for experiment in asking) else "notes"


def _targets(asking: Sequence[Experiment]) -> list[str]:
    """What `snakemake` is asked for to run these experiments, each once."""
    return list(dict.fromkeys(experiment.group.removesuffix(QUICK) for experiment in asking))


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
            own_sites = [site for site in sites if owner.get(site) == group]
            members = [person for person in people if owner[person.site] == group]
            yield members, own_sites, replace(settings, groups={group: tuple(own_sites)})
