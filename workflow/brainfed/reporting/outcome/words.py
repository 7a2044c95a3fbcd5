"""The first screen of the page on a study between sites: question, answer, and how sure it is, from counts alone."""

from dataclasses import dataclass

import numpy as np

from brainfed.reporting.intervals import FEWEST
from brainfed.reporting.outcome.outline import OutcomeOutline
from brainfed.reporting.outcome.results import ExperimentResult, VariantResult
from brainfed.reporting.outcome.tables import by_class
from brainfed.reporting.rounding import rounded
from brainfed.reporting.text.first_screen import NUMERALS, Fact, FirstScreen, question

MOST_NAMED = 8
"""Sites that are named with the number of their people."""


@dataclass(frozen=True)
class Chosen:
    """The variants that an answer names.

    Attributes:
        best: the federated variant with the highest balanced accuracy; without one, the best of all.
        federated: number of federated variants with a balanced accuracy.
        alone: the same model trained at each site alone, or the best variant that trains so; None without one.
        same: whether it is the same model.
    """

    best: VariantResult
    federated: int
    alone: VariantResult | None
    same: bool


def choose(result: ExperimentResult) -> Chosen | None:
    """The variants of the answer; None if none has a balanced accuracy."""
    scored = [one for one in result.variants if np.isfinite(one.score.mean)]
    if not scored:
        return None
    federated = [one for one in scored if one.variant.family == "federated" and not one.variant.is_control]
    best = _best(federated or scored)
    twin = best.variant.twin("alone")
    same = next((one for one in scored if one.variant.name == twin.name), None)
    alone = [one for one in scored if one.variant.trains_alone and one.variant.family != "baseline" and one is not best]
    other = same or (_best(alone) if alone else None)
    return Chosen(best, len(federated), other, same is not None and not twin.other_model)


def outcome_screen(outline: OutcomeOutline, result: ExperimentResult) -> FirstScreen:
    """The first screen of an experiment."""
    asked = question(outline.words, outline.kind, len(outline.sites), unseen=result.experiment.unseen)
    chosen = choose(result)
    facts = [_whom(outline, result), _compared(outline, result)]
    if chosen is None:
        return FirstScreen(asked, _no_answer(outline, result), tuple(facts))
    facts += [_sure(result, chosen, outline.noun), _elsewhere(chosen), *_use(outline, chosen.best)]
    return FirstScreen(asked, _answer(result, chosen, outline.words.count), tuple(facts))


def _best(results: list[VariantResult]) -> VariantResult:
    return max(results, key=lambda one: one.score.mean)


def _answer(result: ExperimentResult, chosen: Chosen, classes: int) -> str:
    title = chosen.best.variant.title
    if result.experiment.unseen:
        said = f"Trained by the other sites (federated) and tested at one that took no part, {title} has a balanced "
        said += "accuracy of"
    elif chosen.federated:
        said = f"Trained by all sites without sharing them (federated), {title} has a balanced accuracy of"
    else:
        said = f"No federated method has a score; {title} has the highest balanced accuracy,"
    beside = ""
    if chosen.alone is not None:
        model = "" if chosen.same else f"{chosen.alone.variant.title}, trained by "
        beside = f"; {model}each site alone{'' if chosen.same else ','} {chosen.alone.score}"
    return f"{said} {chosen.best.score}{beside}. Guessing has {rounded(1 / classes, 2)}, and 1 is perfect."


def _no_answer(outline: OutcomeOutline, result: ExperimentResult) -> str:
    if result.tested is None:
        return (
            f"There is no answer: no site sent a row, as none has a fold with {outline.fewest} tested {outline.noun} "
            "or more."
        )
    return (
        f"There is no answer: the tested {outline.noun} of all sites lack a class, and without it a balanced accuracy "
        "has no value."
    )


