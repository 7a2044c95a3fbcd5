"""What attacks take from a method: every poisoned variant beside the same method without poison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainfed.federation.robustness_settings import TRIMMING, share_of
from brainfed.reporting.intervals import Interval
from brainfed.reporting.rounding import NONE, signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.tables.scores import Cell, Row
from brainfed.reporting.variants import ShownVariant, by_family
from brainfed.runtime.artefacts import canonical_json

METRICS = ("accuracy", "auc")
CHANCE = 0.5
"""An AUC of no use."""
POISON = ("attack", "attacked")
"""Settings in which a poisoned variant may differ from the one that it is compared with."""


@dataclass(frozen=True)
class Drop:
    """A poisoned variant and its method without poison.

    Attributes:
        variant: the poisoned one.
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
    """The drops as text; None without poisoned variants.

    Args:
        variants: of one experiment.
        scored: its runs.
        institutions: their number in a repeat.
    """
    poisoned = [each for each in variants if each.is_poisoned]
    if not poisoned:
        return None
    drops = read_drops(variants, scored, institutions)
    beside = {one.variant.name for one in drops}
    rows = [Row(one.variant, _cells(one, institutions)) for one in drops]
    return DropTable(rows, [each.title for each in poisoned if each.name not in beside])


def poison_finding(drops: Sequence[Drop], institutions: int) -> str:
    """The range of changes for the fewest and the most poisoned institutions; methods at chance stand apart."""
    if not drops:
        return "No method stands beside its poisoned variant"
    idle = {one.variant.method_title: one for one in drops if one.at_chance}
    counts = sorted({one.poisoned for one in drops if not one.at_chance})
    said = [_range([one for one in drops if one.poisoned == count and not one.at_chance], institutions)
            for count in dict.fromkeys((*counts[:1], *counts[-1:]))]  # fmt: skip
    if idle:
        said.append(f"at chance without poison: {', '.join(idle)}")
    found = "; ".join(said)
    return found[0].upper() + found[1:]


def _range(drops: Sequence[Drop], institutions: int) -> str:
    """`1 of 4 institutions poisoned: accuracy −0.54 for FedTangent (PAF) to −0.01 for ...`."""
    ordered = sorted(drops, key=lambda one: one.change["accuracy"].mean)
    ends = [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    shown = [
        f"{signed(one.change['accuracy'].mean, one.change['accuracy'].digits)} for {one.variant.unswept_title}"
        for one in ends
    ]
    return f"{drops[0].poisoned} of {institutions} institutions poisoned: accuracy {' to '.join(shown)}"


def _without_poison(variant: ShownVariant) -> str:
    """What a poisoned variant and its clean one have in common."""
    trims = variant.setting("defence") in TRIMMING
    left_out = POISON if trims else (*POISON, "trim")
    kept = {name: value for name, value in variant.settings.items() if name not in left_out}
    return canonical_json([variant.method, kept, variant.stages])


def _cells(one: Drop, institutions: int) -> tuple[Cell, ...]:
    defence = str(one.variant.setting("defence"))
    scores = [
        cell
        for metric in METRICS
        for cell in (
            Cell(one.before[metric].text, one.before[metric].mean),
            Cell(
                signed(one.change[metric].mean, one.change[metric].digits),
                one.change[metric].mean,
                _spread(one.change[metric]),
            ),
        )
    ]
    return (
        Cell(one.attack.replace("_", " ")),
        Cell(f"{one.poisoned} of {institutions}", one.poisoned),
        Cell(NONE if defence == "none" else defence.replace("_", " ")),
        *scores,
    )


def _spread(change: Interval) -> str:
    if change.constant:
        return f"in all {change.counted}"
    return change.bounds if change.known else ""
