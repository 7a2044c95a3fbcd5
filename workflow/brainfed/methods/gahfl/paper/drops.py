"""Mean drops of accuracy under attacks beside those printed in the paper of GAHFL (section III-D)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brainfed.evaluation.scores import POOLED
from brainfed.methods.gahfl.paper.numbers import GAHFL_PAPER, mean_drop, paper_cohort_of, printed_scores
from brainfed.methods.gahfl.paper.public_sets import silent
from brainfed.reporting.panels.known import Known
from brainfed.reporting.rounding import short
from brainfed.reporting.scored import Scored
from brainfed.reporting.tables.drops import Drop, read_drops
from brainfed.reporting.text.baselines import listed

PRINTED_ATTACKS = ("paf", "ofom")
"""Attacks that the printed mean drops are over."""
RATIO = 0.3
"""Share of public subjects of the printed mean drops."""


@dataclass(frozen=True)
class PrintedDrops:
    """What belongs to poisoned methods with public subjects.

    Attributes:
        printed: our mean drops beside printed ones; empty where none are printed.
        silent: titles of the methods that no institution taught in the last round.
    """

    printed: str
    silent: list[str]


def printed_drops(known: Known) -> PrintedDrops | None:
    """The drops of an experiment with poisoned methods that read public subjects; None for any other."""
    outline = known.outline
    poisoned = [each for each in outline.variants if each.is_poisoned]
    if not any(each.setting("public.ratio") is not None for each in poisoned):
        return None
    untaught = silent(outline.variants)
    if outline.paper != GAHFL_PAPER:
        return PrintedDrops("", untaught)
    drops = read_drops(outline.variants, known.scored, known.institutions)
    return PrintedDrops(beside_printed(drops, known.scored, paper_cohort_of(known.cohort.name)), untaught)


def beside_printed(drops: Sequence[Drop], scored: Scored, cohort: str) -> str:
    """Our mean drops over both attacks beside the printed ones, of the method as printed, once under each attack.

    Args:
        drops: of poisoned variants.
        scored: the runs; the paper scores all test subjects of a fold together.
        cohort: `abide` or `adhd200`; empty for another one.
    """
    ours: dict[str, list[Drop]] = {}
    for one in drops:
        as_printed = one.attack in PRINTED_ATTACKS and not one.variant.is_defended
        if as_printed and printed_scores(cohort, one.clean) is not None and one.clean.setting("public.ratio") == RATIO:
            ours.setdefault(one.variant.method, []).append(one)
    found = [
        f"{own[0].variant.method_title} {short(-float(np.mean([_change(one, scored) for one in own])))} "
        f"(printed {short(printed)})"
        for method, own in ours.items()
        if sorted(one.attack for one in own) == sorted(PRINTED_ATTACKS)
        and own[0].clean == own[1].clean
        and own[0].clean.setting("without") in (None, "none")
        and (printed := mean_drop(method, cohort)) is not None
    ]
    state = "Mean drop of accuracy over PAF and OFOM, all test subjects of a fold together"
    return f"{state}: {listed(found, 'and')}." if found else ""


def _change(one: Drop, scored: Scored) -> float:
    return scored.difference(one.variant.name, one.clean.name, "accuracy", POOLED).mean
