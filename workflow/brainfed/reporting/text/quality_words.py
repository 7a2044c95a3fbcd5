"""Short sentences on the quality of a cohort's data."""

import pandas as pd
from scipy import stats

from brainfed.cohort.settings.flags import FlagSettings
from brainfed.reporting.people import used
from brainfed.reporting.rounding import rounded, significant_digits

FALSE_DISCOVERY_RATE = 0.05
FEW = 1.0
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
    people: pd.DataFrame,
    connections: pd.DataFrame,
    flag: FlagSettings,
    *,
    morphometry: bool = False,
) -> list[str]:
    """Sentences on motion in connectivity, odd scans and missing measures.

    Args:
        people: the participants with their measures.
        connections: table of `imaging.quality.qc_fc`.
        flag: limits beyond which a subject is listed.
        morphometry: whether the data are FreeSurfer measures, which have no time and no connectivity.
    """
    kept = used(people)
    sentences = [
        _qc_fc(connections),
        _unlike(kept, flag),
        _unknown(kept, MEASURED_OF_STRUCTURE if morphometry else MEASURED),
    ]
    return [sentence for sentence in sentences if sentence]


def _qc_fc(connections: pd.DataFrame) -> str:
    known = connections.dropna(subset=["r", "p"])
    if known.empty:
        return ""
    share, within = _significant(known["p"]), _significant(connections["within_p"].dropna())
    found = (
        f"at a false discovery rate of 5 %; median |r| {rounded(known['r'].abs().median())}; {within} % when every "
        "subject is held against its own site alone"
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
    absent = [title for column, title in asked.items() if kept[column].isna().all()]
    partly = [
        f"{title} for {int(kept[column].isna().sum())} subject{'s' if kept[column].isna().sum() != 1 else ''}"
        for column, title in asked.items()
        if kept[column].isna().any() and title not in absent
    ]
    return f"Not measured: {', '.join([*absent, *partly])}." if absent or partly else ""
