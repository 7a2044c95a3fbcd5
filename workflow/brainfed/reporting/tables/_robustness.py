"""What attacks take from a method, and what its scores reveal of its training subjects."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from brainfed.evaluation import INSTITUTION, LIRA, LOSS, OTHERS, PUBLIC
from brainfed.federation import TRIMMING, share_of
from brainfed.reporting import (
    NONE,
    ExperimentOutline,
    Interval,
    Scored,
    ShownVariant,
    by_family,
    rounded,
    signed,
    significant_digits,
)
from brainfed.reporting.tables._exchanges import crossings_of
from brainfed.reporting.tables._scores import Cell, Row
from brainfed.runtime import canonical_json, read_json

# What attacks take from a method: every poisoned variant beside the same method without poison.

METRICS = ("accuracy", "auc")
CHANCE = 0.5
"""An AUC of no use."""
POISON = ("attack", "attacked")
"""Settings in which a poisoned variant may differ from the one that it is compared with."""


@dataclass(frozen=True)
class Drop:
    """A poisoned variant and its method without poison.

    Attributes:
        clean: the same method, settings and defence, with no institution poisoned.
        poisoned: number of poisoned institutions.
        before: metric -> the score without poison, over the runs of `change`.
        change: metric -> poisoned minus clean, paired by run.
    """

    variant: ShownVariant
    clean: ShownVariant
    poisoned: int
    before: Mapping[str, Interval]
    change: Mapping[str, Interval]

    @property
    def at_chance(self) -> bool:
        """Whether the AUC without poison may be 0.5: such a method has nothing to lose."""
        score = self.before["auc"]
        return score.low <= CHANCE if score.known else score.mean <= CHANCE

    @property
    def attack(self) -> str:
        """As in the config."""
        return str(self.variant.setting("attack"))


@dataclass(frozen=True)
class DropTable:
    """All poisoned variants of an experiment.

    Attributes:
        rows: attack, number of poisoned institutions, defence; accuracy and AUC without poison, and their changes.
        alone: titles of poisoned variants whose method does not stand in the experiment without poison.
    """

    rows: list[Row]
    alone: list[str]


def read_drops(variants: Sequence[ShownVariant], scored: Scored, institutions: int) -> list[Drop]:
    """One for each poisoned variant whose method also stands in the experiment without poison."""
    clean = {_without_poison(each): each for each in variants if not each.is_poisoned}
    return [
        Drop(
            variant,
            own,
            share_of(float(variant.setting("attacked")), institutions),
            {metric: scored.beside(own.name, variant.name, metric) for metric in METRICS},
            {metric: scored.difference(variant.name, own.name, metric) for metric in METRICS},
        )
        for variant in by_family([each for each in variants if each.is_poisoned])
        if (own := clean.get(_without_poison(variant))) is not None
    ]


def drop_table(variants: Sequence[ShownVariant], scored: Scored, institutions: int) -> DropTable | None:
    """The drops of an experiment as text; None without poisoned variants."""
    poisoned = [each for each in variants if each.is_poisoned]
    if not poisoned:
        return None
    drops = read_drops(variants, scored, institutions)
    beside = {drop.variant.name for drop in drops}
    rows = [Row(drop.variant, _drop_cells(drop, institutions)) for drop in drops]
    return DropTable(rows, [each.title for each in poisoned if each.name not in beside])


def poison_finding(drops: Sequence[Drop], institutions: int) -> str:
    """The range of changes for the fewest and the most poisoned institutions; methods at chance stand apart."""
    if not drops:
        return "No method stands beside its poisoned variant"
    losing = [drop for drop in drops if not drop.at_chance]
    counts = sorted({drop.poisoned for drop in losing})
    ends = dict.fromkeys((*counts[:1], *counts[-1:]))
    said = [_range([drop for drop in losing if drop.poisoned == count], institutions) for count in ends]
    if idle := dict.fromkeys(drop.variant.method_title for drop in drops if drop.at_chance):
        said.append(f"at chance without poison: {', '.join(idle)}")
    text = "; ".join(said)
    return text[0].upper() + text[1:]


def _range(drops: Sequence[Drop], institutions: int) -> str:
    """`1 of 4 institutions poisoned: accuracy −0.54 for FedTangent (PAF) to −0.01 for ...`."""
    ordered = sorted(drops, key=lambda drop: drop.change["accuracy"].mean)
    ends = [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    shown = [
        f"{signed(drop.change['accuracy'].mean, drop.change['accuracy'].digits)} for {drop.variant.unswept_title}"
        for drop in ends
    ]
    return f"{drops[0].poisoned} of {institutions} institutions poisoned: accuracy {' to '.join(shown)}"


def _without_poison(variant: ShownVariant) -> str:
    """What a poisoned variant and its clean one have in common."""
    trims = variant.setting("defence") in TRIMMING
    left_out = POISON if trims else (*POISON, "trim")
    kept = {name: value for name, value in variant.settings.items() if name not in left_out}
    return canonical_json([variant.method, kept, variant.stages])


def _drop_cells(drop: Drop, institutions: int) -> tuple[Cell, ...]:
    defence = str(drop.variant.setting("defence"))
    cells = [
        Cell(drop.attack.replace("_", " ")),
        Cell(f"{drop.poisoned} of {institutions}", drop.poisoned),
        Cell(NONE if defence == "none" else defence.replace("_", " ")),
    ]
    for metric in METRICS:
        before, change = drop.before[metric], drop.change[metric]
        cells.append(Cell(before.text, before.mean))
        cells.append(Cell(signed(change.mean, change.digits), change.mean, _spread(change)))
    return tuple(cells)


def _spread(change: Interval) -> str:
    if change.constant:
        return f"in all {change.counted}"
    return change.bounds if change.known else ""


# What the scores of every method reveal of its training subjects, beside its guarantee.

CONTROL = "ridge-overfitted"
"""Shipped variant that every attack must find."""
FEWEST = 100
"""Held-out subjects of a model below which a threshold at 1 % false positives lets none pass."""
WIDEST = 0.5
"""Interval of true positives above which their number is not shown."""
ATTACK_TITLES = {LIRA: "LiRA", LOSS: "loss threshold"}
Held = Mapping[tuple[str, str], Mapping[Hashable, Any]]
"""(variant, attack) -> a row of the table."""


@dataclass(frozen=True)
class AuditTable:
    """The table of one experiment.

    Attributes:
        rows: of every audited variant: whose membership, if `parted`; AUC, AUC of LiRA and its true positives, the
            same of the loss threshold, AUC on other people, guarantee. Two rows if the variant has public subjects.
        parted: whether any variant has public training subjects, of whom everybody knows.
        shadows: shadow models of a subject; 0: one repeat, or one split in all repeats, and no LiRA.
        whole_sites: whether each fold holds out a site, which the loss threshold then finds.
        runs: attacked models of a variant.
        graphs: titles of the methods on population graphs.
        outside: controls with an interval that misses 0.5, and the number of controls.
        private: whether any method has a guarantee.
        control: whether the attacks find the model that learns its training subjects by heart; empty without it.
    """

    rows: list[Row]
    parted: bool
    shadows: int
    whole_sites: bool
    runs: int
    graphs: list[str]
    outside: tuple[int, int]
    private: bool
    control: str


@dataclass(frozen=True)
class Leak:
    """One method: how well it scores, what it reveals, what it sends.

    Attributes:
        score: mean AUC over institutions and runs.
        auc, low, high: of the attack.
        sent: bytes that cross institutions in one run.
        attack: whose AUC it is, `lira` or `loss`.
    """

    variant: ShownVariant
    score: float
    auc: float
    low: float
    high: float
    sent: int
    attack: str = LOSS


def read_audit(outline: ExperimentOutline, scored: Scored) -> AuditTable | None:
    """The table of an experiment with these scores; None where no variant was audited."""
    if "audit" not in outline.tables:
        return None
    table = pd.read_csv(outline.tables["audit"], sep="\t")
    by_attack = _held(table)
    shown = [variant for variant in by_family(outline.variants) if (variant.name, LOSS) in by_attack]
    if not shown:
        return None
    others = table[table["attack"].str.endswith(OTHERS)].dropna(subset=["auc"])
    outside = int(((others["auc_low"] > CHANCE) | (others["auc_high"] < CHANCE)).sum())
    parted = any(attack.endswith(PUBLIC) for _, attack in by_attack)
    return AuditTable(
        [row for variant in shown for row in _rows(variant, by_attack, scored, parted=parted)],
        parted,
        outline.repeats - 1 if any(attack == LIRA for _, attack in by_attack) else 0,
        outline.leaves_sites_out,
        int(table["runs"].max()),
        [variant.title for variant in shown if on_population_graph(variant)],
        (outside, len(others)),
        any(spent(variant) for variant in shown),
        _control(shown, by_attack),
    )


def read_leaks(variants: Sequence[ShownVariant], summary: str, audit: str) -> list[Leak]:
    """Every audited method at the stronger of its attacks: each of them is a lower bound of what the method reveals.

    Args:
        variants: of the experiment, with the `cost.json` of their first repeat.
        summary: table of mean scores.
        audit: table of the attacks.
    """
    by_attack, table = _held(pd.read_csv(audit, sep="\t")), pd.read_csv(summary, sep="\t")
    scores = table[(table["scope"] == INSTITUTION) & (table["metric"] == "auc")].set_index("variant")["mean"]
    leaks = []
    for variant in by_family(variants):
        score = float(scores.get(variant.name, np.nan))
        every = [(name, by_attack[variant.name, name]) for name in (LIRA, LOSS) if (variant.name, name) in by_attack]
        known = [(name, row) for name, row in every if np.isfinite(row["auc"])]
        if known and np.isfinite(score):
            attack, row = max(known, key=lambda each: float(each[1]["auc"]))
            auc, low, high = (float(row[name]) for name in ("auc", "auc_low", "auc_high"))
            sent = sum(crossing.bytes for crossing in crossings_of(variant))
            leaks.append(Leak(variant, score, auc, low, high, sent, attack))
    return leaks


def on_population_graph(variant: ShownVariant) -> bool:
    """Whether neighbours' features enter a prediction."""
    return bool(variant.stages.get("graph"))


