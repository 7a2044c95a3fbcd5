"""Made-up files in the layout of NCANDA and HCP, as the shipped configs of FGLBC read them."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

REGIONS = {"ncanda": 34, "hcp-rest": 360, "hcp-task": 360}
ROOT = Path("resources")


def write_table(path: Path, rows: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def write_series(path: Path, volumes: int, regions: int, separator: str) -> None:
    """A line a volume, a column a region."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = np.random.default_rng(sum(path.name.encode())).standard_normal((volumes, regions))
    np.savetxt(path, drawn, fmt="%.5f", delimiter=separator)


def write_ncanda(folder: Path, subjects: int) -> None:
    """A release's demographics.csv with two visits of everybody, and the series of all but the last subject."""
    header = ["subject", "arm", "visit", "site", "sex", "visit_age", "mri_restingstate_age", "exceeds_bl_drinking"]
    rows: list[list[object]] = [header]
    for number in range(subjects):
        name = f"NCANDA_S{number:05d}"
        for visit, later in (("baseline", 0), ("followup_1y", 1)):
            age = 12 + number % 9 + later
            rows.append(
                [name, "standard", visit, "ABCDE"[number % 5], "MF"[number // 2 % 2], age, age, "NY"[number % 2]]
            )
        if number < subjects - 1:
            write_series(folder / ROOT / f"ncanda/series/{name}.csv", 60 + number, REGIONS["ncanda"], ",")
    write_table(folder / ROOT / "ncanda/demographics.csv", rows)


def write_hcp(folder: Path, kind: str, subjects: int) -> None:
    """The table of open behavioural data, and the series of all but the last subject."""
    rows: list[list[object]] = [["Subject", "Release", "Acquisition", "Gender", "Age", "3T_RS-fMRI_PctCompl"]]
    for number in range(subjects):
        ages = ("22-25", "26-30", "31-35", "36+")[number % 4]
        rows.append([100_004 + number, "S1200", f"Q{number % 3:02d}", "FM"[number // 2 % 2], ages, 100.0])
        if number < subjects - 1:
            path = folder / ROOT / f"hcp/{kind}/{100_004 + number}.txt"
            write_series(path, 55 + number, REGIONS[f"hcp-{kind}"], " ")
    write_table(folder / ROOT / "hcp/unrestricted.csv", rows)


COHORTS: dict[str, Callable[[Path, int], None]] = {
    "ncanda": write_ncanda,
    "hcp-rest": lambda folder, subjects: write_hcp(folder, "rest", subjects),
    "hcp-task": lambda folder, subjects: write_hcp(folder, "task", subjects),
}
"""Name of a cohort -> function that writes its files below a folder."""
