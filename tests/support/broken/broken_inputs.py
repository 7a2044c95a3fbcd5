"""Small cohorts with exactly one thing broken, and what a user should read about it."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import yaml

from brainfed.checking import check_project
from brainfed.checking._project import check_config

HEADER = ["participant_id", "site", "age", "sex", "diagnosis"]
REGIONS, VOLUMES, TR = 4, 60, 2.0
SHAPE = (8, 6, 4)
AFFINE = np.array([[10.0, 0, 0, -40], [0, 10, 0, -30], [0, 0, 10, -20], [0, 0, 0, 1]])


@dataclass
class Cohort:
    """A folder, and the settings of the cohort in it as a config holds them."""

    folder: Path
    settings: dict[str, Any]
    split: dict[str, Any] = field(default_factory=lambda: {"count": 1, "folds": 2, "repeats": 1})

    @property
    def table(self) -> Path:
        return Path(self.settings["phenotype"])

    def series(self, subject: str) -> Path:
        return Path(self.settings["series"].format(subject=subject))

    def confounds(self, subject: str) -> Path:
        return Path(self.settings["confounds"].format(subject=subject))

    def rows(self) -> list[list[str]]:
        """The phenotype table, its header first."""
        with self.table.open(newline="") as file:
            return list(csv.reader(file))

    def write_rows(self, rows: Sequence[Sequence[object]], separator: str = ",") -> None:
        with self.table.open("w", newline="") as file:
            csv.writer(file, delimiter=separator).writerows(rows)

    def change(self, subject: str, column: str, value: str) -> None:
        """One cell of the phenotype table."""
        header, *rows = self.rows()
        for row in rows:
            if row[0] == subject:
                row[header.index(column)] = value
        self.write_rows([header, *rows])

    def configure(self) -> Path:
        """Write the config."""
        path = self.folder / "config.yaml"
        experiments = {"methods": {"variants": ["ridge-central"]}}
        content = {"project": "p", "cohorts": {"c": self.settings}, "split": self.split, "experiments": experiments}
        path.write_text(yaml.safe_dump(content))
        return path


@dataclass(frozen=True)
class Broken:
    """One broken cohort.

    Attributes:
        name: what is broken.
        make: breaks a good cohort.
        checked: what `brainfed check` says (a regular expression), empty where tables and headers do not show it.
        sentence: of the workflow's own function, empty where it is no error by design.
        subject: whom it concerns, empty where it is the whole cohort.
    """

    name: str
    make: Callable[[Cohort], None]
    checked: str
    sentence: str
    subject: str = ""


def ids(count: int) -> list[str]:
    return [f"s{number:02d}" for number in range(1, count + 1)]


def write_table(path: Path, subjects: Sequence[str]) -> None:
    """Two sites, both sexes, both diagnoses in each site."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for number, subject in enumerate(subjects):
            site, sex = ("a", "b")[number % 2], ("male", "female")[number // 4 % 2]
            writer.writerow([subject, site, 20 + number, sex, ("patient", "control")[number // 2 % 2]])


def numbers(subject: str, volumes: int = VOLUMES) -> np.ndarray:
    return np.random.default_rng(list(subject.encode())).standard_normal((volumes, REGIONS))


def write_series(path: Path, values: np.ndarray) -> None:
    rows = [[f"#{number}" for number in range(1, values.shape[1] + 1)]]
    rows += [[f"{value:.6f}" for value in row] for row in values.tolist()]
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


def series_cohort(folder: Path) -> Cohort:
    """12 subjects with 60 volumes of 4 regions in text files."""
    (folder / "series").mkdir()
    cohort = Cohort(
        folder,
        {
            "source": "timeseries",
            "phenotype": str(folder / "participants.csv"),
            "series": str(folder / "series" / "{subject}.1D"),
            "regions": REGIONS,
            "shards": 3,
        },
    )
    write_table(cohort.table, ids(12))
    for subject in ids(12):
        write_series(cohort.series(subject), numbers(subject))
    return cohort


def voxels(subject: str, volumes: int = VOLUMES) -> np.ndarray:
    """(x, y, z, time) float32: noise around 100."""
    random = np.random.default_rng(list(subject.encode()))
    return random.normal(100, 1, (*SHAPE, volumes)).astype(np.float32)


def write_image(path: Path, values: np.ndarray, affine: np.ndarray = AFFINE, tr: float = TR) -> None:
    image = nib.Nifti1Image(values, affine)
    image.header.set_xyzt_units("mm", "sec")
    if values.ndim == 4:
        image.header["pixdim"][4] = tr
    nib.save(image, path)


def write_confounds(path: Path, columns: dict[str, Sequence[object]]) -> None:
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def labels() -> np.ndarray:
    """Four slabs along x."""
    return np.repeat(np.arange(1, 5, dtype=np.int16), 2)[:, None, None] * np.ones(SHAPE, dtype=np.int16)


def image_cohort(folder: Path) -> Cohort:
    """8 subjects with small 4D images, a parcellation in four slabs, and confound tables."""
    (folder / "images").mkdir()
    cohort = Cohort(
        folder,
        {
            "source": "nifti",
            "phenotype": str(folder / "participants.csv"),
            "series": str(folder / "images" / "{subject}_bold.nii.gz"),
            "confounds": str(folder / "images" / "{subject}_confounds.tsv"),
            "confound_columns": ["motion"],
            "parcellation": str(folder / "atlas.nii.gz"),
            "labels": str(folder / "atlas.tsv"),
            "shards": 3,
        },
    )
    write_table(cohort.table, ids(8))
    nib.save(nib.Nifti1Image(labels(), AFFINE), folder / "atlas.nii.gz")
    (folder / "atlas.tsv").write_text("index\tname\n1\tA\n2\tB\n3\tC\n4\tD\n")
    for subject in ids(8):
        write_image(cohort.series(subject), voxels(subject))
        write_confounds(cohort.confounds(subject), {"motion": numbers(subject)[:, 0].round(4).tolist()})
    return cohort


def edit(config: Path, **changes: object) -> Path:
    """The same config with other values of some keys."""
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | changes))
    return config


def sentences(config: Path) -> list[str]:
    """What is wrong with a config alone."""
    return [found.sentence for found in check_config(config)[1]]


def notes_of(cohort: Cohort) -> list[str]:
    """What the check finds worth knowing."""
    return [found.sentence for found in check_project(cohort.configure()) if found.severity == "notes"]
