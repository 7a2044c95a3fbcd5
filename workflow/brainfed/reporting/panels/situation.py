"""What the first screen says beside the answer: on whom, what the method recognises, what it gives away."""

import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.panels.known import Known
from brainfed.reporting.people import read_cohort, used
from brainfed.reporting.scored import read_splits
from brainfed.reporting.tables.audit import read_leaks, spent
from brainfed.reporting.tables.exchanges import crossings_of
from brainfed.reporting.text.first_screen import Situation
from brainfed.reporting.variants import ShownVariant

GROUPS = ("recall", "specificity")


def situation(known: Known, site: str = "") -> Situation:
    """The situation of an experiment; `site`: of a study between sites, the one whose report it is."""
    split = known.outline.split
    left_out = split["validation"] == "leave_one_site_out"
    chosen = known.answer.chosen
    leak = None
    if chosen is not None and "audit" in known.outline.tables and not left_out:
        leaks = read_leaks([chosen], known.outline.tables["summary"], known.outline.tables["audit"])
        leak = next(((found.auc, found.low, found.high) for found in leaks), None)
    return Situation(
        kind=known.cohort.kind,
        institutions=known.institutions,
        drawn="sites" if left_out else split["institutions"],
        subjects=_subjects(known),
        tested=known.tested,
        found=_found(known, chosen.name) if chosen is not None and known.words.count == 2 else None,
        leak=leak,
        guaranteed=bool(chosen is not None and spent(chosen)),
        leaves=_leaves(chosen) if chosen is not None else (),
        shared_graph=tuple(
            dict.fromkeys(
                one.title for one in known.outline.variants if one.family == "federated" and _shares_a_graph(one)
            )
        ),
        counts=_counts(known) if known.words.count == 2 and known.cohort.kind != "graphs" else None,
        site=site,
    )


def _leaves(chosen: ShownVariant) -> tuple[str, ...]:
    """Tensors with an axis of subjects that the method sends, each once."""
    return tuple(dict.fromkeys(crossing.name for crossing in crossings_of(chosen) if crossing.patient_level))


def _shares_a_graph(variant: ShownVariant) -> bool:
    """Whether data of single subjects leave for a graph over institutions, of a method that is no control."""
    measured = variant.is_control or variant.is_poisoned
    return not measured and any(each.patient_level and each.stage == "graph" for each in crossings_of(variant))


def _counts(known: Known) -> tuple[int, int]:
    """Numbers of tested controls and patients."""
    kept, _ = _tested(known)
    return int((kept["diagnosis"] == 0).sum()), int((kept["diagnosis"] == 1).sum())


def _tested(known: Known) -> tuple[pd.DataFrame, int]:
    """The subjects with a class that a fold tests, and the number of all that are analysed."""
    cohort = known.cohort
    analysed = used(read_cohort(cohort.participants, cohort.included, cohort.measures))
    tested = set(read_splits(known.outline)["subject"])
    return analysed[analysed["subject"].isin(tested) & (analysed["diagnosis"] >= 0)], len(analysed)


def _subjects(known: Known) -> str:
    """`1,035 people of 20 sites (505 patients, 530 controls)`: those that a fold tests."""
    cohort, words = known.cohort, known.words
    kept, analysed = _tested(known)
    counts = ", ".join(f"{(kept['diagnosis'] == code).sum():,} {words.many[code]}" for code in words.shown)
    noun = "simulated people" if cohort.source == "simulate" else known.tested.noun
    many = f"{len(kept):,}" if len(kept) == analysed else f"{len(kept):,} of {analysed:,} analysed"
    sites = kept["site"].nunique()
    return f"{many} {noun} of {sites} {words.site}{'' if sites == 1 else 's'} ({counts})"


def _found(known: Known, variant: str) -> tuple[float, float] | None:
    """Mean share of patients found and of controls cleared, over institutions and runs."""
    table: pd.DataFrame = known.summary
    chosen = table[(table["variant"] == variant) & (table["scope"] == INSTITUTION)].set_index("metric")["mean"]
    recall, specificity = (float(chosen.get(metric, float("nan"))) for metric in GROUPS)
    return (recall, specificity) if pd.notna(recall) and pd.notna(specificity) else None
