"""The section of the page on one experiment."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from brainfed.cohort.class_words import ClassWords
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.metric_titles import METRIC_TITLES, SHOWN_METRICS
from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.pictures import Picture, read_pictures
from brainfed.reporting.scored import read_scored, read_splits
from brainfed.reporting.tables.audit import AuditTable, read_audit
from brainfed.reporting.tables.exchanges import Cost, Exchange, read_costs, read_exchanges, with_totals
from brainfed.reporting.tables.fidelity import FidelityRow, count_sentence, fidelity_rows, read_fidelity
from brainfed.reporting.tables.institutions.gains import GainTable, read_gains
from brainfed.reporting.tables.paper_numbers import FEDNI_COHORTS, FEDNI_SAYS, hard_labels, paper_cohort
from brainfed.reporting.tables.patterns import (
    ShownPattern,
    ViewRow,
    planted_sentences,
    read_strongest,
    shown_patterns,
    view_rows,
)
from brainfed.reporting.tables.printed import as_in_the_paper
from brainfed.reporting.tables.privacy.budgets import BudgetTable, read_budgets
from brainfed.reporting.tables.public.public_sets import PublicTable, read_public_sets
from brainfed.reporting.tables.readings import Readings, find_readings
from brainfed.reporting.tables.robustness.drops import DropTable, drop_table
from brainfed.reporting.tables.scores import (
    SCOPE_TITLES,
    DifferenceTable,
    Row,
    ScoreTable,
    difference_table,
    paper_rows,
    score_rows,
    undefined_count,
)
from brainfed.reporting.tables.twins import TwinRow, missing_twins, twin_notes, twin_rows
from brainfed.reporting.text.answer import Answer, find_answer
from brainfed.reporting.text.answer_words import sentences, verdict
from brainfed.reporting.text.baselines import FedNIResult, fedni_sentence, find_fedni
from brainfed.reporting.text.first_screen import FirstScreen, first_screen
from brainfed.reporting.text.generated_nodes import (
    GeneratedNodes,
    count_sentences,
    effect_sentences,
    read_generated,
)
from brainfed.reporting.text.null_control import null_sentences, null_verdict, permutation_means
from brainfed.reporting.text.poison_words import poison_sentences
from brainfed.reporting.text.tested_people import TestedPeople, count_tested
from brainfed.reporting.text.why_words import why_sentences
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class ExperimentSection:
    """One experiment of one cohort.

    Attributes:
        key: unique on the page.
        outline: outline of the experiment.
        setting: institutions, folds and repeats in one line.
        protocol: permitted use of test subjects.
        verdict: the answer in one line.
        first: the first screen, for an experiment without a figure of its own; None without an answer.
        sentences: the numbers behind it.
        answer: source of verdict and sentences.
        institutions: number of institutions.
        runs: number of test folds over all repeats.
        scores: tables by scope.
        tests: tables by metric and scope.
        family: number of tests that Holm's correction counts.
        undefined: number of undefined AUCs.
        words: nouns of the cohort.
        headline_note: further rows of the figure of the answer; empty without any.
        paper: our scores and the paper's.
        paper_about: the paper's cohort.
        paper_comparable: whether it is of the same collection.
        paper_auc: reason to compare the paper's AUC with our balanced accuracy.
        tested: number of subjects behind a score.
        twins: every federated method against the same model alone and on pooled data.
        twins_missing: sentences on methods without a twin.
        twin_notes: other differences between methods and twins.
        exchanges: exchanges between institutions.
        costs: time, memory and counts.
        pictures: pictures by name.
        generated: number of generated nodes and of their neighbours.
        effects: effect of these nodes on the scores.
        fidelity: generated against true neighbours; empty if those are not known.
        missing: number of missing neighbours, predicted and generated.
        why: findings of the variants of the graph network.
        poisoned: attacks on variants, and their defences.
        readings: distance of each reading to the paper; None except for the figure `readings`.
        patterns: strongest features of linear models.
        planted: planted connections among them, in a simulated cohort.
        views: loss of AUC of linear models by permuted view; empty without several views.
        gains: what institutions gain by the last model and by the paper's scoring; None without clusters.
        budgets: what private methods reach at their budgets; None without private methods.
        drops: what attacks take away; None without poisoned variants.
        public: what methods with a public set reach; None without such methods.
        audit: what models reveal of their training subjects; None where none was attacked.
    """

    key: str
    outline: ExperimentOutline
    setting: str
    protocol: str
    verdict: str
    first: FirstScreen | None
    sentences: list[str]
    answer: Answer
    institutions: int
    runs: int
    scores: list[ScoreTable]
    tests: list[DifferenceTable]
    family: int
    undefined: int
    words: ClassWords
    headline_note: str
    paper: list[Row]
    paper_about: str
    paper_comparable: bool
    paper_auc: str
    tested: TestedPeople
    twins: list[TwinRow]
    twins_missing: list[str]
    twin_notes: list[str]
    exchanges: list[Exchange]
    costs: list[Cost]
    pictures: dict[str, Picture]
    generated: list[GeneratedNodes]
    effects: list[str]
    fidelity: list[FidelityRow]
    missing: list[str]
    why: list[str]
    poisoned: list[str]
    readings: Readings | None
    patterns: list[ShownPattern]
    planted: list[str]
    views: list[ViewRow]
    gains: GainTable | None
    budgets: BudgetTable | None
    drops: DropTable | None
    public: PublicTable | None
    audit: AuditTable | None

    @property
    def paper_picture(self) -> Picture | None:
        """The figure that the paper also has; a group's first experiment has it."""
        return self.pictures.get(self.outline.figure)

    @property
    def inpaints(self) -> bool:
        """Whether any variant trains a generator first."""
        return any(cost.inpainting_counts for cost in self.costs)

    @property
    def prepares(self) -> bool:
        """Whether any variant has a fitted or built stage before training."""
        return any(cost.preparation for cost in self.costs)

    @property
    def paper_says(self) -> str:
        """`Fig. 8: accuracy rises ...`; empty without a conclusion of the paper."""
        name = self.outline.paper
        if name not in FEDNI_SAYS:
            return ""
        shown = name.replace("fig", "Fig. ").replace("table", "Table ").replace("Table 6", "Table VI")
        return f"{shown}: {FEDNI_SAYS[name]}"

    @property
    def reference(self) -> ShownVariant:
        """The reference variant of the tests."""
        return self.outline.variant(self.outline.reference)

    @property
    def has_both_scopes(self) -> bool:
        """Whether it compares cut graphs with graphs that institutions build themselves."""
        scopes = {variant.setting("graph.scope") for variant in self.outline.variants}
        return {"global_cut", "local"} <= scopes

    @property
    def has_curves(self) -> bool:
        """Whether any variant trains in rounds or epochs."""
        return any(variant.epochs_a_round for variant in self.outline.variants)

    @property
    def run(self) -> str:
        """What a run of the scores is."""
        return "one fold of one repeat" if self.tested.folds else "the test of one repeat"

    @property
    def is_control(self) -> bool:
        """Whether the diagnoses are shuffled."""
        return self.outline.labels == "permuted"

    @property
    def gain_note(self) -> str:
        """Explanation of local training and of a dot, if needed."""
        if self.answer.unseen:
            site = self.words.site
            return (
                f"A {site} tested unseen has no model of its own: alone is the mean of the other {site}s\u2019 models."
            )
        if self.outline.draws_anew:
            group = "graphs" if self.words.target == "class" else "people"
            return f"Institutions are drawn anew in every repeat: a dot is a place in the draw, not a group of {group}."
        return ""


