"""The panels that any method may have, in the order of the page at each place."""

from dataclasses import dataclass

from brainfed.reporting import METRIC_TITLES, SHOWN_METRICS, Picture, ShownVariant, mixed_versions
from brainfed.reporting.panels._known import Known, Panel, Place
from brainfed.reporting.tables import (
    Cost,
    CounterpartRow,
    DifferenceTable,
    ScoreTable,
    ShownPattern,
    ViewRow,
    counterpart_notes,
    counterpart_rows,
    difference_table,
    drop_table,
    missing_counterparts,
    planted_sentences,
    read_audit,
    read_costs,
    read_exchanges,
    read_strongest,
    score_rows,
    shown_patterns,
    undefined_count,
    view_rows,
    with_totals,
)
from brainfed.reporting.text import poison_sentences

# Pictures, where they apply.


def _curves(known: Known) -> Picture | None:
    """The learning curves, where any variant trains in rounds or epochs."""
    trains = any(variant.epochs_a_round for variant in known.outline.variants)
    return known.pictures["learning"] if trains else None


def _scopes(known: Known) -> frozenset[str] | None:
    """Both scopes of local graphs, cut from one over everybody or each institution's own, where both were run.

    The cohort has a picture of them.
    """
    both = frozenset({"global_cut", "local"})
    scopes = {variant.setting("graph.scope") for variant in known.outline.variants}
    return both if scopes >= both and "scopes" in known.cohort.figures else None


def _subgroups(known: Known) -> Picture | None:
    """AUC in groups of subjects, of a cohort of people with two classes."""
    applies = known.outline.pooled and known.words.count == 2 and known.cohort.kind != "graphs"
    return known.pictures["subgroups"] if applies else None


# What drives the prediction of linear models.


@dataclass(frozen=True)
class Patterns:
    """What changes with the score.

    Attributes:
        shown: strongest features of linear models; at least one model.
        planted: planted connections among them, in a simulated cohort.
        views: loss of AUC by permuted view; empty without several views.
    """

    shown: list[ShownPattern]
    planted: list[str]
    views: list[ViewRow]


def _patterns(known: Known) -> Patterns | None:
    tables, variants = known.outline.tables, known.outline.variants
    if "patterns" not in tables:
        return None
    shown = shown_patterns(read_strongest(tables["patterns"]), variants, known.words)
    if not shown:
        return None
    return Patterns(
        shown, planted_sentences(tables["planted"], variants, known.words), view_rows(tables["views"], variants)
    )


# All scores, every method minus the reference, and every federated method beside its counterparts.


@dataclass(frozen=True)
class Scores:
    """The tables of scores.

    Attributes:
        tables: by scope.
        undefined: number of undefined AUCs.
        idle: sentences on settings that changed nothing.
    """

    tables: list[ScoreTable]
    undefined: int
    idle: list[str]


def _scores(known: Known) -> Scores:
    tables = [
        ScoreTable(title, score_rows(known.summary, known.outline.variants, scope, known.scored))
        for scope, title in known.scopes.items()
    ]
    return Scores(tables, undefined_count(known.summary), known.idle)


@dataclass(frozen=True)
class Tests:
    """The tables of tests.

    Attributes:
        tables: by scope, inside it by metric.
        family: number of tests that Holm's correction counts.
        reference: the variant that all others are compared with.
        idle: sentences on settings that changed nothing.
    """

    tables: list[DifferenceTable]
    family: int
    reference: ShownVariant
    idle: list[str]


def _tests(known: Known) -> Tests:
    variants, table = known.outline.variants, known.differences
    tables = [
        difference_table(f"{METRIC_TITLES[metric]}, {title}", table, variants, metric, scope, known.runs)
        for scope, title in known.scopes.items()
        for metric in SHOWN_METRICS
    ]
    reference = known.outline.variant(known.outline.reference)
    return Tests(tables, int(table["p_corrected"].notna().sum()), reference, known.idle)


