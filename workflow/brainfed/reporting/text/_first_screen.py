"""The first screen of an experiment, and sentences on its data: their quality, how many are tested, who is poisoned."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from brainfed.cohort import ClassWords
from brainfed.cohort.settings import FlagSettings
from brainfed.evaluation import sd_of_chance
from brainfed.federation import share_of
from brainfed.reporting import Interval, ShownVariant, counted, rounded, signed, significant_digits, used
from brainfed.reporting.text._answer import NO_IMAGING, SIDES, Answer, Comparison, listed

FALSE_DISCOVERY_RATE = 0.05
FEW_CORRELATED = 1.0
"""Percent of the connections below which connectivity hardly correlates with motion."""
MEASURED = {
    "mean_fd": "motion (mean FD)",
    "tr": "repetition time",
    "tsnr": "temporal signal-to-noise ratio",
    "timepoints": "scan length",
    "coverage": "coverage of regions",
    "typicality": "likeness of connectivity",
}
MEASURED_OF_STRUCTURE = {"mean_fd": MEASURED["mean_fd"]}
"""The same for a cohort of FreeSurfer measures."""


def quality_words(
    people: pd.DataFrame, connections: pd.DataFrame, flag: FlagSettings, *, morphometry: bool = False
) -> list[str]:
    """Sentences on motion in connectivity, odd scans and missing measures.

    Args:
        people: the participants with their measures.
        connections: table of `imaging._quality`.
        flag: limits beyond which a subject is listed.
        morphometry: whether the data are FreeSurfer measures, which have no time and no connectivity.
    """
    kept = used(people)
    asked = MEASURED_OF_STRUCTURE if morphometry else MEASURED
    return list(filter(None, [_qc_fc(connections), _unlike(kept, flag), _unknown(kept, asked)]))


def _qc_fc(connections: pd.DataFrame) -> str:
    known = connections.dropna(subset=["r", "p"])
    if known.empty:
        return ""
    share, within = _significant(known["p"]), _significant(connections["within_p"].dropna())
    rest = (
        f"at a false discovery rate of 5 %; median |r| {rounded(known['r'].abs().median())}; {within} % when every "
        "subject is held against its own site alone"
    )
    if share == "0":
        return f"Connectivity does not go with motion (QC-FC): none of {len(known):,} connections do, {rest}."
    hardly = " hardly" if float(share) < FEW_CORRELATED else ""
    return (
        f"Connectivity{hardly} goes with motion (QC-FC): {share} % of {len(known):,} connections correlate with mean "
        f"FD over subjects, {rest}."
    )


def _significant(p: pd.Series) -> str:
    """Percent of the connections at a false discovery rate of 5 % (Benjamini & Hochberg)."""
    if p.empty:
        return "0"
    share = 100 * float((stats.false_discovery_control(p) <= FALSE_DISCOVERY_RATE).mean())
    return rounded(share, 0) if share >= 1 or share == 0 else significant_digits(share, 1)


def _unlike(kept: pd.DataFrame, flag: FlagSettings) -> str:
    if kept["typicality_z"].isna().all():
        return ""
    odd = int((kept["typicality_z"] < -flag.unlike).sum())
    return (
        f"{odd or 'No'} subject{'s have' if odd != 1 else ' has'} connectivity unlike the others\u2019 (robust z below "
        f"\u2212{flag.unlike:g}){'; listed, not left out' if odd else ''}."
    )


def _unknown(kept: pd.DataFrame, asked: dict[str, str]) -> str:
    unknown = {title: int(kept[column].isna().sum()) for column, title in asked.items()}
    said = [title for title, count in unknown.items() if count == len(kept)]
    said += [f"{title} for {counted(count, 'subject')}" for title, count in unknown.items() if 0 < count < len(kept)]
    return f"Not measured: {', '.join(said)}." if said else ""


# Number of subjects behind a score: tested in a fold, and in an institution of a fold.


@dataclass(frozen=True)
class TestedPeople:
    """Numbers of tested people in a fold, and in one institution of a fold, each as (median, fewest, most).

    Attributes:
        runs: folds of all repeats.
        folds: whether a repeat has several.
    """

    fold: tuple[int, int, int]
    institution: tuple[int, int, int]
    runs: int
    noun: str = "people"
    folds: bool = True
    repeats: int = 1

    @property
    def sentence(self) -> str:
        """How often each subject is tested, the number of tests, and their sizes."""
        tests = f"{counted(self.runs, 'test')} of {_range(self.fold)} {self.noun}"
        inside = "" if self.fold == self.institution else f", {_range(self.institution)} in each institution"
        pronoun = "it" if self.noun == "graphs" else "them"
        if not self.folds:
            return f"Scores are means over {tests}{inside}, by models that did not train on {pronoun}."
        each = "Every graph" if self.noun == "graphs" else "Everybody"
        often = {1: "once", 2: "twice"}.get(self.repeats, f"{self.repeats} times")
        return f"{each} is tested {often}, by a model that did not train on {pronoun}: {tests}{inside}."


def count_tested(splits: pd.DataFrame, noun: str = "people") -> TestedPeople:
    """Count the tested people of every fold in a table of repeat, fold, institution, a row a tested subject."""
    folds = splits.groupby(["repeat", "fold"]).size()
    inside = splits.groupby(["repeat", "fold", "institution"]).size()
    several, repeats = splits["fold"].nunique() > 1, int(splits["repeat"].nunique())
    return TestedPeople(_spread(folds), _spread(inside), len(folds), noun, several, repeats)


def _spread(counts: "pd.Series[int]") -> tuple[int, int, int]:
    return round(float(np.median(counts))), int(counts.min()), int(counts.max())


def _range(counts: tuple[int, int, int]) -> str:
    median, fewest, most = counts
    return str(median) if fewest == most else f"{fewest} to {most}"


# Sentences on poisoned institutions and on a server that defends itself.

MEANINGS = {
    "paf": "PAF: what they send is replaced by a far point, each in a direction of its own",
    "ofom": "OFOM: one sends a far point, all others the mean with it",
    "sign_flip": "sign flip: they send the opposite of their update",
    "scale": "scale: they send ten times their update",
    "label_flip": "label flip: they train on labels in reverse order",
}
"""Attack -> what it does."""


def poison_sentences(variants: Sequence[ShownVariant], institutions: int) -> list[str]:
    """`Poisoned: 1 and 2 of 4 institutions. PAF: ...`, a sentence for each attack, and one for the defences."""
    counts: dict[str, set[int]] = {}
    for variant in variants:
        if variant.is_poisoned:
            count = share_of(float(variant.setting("attacked")), institutions)
            counts.setdefault(str(variant.setting("attack")), set()).add(count)
    said = [
        f"{listed(list(map(str, sorted(own))), 'or')} of {institutions} institutions poisoned. {MEANINGS[attack]}."
        for attack, own in counts.items()
    ]
    defences = [str(variant.setting("defence")).replace("_", " ") for variant in variants if variant.is_defended]
    said += [f"Defences of the server: {listed(list(dict.fromkeys(defences)))}."] if defences else []
    return said


# The first screen: the question in the words of the cohort, its answer in one sentence, and how sure it is.

NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
DATA = {"connectivity": "brain scans", "morphometry": "measures of brain anatomy", "graphs": "graphs"}
"""Kind of a cohort -> what its institutions hold."""
CHANCE, NEAR_CHANCE = 0.5, 0.6
"""AUC by chance, and one of an attack below which little is found."""
FEW, WIDE, NORMAL = 100, 0.2, 1.96
"""Tested people below which the reach of chance is said; reach beyond which nothing can be told; 95 % of a normal
distribution in standard deviations."""


@dataclass(frozen=True)
class Fact:
    """One thing that a reader should know beside the answer: what it is about, and one or two sentences."""

    title: str
    text: str


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before any detail.

    Attributes:
        question: what the experiment asks.
        answer: AUCs of the best federated method, of the same model on pooled data, and alone.
        facts: on whom, how sure, what it is good for, what it gives away.
    """

    question: str
    answer: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Situation:
    """What the first screen reads beside the answer.

    Attributes:
        kind: of the cohort's features: `connectivity`, `morphometry` or `graphs`.
        institutions: their number in a repeat.
        drawn: how the split makes them, as `split.institutions`.
        subjects: `1,035 people of 20 sites (505 patients, 530 controls)`.
        shares: share of patients that the chosen method finds, and share of controls that it clears; None of more than
            two classes.
        leak: AUC of the stronger attack on the chosen method's training subjects, with its bounds; None: not attacked.
        leaves: data of single subjects that the chosen method sends, by the names of its ledger.
        shared_graph: titles of all federated methods whose graph joins subjects of several institutions, so that data
            of single subjects leave for it.
        counts: numbers of tested controls and patients; None of more than two classes.
        site: the one whose subjects these are, of a study between sites; empty where all institutions are in one place.
    """

    kind: str
    institutions: int
    drawn: str
    subjects: str
    tested: TestedPeople
    shares: tuple[float, float] | None = None
    leak: tuple[float, float, float] | None = None
    guaranteed: bool = False
    leaves: tuple[str, ...] = ()
    shared_graph: tuple[str, ...] = ()
    counts: tuple[int, int] | None = None
    site: str = ""