def experiment_section(
    cohort: CohortOutline, outline: ExperimentOutline, captions: Mapping[str, str]
) -> ExperimentSection:
    """Read one experiment's tables and embed its figures."""
    summary, tests = (pd.read_csv(outline.tables[name], sep="\t") for name in ("summary", "tests"))
    splits = read_splits(outline)
    scored = read_scored(outline)
    variants = outline.variants
    generated = read_generated(variants)
    compared = PageTests(scored, variants, outline.reference)
    answer, own = find_answer(compared), find_fedni(compared)
    gain = pd.read_csv(outline.tables["gain"], sep="\t")
    fidelity = read_fidelity(variants)
    null = permutation_means(scored.runs, variants) if outline.labels == "permuted" else None
    column, comparable = paper_cohort(cohort.name)
    institutions = int(splits["institution"].nunique())
    folds = len(splits[["repeat", "fold"]].drop_duplicates())
    tested = count_tested(splits, "graphs" if cohort.kind == "graphs" else "people")
    titles = {scope: title.replace("subjects", cohort.words.subjects) for scope, title in SCOPE_TITLES.items()}
    scopes = list(SCOPE_TITLES) if outline.pooled and not answer.unseen else [INSTITUTION]
    pictures = read_pictures(outline.figures, captions, f"cohort {cohort.name}, experiment {outline.name}")
    finding = pictures[outline.figure].finding if outline.figure in pictures else ""
    twins = twin_rows(variants, scored, gain)
    return ExperimentSection(
        key=f"{cohort.name}-{outline.name}",
        outline=outline,
        setting=_setting(outline, cohort.words, institutions, folds),
        protocol=_protocol(outline, cohort.words),
        verdict=_verdict(answer, finding) if null is None else null_verdict(null),
        first=first_screen(answer, cohort.words, cohort.kind, institutions, tested)
        if null is None and not finding
        else None,
        sentences=_sentences(answer, own, finding, cohort.words) if null is None else null_sentences(null),
        answer=answer,
        institutions=institutions,
        runs=folds,
        scores=[ScoreTable(titles[scope], score_rows(summary, variants, scope, scored)) for scope in scopes],
        tests=[
            difference_table(f"{METRIC_TITLES[metric]}, {titles[scope]}", tests, variants, metric, scope)
            for scope in scopes
            for metric in SHOWN_METRICS
        ],
        family=int(tests["p_corrected"].notna().sum()),
        undefined=undefined_count(summary),
        words=cohort.words,
        headline_note="FedNI stands beside what it is compared with." if own is not None else "",
        paper=paper_rows(summary, variants, cohort.name, scored) if as_in_the_paper(outline) else [],
        paper_about=FEDNI_COHORTS[column],
        paper_comparable=comparable,
        paper_auc=hard_labels(column),
        tested=tested,
        twins=twins,
        twins_missing=missing_twins(twins),
        twin_notes=twin_notes(variants),
        exchanges=with_totals(read_exchanges(variants)),
        costs=read_costs(variants),
        pictures=pictures,
        generated=generated,
        effects=[*count_sentences(generated, outline.split), *(effect_sentences(compared) if null is None else [])],
        fidelity=fidelity_rows(fidelity),
        missing=[count_sentence(one) for one in fidelity],
        why=why_sentences(cohort, outline, compared) if null is None else [],
        poisoned=poison_sentences(variants, institutions),
        readings=find_readings(outline, scored) if outline.figure == "readings" else None,
        patterns=_patterns(cohort, outline),
        planted=planted_sentences(outline.tables["planted"], variants, cohort.words) if _explains(outline) else [],
        views=view_rows(outline.tables["views"], variants) if _explains(outline) else [],
        gains=read_gains(outline, cohort.name),
        budgets=read_budgets(outline, scored),
        drops=drop_table(variants, scored, institutions, outline.paper, cohort.name),
        public=read_public_sets(outline, scored, cohort.name),
        audit=read_audit(outline, scored),
    )