@dataclass(frozen=True)
class Counterparts:
    """Every federated method beside the same model alone and on pooled data.

    Attributes:
        rows: two a federated method.
        missing: sentences on methods without a counterpart.
        notes: settings that changed nothing, and other differences between methods and counterparts.
        gain_note: what local training and a dot of the figure are; empty if nothing is to be said.
    """

    rows: list[CounterpartRow]
    missing: list[str]
    notes: list[str]
    gain_note: str


def _counterparts(known: Known) -> Counterparts | None:
    variants = known.outline.variants
    rows = counterpart_rows(variants, known.scored, known.gain)
    notes = [*known.idle, *counterpart_notes(variants)]
    return Counterparts(rows, missing_counterparts(rows), notes, _gain_note(known)) if rows else None


def _gain_note(known: Known) -> str:
    if known.answer.unseen:
        site = known.words.site
        return f"A {site} tested unseen has no model of its own: alone is the mean of the other {site}s\u2019 models."
    if known.outline.draws_anew:
        group = "graphs" if known.words.target == "class" else "people"
        return f"Institutions are drawn anew in every repeat: a dot is a place in the draw, not a group of {group}."
    return ""


# Time, memory and counts of every method.


@dataclass(frozen=True)
class Costs:
    """The costs of an experiment, a row a variant."""

    rows: list[Cost]

    @property
    def inpaints(self) -> bool:
        """Whether any variant trains a generator first."""
        return any(cost.inpainting_counts for cost in self.rows)

    @property
    def prepares(self) -> bool:
        """Whether any variant has a fitted or built stage before training."""
        return any(cost.preparation for cost in self.rows)


GENERIC: tuple[Panel, ...] = (
    Panel("learning", Place.LEARNING, _curves, "panels/figure.html.j2"),
    Panel("clusters", Place.LEARNING, lambda known: known.pictures.get("clusters"), "panels/figure.html.j2"),
    Panel(
        "poisoned", Place.OPENING,
        lambda known: poison_sentences(known.outline.variants, known.institutions), "panels/poisoned.html.j2",
    ),
    Panel(
        "mixed-versions", Place.OPENING,
        lambda known: mixed_versions(known.outline), "panels/mixed-versions.html.j2",
    ),
    Panel("own-figure", Place.OPENING, lambda known: known.picture, "panels/own-figure.html.j2"),
    Panel("scopes", Place.BEFORE_SCORES, _scopes, "panels/scopes.html.j2"),
    Panel("scores", Place.SCORES, _scores, "panels/scores.html.j2"),
    Panel("counterparts", Place.SCORES, _counterparts, "panels/counterparts.html.j2"),
    Panel("tests", Place.SCORES, _tests, "panels/tests.html.j2"),
    Panel(
        "predictions", Place.SCORES,
        lambda known: known.pictures if known.outline.pooled else None, "panels/predictions.html.j2",
    ),
    Panel(
        "drops", Place.AFTER_SCORES,
        lambda known: drop_table(known.outline.variants, known.scored, known.institutions), "panels/drops.html.j2",
    ),
    Panel("patterns", Place.EXPLANATION, _patterns, "panels/patterns.html.j2"),
    Panel(
        "calibration", Place.EXPLANATION,
        lambda known: known.pictures["calibration"] if known.outline.pooled else None, "panels/calibration.html.j2",
    ),
    Panel("subgroups", Place.EXPLANATION, _subgroups, "panels/subgroups.html.j2"),
    Panel(
        "exchanges", Place.TRAFFIC,
        lambda known: with_totals(read_exchanges(known.outline.variants)), "panels/exchanges.html.j2",
    ),
    Panel("audit", Place.LEAKAGE, lambda known: read_audit(known.outline, known.scored), "panels/audit.html.j2"),
    Panel("costs", Place.COST, lambda known: Costs(read_costs(known.outline.variants)), "panels/costs.html.j2"),
)  # fmt: skip
