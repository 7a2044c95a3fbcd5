"""Made-up files in the layout of ADHD-200 Preprocessed (Athena, CC200), which the shipped configs read."""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

REGIONS, VOLUMES = 190, 60
ROOT = Path("resources/adhd200")
TRAINING, TEST = "ADHD200_CC200_TCs_filtfix", "ADHD200_CC200_TCs_TestRelease"
FOLDERS = {
    "1": "Peking_1", "2": "Brown", "3": "KKI", "4": "NeuroIMAGE", "5": "NYU", "6": "OHSU", "7": "Pittsburgh",
    "8": "WashU",
}  # fmt: skip
"""Code of a site -> its folder in an archive."""
HEADER = ("ScanDir ID", "Site", "Gender", "Age", "Handedness", "DX", "Secondary Dx ", "QC_Rest_1")
TABLES = (
    "Brown_TestRelease", "KKI", "NYU", "NeuroIMAGE", "OHSU_TestRelease", "OHSU", "Peking_1_TestRelease", "Peking_1",
    "Pittsburgh",
)  # fmt: skip
"""Tables that the shipped configs name."""
ID_COLUMNS = {"Peking_1_TestRelease": "ID", "WashU": "ScanDirID"}


def series_path(folder: Path, site: str, subject: str, archive: str = TRAINING) -> Path:
    """Where an archive has the series of a subject, below a project's folder."""
    name = f"{int(subject):07d}"
    return folder / ROOT / f"series/{archive}/{FOLDERS[site]}/{name}/sfnwmrda{name}_session_1_rest_1_cc200_TCs.1D"


def write_series(path: Path, seed: int) -> None:
    """190 regions and 60 volumes as AFNI's 3dROIstats writes them, beside a file that is not band-passed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(seed).standard_normal((VOLUMES, REGIONS))
    rows = [
        [f"{path.stem}.nii.gz", f"{number}[?]", *(f"{value:.6f}" for value in row)] for number, row in enumerate(values)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(
            [["File", "Sub-brick", *(f"Mean_{i}" for i in range(1, REGIONS + 1))], *rows]
        )
    path.with_name(f"s{path.name.removeprefix('sf')}").write_text("not read\n")


def write_table(folder: Path, name: str, site: str, people: Iterable[tuple[str, str]]) -> None:
    """A site's table with its own name of the first column; one row for each subject and its code of diagnosis."""
    path = folder / ROOT / f"phenotypic/{name}_phenotypic.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        [subject, site, "01"[number % 2], f"{8 + number % 10}.5", "-999", diagnosis, "ODD, enuresis", "N/A"]
        for number, (subject, diagnosis) in enumerate(people)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[ID_COLUMNS.get(name, HEADER[0]), *HEADER[1:]], *rows])


def write_release(folder: Path, each: int) -> None:
    """All tables of the shipped configs, with `each` subjects of every diagnosis a table, and everybody's series.

    Brown's diagnoses are pending and Pittsburgh has controls alone, as in the real tables. Every id has lost its zeros.
    """
    for number, name in enumerate(TABLES):
        site = next(code for code, title in FOLDERS.items() if name.removesuffix("_TestRelease") == title)
        codes = {"2": ["pending"], "7": ["0"]}.get(site, ["0", "1", "2", "3"])
        people = [(f"{1000 * (number + 1) + at}", code) for at, code in enumerate(codes * each)]
        write_table(folder, name, site, people)
        for subject, _ in people:
            archive = TEST if name.endswith("TestRelease") else TRAINING
            write_series(series_path(folder, site, subject, archive), int(subject))