def _explains(outline: ExperimentOutline) -> bool:
    """Whether it shows patterns of linear models."""
    return "patterns" in outline.tables


def _patterns(cohort: CohortOutline, outline: ExperimentOutline) -> list[ShownPattern]:
    if not _explains(outline):
        return []
    return shown_patterns(read_strongest(outline.tables["patterns"]), outline.variants, cohort.words)


def _verdict(answer: Answer, finding: str) -> str:
    """The finding of the experiment's own figure if it has one; else the result of federation."""
    return finding or verdict(answer)


def _sentences(answer: Answer, own: FedNIResult | None, finding: str, words: ClassWords) -> list[str]:
    """The numbers behind the verdict, and below them FedNI's own."""
    federation = [] if finding else sentences(answer, words.unread)
    return [*federation, *([fedni_sentence(own)] if own is not None else [])]


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
    drawn = {
        "random": f"{institutions} institutions drawn at random",
        "sites": f"{institutions} institutions, one a {words.site}",
        "site_groups": f"{institutions} institutions, groups of {words.site}s",
        "consecutive": f"{institutions} institutions of consecutive {words.subjects}, the rest at random",
    }[outline.split["institutions"]]
    if outline.split["validation"] == "holdout":
        tested, held = (f"{100 * outline.split[key]:g} %" for key in ("tested", "held_back"))
        beside = f", {held} held back" if outline.split["held_back"] else ""
        return f"{drawn}; {tested} of each tested{beside}, once a repeat; {repeats}"
    by_site = outline.split["stratify"] == "site_label" and outline.split["institutions"] != "sites"
    stratified = f" stratified by {words.site} and {words.target}" if by_site else ""
    return f"{drawn}; {outline.split['folds']}-fold cross-validation{stratified}; {repeats} ({folds} test folds)"