def first_screen(answer: Answer, words: ClassWords, situation: Situation) -> FirstScreen | None:
    """The first screen of an experiment; None without a federated method that has an AUC."""
    if answer.chosen is None or answer.score is None:
        return None
    facts = [_whom(situation, words), _sure(answer, answer.chosen, answer.score, situation)]
    return FirstScreen(
        question(words, situation.kind, situation.institutions, unseen=answer.unseen),
        _answer(answer, answer.chosen, answer.score, situation),
        (*facts, *_use(answer, situation, words), *_privacy(situation)),
    )


def question(words: ClassWords, kind: str, institutions: int, *, unseen: bool) -> str:
    """What an experiment asks: `Can five institutions predict autism from brain scans without sharing them?`."""
    count = NUMERALS[institutions] if institutions < len(NUMERALS) else str(institutions)
    asked = f"{_predicted(words)} from {words.modality or DATA[kind]}"
    if unseen:
        return f"Can models of other {words.site}s {asked} at a {words.site} that took no part?"
    if institutions == 1:
        return f"Can one institution {asked}?"
    return f"Can {count} {'data sets' if words.site == 'data set' else 'institutions'} {asked} without sharing them?"


def _predicted(words: ClassWords) -> str:
    """`predict autism`; `predict the diagnosis (CN, MCI or AD)` of classes with names."""
    if words.count == 2 and words.singular[1] in ("patient", "male"):
        return f"predict {words.condition or ('a diagnosis' if words.target == 'diagnosis' else words.target)}"
    *first, last = (words.short[code] for code in words.shown)
    condition = f" of {words.condition}" if words.condition else ""
    return f"predict the {words.target}{condition} ({', '.join(first)} or {last})"


