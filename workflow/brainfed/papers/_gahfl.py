"""What GAHFL adds to the report: printed scores, drops under attacks, public subjects with and without institutions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jinja2 import PackageLoader

from brainfed.evaluation import POOLED
from brainfed.reporting import (
    NONE,
    Citation,
    Cited,
    ExperimentOutline,
    Paper,
    Scored,
    ShownVariant,
    by_family,
    rounded,
    short,
    significant,
)
from brainfed.reporting.panels import Known, Panel, Place
from brainfed.reporting.tables import Cell, Drop, Row, read_drops, score_cell
from brainfed.reporting.text import listed
from brainfed.runtime import read_json

# Scores printed in the paper of GAHFL, by cohort, method, term left out and share of public subjects.

GAHFL_PAPER = "gahfl"
"""An experiment's `paper` that has these numbers beside it."""
GAHFL_SOURCE = (
    "Hu et al., Heterogeneous structured federated learning with graph convolutional aggregation for MRI-based mental "
    "disorder diagnosis, International Joint Conference on Neural Networks 2024, Tables III and IV"
)


class Printed(NamedTuple):
    """Accuracy, specificity, sensitivity and AUC, with patients as the positive class."""

    accuracy: float
    specificity: float
    sensitivity: float
    auc: float


Numbers = Mapping[tuple[str, str, float], Printed]
"""Method, term left out, share of public subjects -> printed scores."""

ABIDE: Numbers = {
    ("fedgems", "none", 0.2): Printed(0.6583, 0.6761, 0.6411, 0.6546),
    ("fedet", "none", 0.2): Printed(0.6489, 0.7234, 0.6028, 0.6550),
    ("gahfl", "none", 0.2): Printed(0.6751, 0.6975, 0.6611, 0.6690),
    ("fedgems", "none", 0.3): Printed(0.6799, 0.6458, 0.7512, 0.6759),
    ("fedet", "none", 0.3): Printed(0.6897, 0.6623, 0.7369, 0.6846),
    ("gahfl", "none", 0.3): Printed(0.6980, 0.7250, 0.6814, 0.6928),
    ("fedgems", "none", 0.4): Printed(0.6934, 0.7048, 0.6823, 0.6913),
    ("fedet", "none", 0.4): Printed(0.6950, 0.6938, 0.7033, 0.6922),
    ("gahfl", "none", 0.4): Printed(0.7140, 0.7083, 0.7281, 0.7084),
    ("gahfl", "bce", 0.3): Printed(0.6653, 0.6401, 0.7101, 0.6604),
    ("gahfl", "sd", 0.3): Printed(0.6744, 0.6959, 0.6580, 0.6744),
    ("gahfl", "wd", 0.3): Printed(0.6662, 0.6790, 0.6560, 0.6649),
}


def _swapped(accuracy: float, specificity: float, sensitivity: float, auc: float) -> Printed:
    """Scores printed with controls as the positive class.

    Of 358 patients and 581 controls, the printed specificity and sensitivity give the printed accuracy this way alone.
    """
    return Printed(accuracy, sensitivity, specificity, auc)


ADHD200: Numbers = {
    ("fedgems", "none", 0.2): _swapped(0.6543, 0.6982, 0.6165, 0.6560),
    ("fedet", "none", 0.2): _swapped(0.6366, 0.7112, 0.5885, 0.6433),
    ("gahfl", "none", 0.2): _swapped(0.6634, 0.7577, 0.6101, 0.6729),
    ("fedgems", "none", 0.3): _swapped(0.6722, 0.7507, 0.6210, 0.6794),
    ("fedet", "none", 0.3): _swapped(0.6682, 0.7347, 0.6195, 0.6721),
    ("gahfl", "none", 0.3): _swapped(0.6855, 0.7683, 0.6341, 0.6943),
    ("fedgems", "none", 0.4): _swapped(0.6856, 0.7442, 0.6395, 0.6893),
    ("fedet", "none", 0.4): _swapped(0.6806, 0.7528, 0.6296, 0.6870),
    ("gahfl", "none", 0.4): _swapped(0.6996, 0.7751, 0.6441, 0.7041),
    ("gahfl", "bce", 0.3): _swapped(0.6540, 0.7394, 0.6000, 0.6634),
    ("gahfl", "sd", 0.3): _swapped(0.6691, 0.7474, 0.6193, 0.6782),
    ("gahfl", "wd", 0.3): _swapped(0.6630, 0.7138, 0.6228, 0.6661),
}

COHORTS: Mapping[str, Numbers] = {"abide": ABIDE, "adhd200": ADHD200}
"""A cohort whose name begins so -> its numbers."""
SWAPPED = frozenset({"adhd200"})

MEAN_DROPS: Mapping[tuple[str, str], float] = {
    ("gahfl", "abide"): 0.0249,
    ("gahfl", "adhd200"): 0.0255,
    ("fedgems", ""): 0.0334,
    ("fedet", ""): 0.0418,
}
"""Method, cohort -> mean drop of accuracy over PAF and OFOM (section III-D); no cohort: over both."""