def spent(variant: ShownVariant) -> tuple[float, float] | None:
    """Largest epsilon that an institution spent in one training, and delta; None without a private training."""
    rows = [row for path in variant.privacy for row in read_json(path)]
    return max((float(row["epsilon_spent"]), float(row["delta"])) for row in rows) if rows else None


def _control(shown: Sequence[ShownVariant], by_attack: Held) -> str:
    """Whether the positive control was found, by the main attack."""
    variant = next((variant for variant in shown if variant.name == CONTROL), None)
    if variant is None:
        return ""
    row = by_attack.get((CONTROL, LIRA), by_attack[CONTROL, LOSS])
    what = f"{variant.title}, which learns its training subjects by heart,"
    if not np.isfinite(row["auc"]) or row["auc_low"] <= CHANCE:
        return f"{what} was not found: an attack that finds nothing here says little about the other methods."
    return f"{what} is found with an AUC of {rounded(float(row['auc']), 2)}, as it must be."


def _held(table: pd.DataFrame) -> Held:
    return {(str(row["variant"]), str(row["attack"])): row for row in table.to_dict("records")}


def _rows(variant: ShownVariant, by_attack: Held, scored: Scored, *, parted: bool) -> list[Row]:
    if not parted:
        return [Row(variant, _audit_cells(variant, by_attack, scored))]
    groups = {"private": "", "public": PUBLIC} if (variant.name, LOSS + PUBLIC) in by_attack else {"all": ""}
    return [Row(variant, (Cell(who), *_audit_cells(variant, by_attack, scored, part))) for who, part in groups.items()]


