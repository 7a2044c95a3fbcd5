"""Files of a made-up cohort for any config: as many as a start of the workflow and `brainfed check` read."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import nibabel as nib
import numpy as np

from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources._files import filled
from brainfed.configuration import ProjectSettings
from support.files.bids_dataset import AFFINE, MOTION, SHAPE, Derivative, confounds, write_atlas
from support.files.freesurfer_project import REGIONS, write_table
from support.files.tu_data_set import write_data_set

VOLUMES = 60
CLASSES = {"ENZYMES": 6, "IMDB-MULTI": 3, "COLLAB": 3}
"""Number of labels of a public data set, where there are more than two."""


def write_cohorts(folder: Path, project: ProjectSettings, subjects: int) -> None:
    """What the cohorts of a project read, below the folder of the project, of so many subjects each.

    Raises:
        AssertionError: a cohort has a source for which no files are made up.
    """
    for name, cohort in project.cohorts.items():
        if cohort.source == "tudataset":
            _write_graphs(folder, cohort, subjects)
        elif cohort.source == "bids":
            _write_derivative(folder, cohort, _sites(cohort, project), subjects)
        elif cohort.source in ("timeseries", "nifti"):
            _write_subjects(folder, name, cohort, _sites(cohort, project), subjects)
        else:
            assert cohort.source == "simulate", f"{__file__} makes up no files for source {cohort.source}"


def _write_graphs(folder: Path, cohort: CohortSettings, subjects: int) -> None:
    for name in cohort.tudataset.names:
        if not (folder / cohort.tudataset.folder / name).exists():
            write_data_set(folder / cohort.tudataset.folder, name, subjects, labels=tuple(range(CLASSES.get(name, 2))))


def _write_derivative(folder: Path, cohort: CohortSettings, sites: Sequence[str], subjects: int) -> None:
    tree = Derivative(folder / str(cohort.bids.derivatives))
    names = [f"sub-{number:02d}" for number in range(subjects)]
    for number, name in enumerate(names):
        space, task = str(cohort.bids.space or "T1w"), str(cohort.bids.task or "rest")
        tree.write_run(name.removeprefix("sub-"), space=space, task=task, seed=number)
    people = [_person(name, number, cohort, sites) for number, name in enumerate(names)]
    for at, path in enumerate(cohort.tables or [tree.folder / "participants.tsv"]):
        _write_rows(folder / path, people[at :: max(1, len(cohort.tables))])
    _write_parcellation(folder, cohort)


def _write_parcellation(folder: Path, cohort: CohortSettings) -> None:
    """Three regions where the config has its parcellation and its table of regions."""
    written = write_atlas(folder / "written-atlas")
    for key, path in (("parcellation", cohort.parcellation), ("labels", cohort.labels)):
        if path is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(Path(written[key]).read_bytes())


def _write_subjects(folder: Path, name: str, cohort: CohortSettings, sites: Sequence[str], subjects: int) -> None:
    """The tables of subjects, a file of each, and a table of thickness where the cohort has one."""
    ids = [f"{number:06d}" for number in range(subjects)]
    people = [_person(subject, number, cohort, sites) for number, subject in enumerate(ids)]
    for at, path in enumerate(cohort.tables):
        _write_rows(folder / path, people[at :: len(cohort.tables)])
    paths = [_paths(name, cohort, person) for person in people]
    for number, (series, table) in enumerate(paths):
        _write_series(folder / series, number, cohort)
        if table is not None:
            (folder / table).parent.mkdir(parents=True, exist_ok=True)
            # As many as a scan this short can lose.
            chosen = list(cohort.confound_columns or MOTION)
            confounds(VOLUMES, number)[chosen].to_csv(folder / table, sep="\t", index=False, na_rep="n/a")
    if cohort.source == "nifti":
        _write_parcellation(folder, cohort)
    for path in cohort.freesurfer.tables:
        random = np.random.default_rng(len(path))
        names = [_filled(name, "freesurfer.id", cohort.freesurfer.id, cohort, person) for person in people]
        rows = {subject: np.round(2.5 + 0.2 * random.standard_normal(3), 3) for subject in names}
        columns = [f"{Path(path).name[:2]}_{region}_thickness" for region in REGIONS]
        write_table(folder / path, f"{columns[0][:2]}.aparc.thickness", columns, rows)


def _sites(cohort: CohortSettings, project: ProjectSettings) -> list[str]:
    """Codes of sites; a site of a study has its own alone, and those of the groups where sites are grouped."""
    grouped = [site for group in project.split.groups.values() for site in group]
    named = [project.study.site] if project.study.site else grouped or ["alpha", "beta", "gamma", "delta"]
    codes = {site: code for code, site in cohort.codes.site.items()}
    return [codes.get(site, site) for site in named]


def _person(subject: str, number: int, cohort: CohortSettings, sites: Sequence[str]) -> dict[str, str]:
    """A row of the table, column -> cell, with the config's names and codes."""
    columns, codes = cohort.columns, cohort.codes
    learnt = set(cohort.classes) or {"patient", "control"}
    diagnoses = [code for code, meaning in codes.diagnosis.items() if meaning in learnt]
    row = {column: values[0] for column, values in cohort.rows.items()}
    row |= {str(columns.file): subject} if columns.file is not None else {}
    row |= dict.fromkeys(columns.ids, subject)
    row |= {
        columns.site: sites[number // 2 // len(diagnoses) % len(sites)],
        columns.age: f"{20 + number % 30}",
        columns.sex: list(codes.sex)[number % len(codes.sex)],
    }
    row |= {str(columns.diagnosis): diagnoses[number // 2 % len(diagnoses)]} if columns.diagnosis is not None else {}
    return row | ({str(columns.mean_fd): f"{0.05 + number % 7 / 100:g}"} if columns.mean_fd is not None else {})


def _write_rows(path: Path, rows: Iterable[dict[str, str]]) -> None:
    people = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, people[0], delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(people)


def _paths(name: str, cohort: CohortSettings, person: dict[str, str]) -> tuple[str, str | None]:
    """The file of a subject and its table of confounds; a folder stands for any number of them."""
    series = _filled(name, "series", str(cohort.series).replace("**", "folder"), cohort, person)
    return series, None if cohort.confounds is None else _filled(name, "confounds", cohort.confounds, cohort, person)


def _filled(name: str, key: str, pattern: str, cohort: CohortSettings, person: dict[str, str]) -> str:
    code, subject = person[cohort.columns.site], person[cohort.columns.ids[0]]
    parts = {"file": subject, "subject": subject, "site": cohort.codes.site.get(code, code)}
    return filled(name, key, pattern, parts)


def _write_series(path: Path, seed: int, cohort: CohortSettings) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    if cohort.source == "nifti":
        voxels = random.normal(1000, 10, (*SHAPE, VOLUMES)).astype(np.float32)
        scan = nib.Nifti1Image(voxels, AFFINE)
        scan.header.set_xyzt_units("mm", "sec")
        scan.header["pixdim"][4] = 2.0
        nib.save(scan, path)
        return
    separator = {".csv": ",", ".txt": " "}.get(path.suffix, "\t")
    values = random.integers(-9999, 9999, (VOLUMES, cohort.regions or 12)).tolist()
    # A first line of whole numbers might be labels of regions.
    path.write_text("".join(separator.join(f"{value}.5" for value in row) + "\n" for row in values), encoding="utf-8")
