"""What the page says about the quality of a cohort's data, in sentences for a reader who has no time."""

import pandas as pd
from scipy import stats

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.differences import GroupDifference, SiteDifferences, group_difference, site_differences
from brainfed.cohort.flag_settings import FlagSettings
from brainfed.reporting.intervals import signed
from brainfed.reporting.people import used

FALSE_DISCOVERY_RATE = 0.05
FEW = 1.0
"""Percent of the connections below which connectivity hardly goes with motion."""
MEASURED = {
    "mean_fd": "motion (mean FD)",
    "tr": "repetition time",
    "tsnr": "temporal signal-to-noise ratio",
    "timepoints": "scan length",
    "coverage": "coverage of regions",
    "typicality": "likeness of connectivity",
}
MEASURED_OF_STRUCTURE = {"mean_fd": MEASURED["mean_fd"]}
"""The same of a cohort of FreeSurfer measures."""


def quality_words(
    people: pd.DataFrame,
    connections: pd.DataFrame,
    flag: FlagSettings,
    words: ClassWords = DIAGNOSIS_WORDS,
    *,
    morphometry: bool = False,
) -> list[str]:
    """Sentences on motion in groups, sites and connectivity, on odd scans, and on what was not measured.

    Args:
        people: the participants with their measures.
        connections: as `imaging.qc_fc` writes them.
        flag: the limits of what is told.
        words: what the classes are called.
        morphometry: whether the data are FreeSurfer measures, which have no time and no connectivity.
    """
    kept = used(people)
    said = [
        _groups(group_difference(kept["mean_fd"], kept["diagnosis"])),
        _site(site_differences(kept["mean_fd"], kept["site"]), "motion (mean FD)"),
        _qc_fc(connections),
        _unlike(kept, flag),
        _site(site_differences(kept["mean_fc"], kept["site"]), "a subject\u2019s mean connectivity"),
        _unknown(kept, MEASURED_OF_STRUCTURE if morphometry else MEASURED),
    ]
    return [words.told(sentence) for sentence in said if sentence]


def _groups(found: GroupDifference | None) -> str:
    if found is None:
        return ""
    numbers = (
        f"mean FD {found.patients:.3f} against {found.controls:.3f} mm (difference "
        f"{signed(found.patients - found.controls)} mm, 95 % interval {signed(found.low)} to {signed(found.high)}, "
        f"d = {signed(found.effect, 2)}; Welch\u2019s t-test, {_p(found.p)})"
    )
    if not found.significant:
        return f"Patients and controls do not differ significantly in motion: {numbers}."
    which = "more" if found.patients > found.controls else "less"
    return (
        f"Patients moved {which} than controls: {numbers}. A method could tell them apart by motion alone; the method "
        "\u201cmotion\u201d shows how well, where it is among those of a table."
    )


def _site(found: SiteDifferences | None, what: str) -> str:
    if found is None:
        return ""
    differ = "Sites differ" if found.p < 0.05 else "Sites do not differ significantly"
    return (
        f"{differ} in {what}: the site explains {100 * found.explained:.0f} % of its variance over subjects (one-way "
        f"analysis of variance, {_p(found.p)})."
    )


def _qc_fc(connections: pd.DataFrame) -> str:
    known = connections.dropna(subset=["r", "p"])
    if known.empty:
        return ""
    share, within = _significant(known["p"]), _significant(connections["within_p"].dropna())
    found = (
        f"at a false discovery rate of 5 %; median |r| {known['r'].abs().median():.3f}; {within} % when every subject "
        "is held against its own site alone"
    )
    if share == "0":
        return f"Connectivity does not go with motion (QC-FC): none of {len(known):,} connections do, {found}."
    hardly = " hardly" if float(share) < FEW else ""
    return (
        f"Connectivity{hardly} goes with motion (QC-FC): {share} % of {len(known):,} connections correlate with mean "
        f"FD over subjects, {found}."
    )


def _significant(p: pd.Series) -> str:
    """Percent of the connections at a false discovery rate of 5 % (Benjamini & Hochberg)."""
    if p.empty:
        return "0"
    share = 100 * float((stats.false_discovery_control(p) <= FALSE_DISCOVERY_RATE).mean())
    return f"{share:.0f}" if share >= 1 or share == 0 else f"{share:.1g}"


def _unlike(kept: pd.DataFrame, flag: FlagSettings) -> str:
    if kept["typicality_z"].isna().all():
        return ""
    odd = int((kept["typicality_z"] < -flag.unlike).sum())
    return (
        f"{odd or 'No'} subject{'s have' if odd != 1 else ' has'} connectivity unlike the others\u2019 (robust z below "
        f"\u2212{flag.unlike:g}){'; listed, not left out' if odd else ''}."
    )


def _unknown(kept: pd.DataFrame, asked: dict[str, str]) -> str:
    absent = [title for column, title in asked.items() if kept[column].isna().all()]
    partly = [
        f"{title} for {int(kept[column].isna().sum())} subject{'s' if kept[column].isna().sum() != 1 else ''}"
        for column, title in asked.items()
        if kept[column].isna().any() and title not in absent
    ]
    return f"Not measured: {', '.join([*absent, *partly])}." if absent or partly else ""


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"