def _audit_cells(variant: ShownVariant, by_attack: Held, scored: Scored, suffix: str = "") -> tuple[Cell, ...]:
    score = scored.interval(variant.name, "auc")
    rows = [by_attack.get((variant.name, attack + suffix)) for attack in (LIRA, LOSS)]
    attacks = [_interval(row, name) for row in rows for name in ("auc", "tpr")]
    main = LIRA if (variant.name, LIRA) in by_attack else LOSS
    others = Cell(NONE) if suffix else _interval(by_attack.get((variant.name, main + OTHERS)), "auc")
    return (Cell(score.text, score.mean), *attacks, others, _guarantee(variant))


def _interval(row: Mapping[Hashable, Any] | None, name: str) -> Cell:
    """A number with its interval below; a dash where there is none."""
    if row is None or not np.isfinite(row[name]):
        return Cell(NONE)
    if name == "tpr" and row["non_members"] < FEWEST:
        return Cell(NONE, note="too few subjects")
    if name == "tpr" and row["tpr_high"] - row["tpr_low"] > WIDEST:
        return Cell(NONE, note="too uncertain")
    value, low, high = (float(row[name + end]) for end in ("", "_low", "_high"))
    shown = [rounded(each, 2) if name == "auc" else f"{rounded(100 * each, 1)} %" for each in (value, low, high)]
    return Cell(shown[0], value, f"[{shown[1]}, {shown[2]}]")


def _guarantee(variant: ShownVariant) -> Cell:
    budget = spent(variant)
    if budget is None:
        return Cell("none", np.inf, "population graph" if on_population_graph(variant) else "")
    epsilon, delta = budget
    text = f"\u03b5 = {significant_digits(epsilon, 3)}" if np.isfinite(epsilon) else "none"
    return Cell(text, epsilon, f"\u03b4 = {delta:g}")