def paper_cohort_of(cohort: str) -> str:
    """`abide` or `adhd200`; empty for another cohort."""
    return next((name for name in COHORTS if cohort.lower().startswith(name)), "")


def printed_scores(cohort: str, variant: ShownVariant) -> Printed | None:
    """The printed scores of a variant on this cohort of the paper; None where the paper has none.

    Sizes of networks and numbers of rounds do not count: the page lists which of them differ.
    """
    ratio = variant.setting("public.ratio")
    changed = variant.is_poisoned or variant.is_defended or variant.setting("gcna_training") == "l_wd"
    if not cohort or ratio is None or changed:
        return None
    return COHORTS[cohort].get((variant.method, variant.setting("without") or "none", float(ratio)))


def mean_drop(method: str, cohort: str) -> float | None:
    """The printed mean drop of accuracy under both attacks; None for another method or cohort."""
    return MEAN_DROPS.get((method, cohort), MEAN_DROPS.get((method, ""))) if cohort else None


# Mean drops of accuracy under attacks beside those printed in the paper of GAHFL (section III-D).

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
    for drop in drops:
        alike = drop.attack in PRINTED_ATTACKS and not drop.variant.is_defended
        if alike and printed_scores(cohort, drop.clean) is not None and drop.clean.setting("public.ratio") == RATIO:
            ours.setdefault(drop.variant.method, []).append(drop)
    parts = []
    for method, own in ours.items():
        both = sorted(drop.attack for drop in own) == sorted(PRINTED_ATTACKS) and own[0].clean == own[1].clean
        printed = mean_drop(method, cohort)
        if both and own[0].clean.setting("without") in (None, "none") and printed is not None:
            changes = [scored.difference(drop.variant.name, drop.clean.name, "accuracy", POOLED).mean for drop in own]
            parts.append(f"{own[0].variant.method_title} {short(-float(np.mean(changes)))} (printed {short(printed)})")
    state = "Mean drop of accuracy over PAF and OFOM, all test subjects of a fold together"
    return f"{state}: {listed(parts, 'and')}." if parts else ""


# What methods with a public set reach beside the public set alone and the paper's numbers, and who taught them.

ALONE = "recurrent-public"
METRICS = ("accuracy", "specificity", "recall", "auc")
NOTHING = 0.0005
"""Share of visits that the table shows as none."""


@dataclass(frozen=True)
class PublicTable:
    """The methods of an experiment that read a public set.

    Attributes:
        answers: how far federations are from the public subjects alone, a sentence for each share of them.
        taught: how often institutions taught the global network, a row for each federation.
        silent: titles of those that no institution taught in the last round.
        own_term: whether a method has the divergence from the consensus that Fed-ET lacks.
        rows: of every such variant the share of public subjects, our scores, and printed ones if `source` is not empty.
        source: where they are printed; empty without any.
        swapped: whether the printed sensitivity and specificity are of the other class.
        short: sentence on scans that are shorter than a crop; empty where none is.
    """

    answers: list[str]
    taught: list[Row]
    silent: list[str]
    own_term: bool
    rows: list[Row]
    source: str
    swapped: bool
    short: str


def read_public_sets(outline: ExperimentOutline, scored: Scored, cohort: str) -> PublicTable | None:
    """The table of an experiment with public subjects; None for any other, and for one on poison alone."""
    clean = [variant for variant in outline.variants if not variant.is_poisoned and not variant.is_defended]
    public = [variant for variant in clean if ratio_of(variant) is not None]
    if not public or (any(each.is_poisoned for each in outline.variants) and ALONE not in {v.method for v in public}):
        return None
    paper = paper_cohort_of(cohort) if outline.paper == GAHFL_PAPER else ""
    ordered = sorted(by_family(public), key=lambda variant: float(ratio_of(variant) or 0))
    federations = [(variant, shares) for variant in ordered if (shares := taught_shares(variant)) is not None]
    return PublicTable(
        against_public(public, scored),
        [Row(variant, _taught_cells(variant, shares)) for variant, shares in federations],
        silent(ordered),
        any((variant.setting("consensus") or 0) > 0 for variant in public),
        [Row(variant, _cells(scored, variant, paper)) for variant in ordered],
        GAHFL_SOURCE if paper else "",
        paper in SWAPPED,
        short_scans(outline.variants),
    )


def ratio_of(variant: ShownVariant) -> float | None:
    """The share of training subjects that are public; None without a public set."""
    ratio = variant.setting("public.ratio")
    return None if ratio is None else float(ratio)


def taught_shares(variant: ShownVariant) -> "pd.Series[float] | None":
    """Share of the visits of public samples that institutions taught in each round, mean over folds and repeats.

    None where no history has it: the method has no institutions, or its results are older than this number.
    """
    tables = [pd.read_parquet(path) for path in variant.histories]
    tables = [table for table in tables if "taught" in table and table["taught"].notna().any()]
    return pd.concat(tables).groupby("round")["taught"].mean() if tables else None