def _answer(answer: Answer, chosen: ShownVariant, score: Interval, situation: Situation) -> str:
    """One sentence of three AUCs."""
    others = "the other sites\u2019 own models" if answer.unseen else f"{situation.site or 'each institution'} alone"
    parts = [
        f"{where} {_model(comparison, chosen, side)}{_shown(comparison.score)}"
        for comparison, side, where in ((answer.pooled, "pooled", "pooled data"), (answer.alone, "alone", others))
        if comparison is not None
    ]
    without = "Federated, " if situation.leaves else "Without sharing them (federated), "
    said = f"{without}{chosen.title} reaches an AUC of {_shown(score)}"
    return f"{said}; {', '.join(parts)}." if parts else f"{said}."


def _model(comparison: Comparison, chosen: ShownVariant, side: str) -> str:
    """Nothing for the same model; the title of another one where the method has no such counterpart."""
    same = SIDES[side] in comparison.roles and not chosen.counterpart(side).other_model
    return "" if same else f"{comparison.other.title} "


def _shown(score: Interval) -> str:
    """`0.78 [0.75, 0.81]`; the mean alone where the runs show no interval."""
    return score.text if score.constant else str(score)


def _whom(situation: Situation, words: ClassWords) -> Fact:
    """The subjects, and what of the institutions is made up."""
    dealt = {
        "random": f", dealt at random into {situation.institutions} made-up institutions, which are alike; real ones "
        "differ more"
        if situation.institutions > 1
        else ", in one institution",
        "consecutive": f", in {situation.institutions} institutions",
        "sites": f"; the site is {situation.site}" if situation.site else f"; every {words.site} is an institution",
        "site_groups": f"; an institution is a group of {words.site}s",
    }[situation.drawn]
    return Fact("On whom", f"{situation.subjects}{dealt}. {situation.tested.sentence}")


