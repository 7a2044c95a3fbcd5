"""Exclude subjects by the quality of their scans; the first rule that applies gives the reason."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from brainfed.cohort.settings.exclusion import ExclusionSettings

UNLABELLED_COPY = "unlabelled copy of a labelled subject"
"""The reason to leave of a subject without a label."""
MEASURES = "expected whole FreeSurfer measures"
"""Words of every exclusion for FreeSurfer measures."""


class Rule(NamedTuple):
    """One rule: its measure, whether its limit is the largest allowed value, and its words."""

    measure: str
    largest: bool
    words: str
    unit: str = ""
    factor: float = 1.0


RULES = {
    "min_volumes": Rule("timepoints", False, "kept volumes"),
    "min_kept_seconds": Rule("kept_seconds", False, "kept length", " s"),
    "min_kept_share": Rule("kept_share", False, "kept share of volumes", " %", 100),
    "mean_fd": Rule("mean_fd", True, "mean FD", " mm"),
    "min_coverage": Rule("coverage", False, "mean coverage of regions", " %", 100),
    "max_barely_seen_regions": Rule("barely_seen_regions", True, "barely seen regions"),
    "max_constant_regions": Rule("silent_regions", True, "number of regions without signal"),
    "min_tsnr": Rule("tsnr", False, "tSNR"),
}
"""Setting -> rule, in the order of the settings' fields."""

_KIND = re.compile(rf"(?:{'|'.join(rule.words for rule in RULES.values())}) (?:above|below) [^(]+")


def exclusion(measures: Mapping[Any, Any], settings: ExclusionSettings) -> str:
    """Reason to leave a subject out, such as `mean FD above 0.5 mm (0.73)`; empty if it stays.

    Args:
        measures: one subject's row of the measures; NaN (unknown) excludes nobody.
        settings: the limits.
    """
    for name, rule in active_rules(settings).items():
        limit, value = getattr(settings, name), measures[rule.measure]
        if not np.isnan(value) and (value > limit if rule.largest else value < limit):
            side = "above" if rule.largest else "below"
            return f"{rule.words} {side} {rule.factor * limit:g}{rule.unit} ({rule.factor * value:.3g})"
    return ""


def active_rules(settings: ExclusionSettings) -> dict[str, Rule]:
    """Rules that are set, in their order."""
    return {field.name: RULES[field.name] for field in fields(settings) if getattr(settings, field.name) is not None}


def exclusion_kind(reason: str) -> str:
    """Kind of a reason of `exclusion`, such as `mean FD above 0.5 mm`; empty for other reasons."""
    kind = reason.partition(" (")[0]
    return kind if _KIND.fullmatch(kind) else ""