def silent(variants: Sequence[ShownVariant]) -> list[str]:
    """Titles of the federations that no institution taught in the last round."""
    taught = [(variant.title, taught_shares(variant)) for variant in variants]
    return [title for title, shares in taught if shares is not None and shares.iloc[-1] < NOTHING]


def against_public(public: Sequence[ShownVariant], scored: Scored) -> list[str]:
    """`30 % public: ...`: every federated method minus the network of the public subjects alone, by AUC."""
    sentences = []
    for ratio in sorted({ratio_of(variant) or 0.0 for variant in public}):
        own = [variant for variant in public if ratio_of(variant) == ratio]
        alone = next((variant for variant in own if variant.method == ALONE), None)
        others = [variant for variant in own if variant.method != ALONE]
        if alone is not None and others:
            tests = scored.differences(alone.name, [each.name for each in others], "auc")
            parts = [f"{tests[each.name][0].as_difference()} with {each.unswept_title}" for each in others]
            holding = [each.unswept_title for each in others if significant(tests[each.name][1])]
            state = f"significant: {listed(holding, 'and')}" if holding else "none is significant"
            reached = scored.interval(alone.name, "auc")
            sentences.append(
                f"{100 * ratio:g} % public: the public subjects alone reach an AUC of {reached}. "
                f"With institutions it is {listed(parts, 'and')}; {state}."
            )
    return sentences


def short_scans(variants: Sequence[ShownVariant]) -> str:
    """Scans that are shorter than the crops of recurrent networks; empty where there are none."""
    scans: dict[tuple[str, int], int] = {}
    for variant in variants:
        if variant.setting("crops") is not None and variant.costs:
            counts = read_json(variant.costs[0])["counts"]
            way = "dropped_subjects" if "dropped_subjects" in counts else "wrapped_subjects"
            scans[way, int(variant.setting("length"))] = int(counts[way])
    words = {"wrapped_subjects": "repeated from their beginning", "dropped_subjects": "left out of training"}
    return " ".join(
        f"Scans shorter than a crop of {length} volumes, {words[way]}: {count}."
        for (way, length), count in sorted(scans.items())
        if count
    )


def _taught_cells(variant: ShownVariant, shares: "pd.Series[float]") -> tuple[Cell, ...]:
    reading = [variant.setting(key) for key in ("self_evaluation", "pool")]
    text = [f"by {reading[0]}", f"one {reading[1]}"] if all(reading) else [NONE, NONE]
    chosen = [shares.iloc[0], shares.iloc[1] if len(shares) > 1 else np.nan, shares.iloc[-1], shares.mean()]
    ratio = ratio_of(variant) or 0.0
    return (
        Cell(f"{100 * ratio:g} %", ratio),
        *map(Cell, text),
        *(Cell(f"{rounded(100 * each, 1)} %" if np.isfinite(each) else NONE, each) for each in chosen),
    )


def _cells(scored: Scored, variant: ShownVariant, paper: str) -> tuple[Cell, ...]:
    ratio = ratio_of(variant) or 0.0
    cells = [Cell(f"{100 * ratio:g} %", ratio)]
    cells += [score_cell(scored.interval(variant.name, metric, POOLED)) for metric in METRICS]
    if paper:
        printed = printed_scores(paper, variant)
        numbers = printed or (np.nan,) * len(METRICS)
        cells += [Cell(short(value) if printed else NONE, value, printed=True) for value in numbers]
    return tuple(cells)


# What GAHFL brings to the report: public subjects with and without institutions, and the numbers of its tables.

GAHFL = Citation(
    "Hu Y, Liu R, Zhang J, Huang ZA, Song L, Tan KC (2024). Heterogeneous structured federated learning with graph "
    "convolutional aggregation for MRI-based mental disorder diagnosis. International Joint Conference on Neural "
    "Networks."
)
FEDGEMS = Citation(
    "Cheng S, Wu J, Xiao Y, Liu Y, Liu Y (2021). FedGEMS: federated learning of larger server models via selective "
    "knowledge fusion. arXiv 2110.11027."
)
FEDET = Citation(
    "Cho YJ, Manoel A, Joshi G, Sim R, Dimitriadis D (2022). Heterogeneous ensemble knowledge transfer for training "
    "large models in federated learning. International Joint Conference on Artificial Intelligence, 2881\u20132887.",
    "10.24963/ijcai.2022/399",
)

PAPER = Paper(
    name="gahfl",
    templates=PackageLoader("brainfed.papers", "templates/gahfl"),
    panels=(
        Panel("printed-drops", Place.AFTER_SCORES, printed_drops, "gahfl/drops.html.j2"),
        Panel(
            "public-sets",
            Place.AFTER_SCORES,
            lambda known: read_public_sets(known.outline, known.scored, known.cohort.name),
            "gahfl/public-sets.html.j2",
        ),
    ),
    cites=(
        Cited((GAHFL,), frozenset({"gahfl", "recurrent-local", "recurrent-central", "recurrent-public"})),
        Cited((FEDGEMS,), frozenset({"fedgems"})),
        Cited((FEDET,), frozenset({"fedet"})),
    ),
)