def _sure(answer: Answer, chosen: ShownVariant, score: Interval, situation: Situation) -> Fact:
    said = ["Brackets hold 95 % intervals."] if score.bounded else []
    said += [
        f"Federated minus {beside}: {_range_of_scores(comparison.difference)}."
        for comparison, beside in ((answer.alone, "alone"), (answer.pooled, "pooled"))
        if comparison is not None
    ]
    if score.constant:
        said.append(f"An AUC of {score.text} in every test has no interval, and is no certainty.")
    if answer.candidates > 1:
        said.append(
            f"{chosen.title} scored highest of {answer.candidates} federated methods on the same "
            f"{'data' if answer.unseen else 'tests'}, so its AUC is a little too high."
        )
    if situation.counts is not None and min(situation.counts) and sum(situation.counts) < FEW:
        reach = min(NORMAL * sd_of_chance(*situation.counts), CHANCE)
        verdict = ", so nothing here tells a good method from a bad one" if reach > WIDE else ""
        said.append(
            f"These are few people: guessing alone gives AUCs from {rounded(CHANCE - reach, 2)} to "
            f"{rounded(CHANCE + reach, 2)} on as many{verdict}."
        )
    return Fact("How sure", " ".join(said))


def _use(answer: Answer, situation: Situation, words: ClassWords) -> list[Fact]:
    """What the scores mean for one subject, and what is reached without the data in question."""
    said = []
    if situation.shares is not None:
        finds, clears = (f"{rounded(100 * share, 0)}\u00a0%" for share in situation.shares)
        said.append(
            f"At its usual cut-off it recognises {finds} of the {words.many[1]} and {clears} of the {words.many[0]}."
        )
    plain = answer.against(NO_IMAGING)
    if plain is not None and np.isfinite(plain.score.mean):
        said.append(
            f"The baseline {plain.other.title}, which reads no {words.unread}, reaches an AUC of {_shown(plain.score)}."
        )
    return [Fact("How useful", " ".join(said))] if said else []


def _privacy(situation: Situation) -> list[Fact]:
    """What the chosen method gives away, and then what others need."""
    said = []
    if situation.leaves:
        said.append(f"Data of single subjects leave their institution: {', '.join(situation.leaves)}.")
    said += _leak(situation)
    if situation.shared_graph:
        many = len(situation.shared_graph) > 1
        said.append(
            f"{listed(situation.shared_graph)} need{'' if many else 's'} a graph that joins subjects of several "
            "institutions: here one place built it from data of single subjects, so "
            f"{'these are' if many else 'it is'} federated in the training alone."
        )
    return [Fact("How private", " ".join(said))] if said else []


def _leak(situation: Situation) -> list[str]:
    """What an attack finds in the trained model, and what is guaranteed."""
    if situation.leak is None:
        return []
    auc, low, high = situation.leak
    shown = f"{rounded(auc, 2)} [{rounded(low, 2)}, {rounded(high, 2)}]"
    if low > CHANCE:
        said = (
            "The trained model gives its training subjects away: an attack that holds a subject\u2019s data and class "
            f"finds out whether it was among them, with an AUC of {shown}, where 0.5 is guessing."
        )
    elif high < NEAR_CHANCE:
        said = f"An attack that asks who was in the training data is near chance, with an AUC of {shown}."
    else:
        said = f"Too few subjects show what an attack finds of the training data: its AUC is {shown}."
    return [said, *([] if situation.guaranteed else ["The method has no formal privacy guarantee."])]


def _range_of_scores(difference: Interval) -> str:
    """A difference with its interval in words."""
    mean = signed(difference.mean, difference.digits)
    if not difference.bounded:
        return f"{mean} ({counted(difference.runs, 'test')}, too few for an interval)"
    if difference.constant:
        return f"{'equal' if difference.nothing else mean} in all {difference.runs} tests"
    return f"{mean} {difference.bounds}"
