"""The section of the page on one experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainfed.cohort.classes import ClassWords
from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.panels.known import RESULTS, Known, Panel, ShownPanel, applicable, read_known, situation
from brainfed.reporting.pictures import Picture
from brainfed.reporting.text.answer import (
    Answer,
    beside_sentence,
    listed,
    null_sentences,
    null_verdict,
    sentences,
    verdict,
)
from brainfed.reporting.text.first_screen import FirstScreen, TestedPeople, first_screen


@dataclass(frozen=True)
class ExperimentSection:
    """One experiment of one cohort: what the frame of the page prints, and the panels that apply.

    Attributes:
        key: unique on the page.
        outline: outline of the experiment.
        setting: institutions, folds and repeats in one line.
        protocol: permitted use of test subjects.
        verdict: the answer in one line.
        first: the first screen, for an experiment without a figure of its own; None without an answer.
        sentences: the numbers behind it.
        answer: source of verdict and sentences.
        runs: number of test folds over all repeats.
        headline_note: further rows of the figure of the answer; empty without any.
        tested: number of subjects behind a score.
        pictures: pictures by name.
        panels: that apply, in the order of the page at each place.
    """

    key: str
    outline: ExperimentOutline
    setting: str
    protocol: str
    verdict: str
    first: FirstScreen | None
    sentences: list[str]
    answer: Answer
    runs: int
    headline_note: str
    tested: TestedPeople
    pictures: Mapping[str, Picture]
    panels: list[ShownPanel]

    def at(self, *places: str) -> list[ShownPanel]:
        """The panels at these places, in the order of the places."""
        return [shown for place in places for shown in self.panels if shown.panel.place == place]

    @property
    def results(self) -> list[ShownPanel]:
        """The panels of the section Results."""
        return self.at(*RESULTS)

    @property
    def own_picture(self) -> Picture | None:
        """The figure that repeats one of a paper; a group's first experiment has it."""
        return self.pictures.get(self.outline.figure)

    @property
    def run(self) -> str:
        """What a run of the scores is."""
        return "one fold of one repeat" if self.tested.folds else "the test of one repeat"

    @property
    def is_control(self) -> bool:
        """Whether the diagnoses are shuffled."""
        return self.outline.labels == "permuted"


def experiment_section(
    cohort: CohortOutline,
    outline: ExperimentOutline,
    captions: Mapping[str, str],
    panels: Sequence[Panel],
    site: str = "",
) -> ExperimentSection:
    """Read one experiment's tables, embed its figures, and find the panels that apply.

    Args:
        cohort: outline of its cohort.
        outline: the experiment.
        captions: figure -> its caption.
        panels: all panels, those that any method may have and those of the families.
        site: of a study between sites, the one whose report it is.
    """
    known = read_known(cohort, outline, captions)
    null = known.null
    asked = null is None and not known.finding
    return ExperimentSection(
        key=f"{cohort.name}-{outline.name}",
        outline=outline,
        setting=_setting(outline, known.words, known.institutions, known.runs),
        protocol=_protocol(outline, known.words),
        verdict=(known.finding or verdict(known.answer)) if null is None else null_verdict(null),
        first=first_screen(known.answer, known.words, situation(known, site)) if asked else None,
        sentences=_sentences(known) if null is None else null_sentences(null),
        answer=known.answer,
        runs=known.runs,
        headline_note=_headline_note(known),
        tested=known.tested,
        pictures=known.pictures,
        panels=applicable(panels, known),
    )


def _sentences(known: Known) -> list[str]:
    """The numbers behind the verdict, and below them those of methods that stand beside others on every page."""
    federation = [] if known.finding else sentences(known.answer, known.words.unread)
    return [*federation, *(beside_sentence(one) for one in known.beside)]


def _headline_note(known: Known) -> str:
    titles = [one.variant.title for one in known.beside]
    if not titles:
        return ""
    verb, pronoun, owner = (
        ("are", "them", "their papers compare") if len(titles) > 1 else ("is", "it", "its paper compares")
    )
    return f"{listed(titles, 'and')} {verb} shown beside the methods that {owner} {pronoun} with."


def _protocol(outline: ExperimentOutline, words: ClassWords) -> str:
    """Permitted use of test subjects, and what population graphs do with them where a variant has one."""
    population, tested = any(variant.stages.get("graph") for variant in outline.variants), f"test {words.subjects}"
    if outline.protocol == "transductive":
        read = "are in the population graph and in" if population else "may be in"
        return (
            f"Transductive: the features of {tested} {read} label-free fits, their labels are used by nothing but the "
            "score."
        )
    if population:
        return (
            f"Inductive: {tested} are in no fit; each attaches alone to the graph of the training {words.subjects}, "
            "and no other prediction depends on it."
        )
    return f"Inductive: {tested} are in no fit, and no other prediction depends on them."


def _setting(outline: ExperimentOutline, words: ClassWords, institutions: int, folds: int) -> str:
    repeats = f"{outline.repeats} repeat{'s' if outline.repeats > 1 else ''}"
    if outline.split["validation"] == "leave_one_site_out":
        return f"every one of {institutions} {words.site}s tested once, unseen; {repeats}"
    counted = f"{institutions} institution{'s' if institutions > 1 else ''}"
    groups = f"groups of {words.site}s" if institutions > 1 else f"a group of {words.site}s"
    drawn = {
        "random": f"{counted} drawn at random",
        "sites": f"{counted}, one a {words.site}",
        "site_groups": f"{counted}, {groups}",
        "consecutive": f"{counted} of consecutive {words.subjects}, the rest at random",
    }[outline.split["institutions"]]
    if outline.split["validation"] == "holdout":
        tested, held = (f"{100 * outline.split[key]:g} %" for key in ("tested", "held_back"))
        beside = f", {held} held back" if outline.split["held_back"] else ""
        return f"{drawn}; {tested} of each tested{beside}, once a repeat; {repeats}"
    by_site = outline.split["stratify"] == "site_label" and outline.split["institutions"] != "sites"
    stratified = f" stratified by {words.site} and {words.target}" if by_site else ""
    return f"{drawn}; {outline.split['folds']}-fold cross-validation{stratified}; {repeats} ({folds} test folds)"