def _whom(outline: OutcomeOutline, result: ExperimentResult) -> Fact:
    words = outline.words
    total = {code: sum(site.people[code] for site in result.sites) for code in words.shown}
    held = {site.name: sum(site.people.values()) for site in result.sites}
    each = ", ".join(f"{name} {count:,}" for name, count in held.items())
    if len(held) > MOST_NAMED:
        each = f"{min(held.values()):,} to {max(held.values()):,} at each"
    noun = f"simulated {outline.noun}" if outline.simulated else outline.noun
    many = f"{sum(total.values()):,} tested {noun} at {len(result.sites)} {words.site}s"
    said = f"{many} ({by_class(total, words)}): {each}."
    return Fact("On whom", f"{said} {result.tested.sentence}" if result.tested else said)


def _compared(outline: OutcomeOutline, result: ExperimentResult) -> Fact:
    titles = [one.variant.title for one in result.variants]
    noun = "method" if len(titles) == 1 else "methods"
    numeral = NUMERALS[len(titles)] if len(titles) < len(NUMERALS) else str(len(titles))
    where = f"at the same {len(outline.sites)} {outline.words.site}s and on the same {outline.noun}"
    return Fact("What was compared", f"{numeral.capitalize()} {noun} {where}: {'; '.join(titles)}.")


def _sure(result: ExperimentResult, chosen: Chosen, noun: str) -> Fact:
    score, said = chosen.best.score, []
    if result.experiment.unseen:
        said.append(
            f"A test is a whole site, so there is no interval for other {noun} of these sites; that over sites is "
            "below."
        )
    elif score.known and not score.few:
        said.append(f"Brackets hold 95 % intervals, which are for other {noun} of these sites.")
    else:
        tests = f"{score.runs} test{'s are' if score.runs != 1 else ' is'}"
        said.append(f"There is no interval over tests, for other {noun} of these sites: {tests} too few.")
    if chosen.alone is not None:
        difference = result.difference(chosen.best, chosen.alone).as_difference()
        kind = "Federated" if chosen.federated else chosen.best.variant.title
        said.append(f"{kind} minus alone: {difference}.")
    if chosen.federated > 1:
        said.append(
            f"{chosen.best.variant.title} scored highest of {chosen.federated} federated methods on the same tests, so "
            "its score is a little too high."
        )
    return Fact("How sure", " ".join(said))


def _elsewhere(chosen: Chosen) -> Fact:
    """How far the sites differ, and what that says of others."""
    best, across = chosen.best, chosen.best.across
    held = {site: value for site, value in best.at_sites.items() if np.isfinite(value)}
    if len(held) < 2:
        return Fact(
            "At other sites", "Fewer than two sites have a balanced accuracy, so nothing shows how sites differ."
        )
    low, high = min(held, key=lambda site: held[site]), max(held, key=lambda site: held[site])
    ends = rounded(held[low], 2), rounded(held[high], 2)
    first = (
        f"{best.variant.title} has {ends[0]} at every site."
        if ends[0] == ends[1]
        else f"{best.variant.title} has {ends[0]} at {low} and {ends[1]} at {high}, its lowest and highest."
    )
    said = [
        f"{first} The mean of the sites is {rounded(across.mean, 2)}, with a 95 % interval over sites of "
        f"{rounded(across.low, 2)} to {rounded(across.high, 2)}."
    ]
    if len(held) < FEWEST:
        said.append(
            f"{NUMERALS[len(held)].capitalize()} sites are too few to say what another site would reach: how much "
            "sites differ is hardly known."
        )
    return Fact("At other sites", " ".join(said))


def _use(outline: OutcomeOutline, best: VariantResult) -> list[Fact]:
    if outline.words.count > 2:
        return []
    finds, clears = (f"{rounded(100 * best.values[name].mean, 0)}\u00a0%" for name in ("recall", "specificity"))
    many = outline.words.many
    return [
        Fact(
            "How useful",
            f"At its usual cut-off {best.variant.title} recognises {finds} of the {many[1]} and {clears} of the "
            f"{many[0]}.",
        )
    ]
