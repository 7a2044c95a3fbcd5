"""Generated FreeSurfer tables and stats files: `brainfed check` and the jobs of the run give one verdict.

A cohort of eight has tables in one of their variants, sound or changed in one way. The check looks at the cohort; the
run's own functions list, ingest, read and include it, in one process. `BRAINFED_CASES` is their number.
"""

import random
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings, FreeSurferSettings
from brainfed.cohort.sources import list_cohort
from brainfed.configuration.layout import CohortInputs
from brainfed.runtime import UserError
from support.broken.cases import cases
from support.files.freesurfer_project import write_subject
from support.files.run_of_cohort import found_by_severity, of_the_run

SEEDS = cases(first=27, usual=60)
SUBJECTS = tuple(f"s{number}" for number in range(1, 9))
ASEG = ("Left-Hippocampus", "Right-Hippocampus", "Left-Thalamus", "Right-Thalamus", "EstimatedTotalIntraCranialVol")
OLD = {"Left-Thalamus": "Left-Thalamus-Proper", "Right-Thalamus": "Right-Thalamus-Proper"}
CORTEX = ("lh_cuneus_thickness", "lh_insula_thickness", "lh_MeanThickness_thickness")
ENIGMA = ("L_cuneus_thickavg", "R_cuneus_thickavg", "L_cuneus_surfavg", "LThickness", "Lhippo", "ICV")


@dataclass
class Case:
    """Tables as frames of text, how they are written, and what a reader should make of them.

    Attributes:
        tables: first cell of the header -> rows by subject.
        expected: numbers by subject; None: either verdict, as long as all agree.
        stops: words of a run that stops; empty: it goes on.
        transposed: whether tables have a column a subject.
        damage: bytes -> bytes, of the first table.
    """

    tables: list[tuple[str, pd.DataFrame]]
    expected: pd.DataFrame | None
    leave: tuple[str, ...] = ()
    stops: str = ""
    settings: dict = field(default_factory=dict)
    separator: str = "\t"
    transposed: bool = False
    damage: object = staticmethod(lambda content: content)
    subjects_dir: bool = False
    kind: str = ""


def numbers(seed, columns, subjects=SUBJECTS):
    """Positive numbers with three digits behind the point, as text."""
    values = np.random.default_rng(seed).uniform(1, 5000, (len(subjects), len(columns)))
    return pd.DataFrame(
        [[f"{value:.3f}" for value in row] for row in values], index=list(subjects), columns=list(columns)
    )


def sound(draw):
    aseg, cortex = numbers(draw.randrange(999), ASEG), numbers(draw.randrange(999), CORTEX)
    return Case(
        [("Measure:volume", aseg), ("lh.aparc.thickness", cortex)],
        pd.concat([aseg, cortex], axis=1).astype(float),
        separator=draw.choice(["\t", "\t", ",", ";", " "]),
    )


def turned(draw, case):
    case.transposed = True


def hospitals(draw, case):
    """One table a hospital, of which each has its subjects, and eTIV beside the thickness in agreement."""
    cut = draw.randint(1, 7)
    (first, aseg), cortex = case.tables
    case.tables = [(first, aseg.iloc[:cut]), (first, aseg.iloc[cut:]), cortex]
    if draw.random() < 0.5:
        case.transposed = True


def versions(draw, case):
    """FreeSurfer 6 in one hospital, 7 in another."""
    hospitals(draw, case)
    first, aseg = case.tables[1]
    case.tables[1] = first, aseg.rename(columns=OLD)
    if draw.random() < 0.5:
        case.tables[:2] = [(first, pd.concat([table for _, table in case.tables[:2]]).fillna(""))]
        case.separator = "\t" if case.separator == " " else case.separator
        case.transposed = False


def version_lacks_a_column(draw, case):
    hospitals(draw, case)
    case.transposed = False
    first, aseg = case.tables[1]
    case.tables[1] = first, aseg.drop(columns="Right-Hippocampus")
    case.leave = tuple(aseg.index)


def enigma(draw, case):
    table = numbers(draw.randrange(999), ENIGMA)
    case.tables, case.settings, case.separator = [("SubjID", table)], {"columns": ("L*", "R_*", "ICV")}, ","
    case.expected = table.astype(float)


def strange_column(draw, case):
    """A column whose name does not tell what it is; asegstats2table writes volumes alone."""
    enigma(draw, case)
    _, table = case.tables[0]
    case.tables = [("SubjID", table.assign(Lscore="3.5"))]
    if draw.random() < 0.5:
        case.settings["columns"] += ("Lscore",)
        case.expected = case.expected.assign(Lscore=3.5)
    else:
        case.stops = r"found 'Lscore' \(1 such columns\), whose name does not tell"


def own_segmentation(draw, case):
    (first, aseg), cortex = case.tables
    case.tables = [(first, aseg.assign(**{"Left-CA1": "512.5"})), cortex]
    case.expected = case.expected.assign(**{"Left-CA1": 512.5})
    case.expected = case.expected[[*ASEG, "Left-CA1", *CORTEX]]


def one_cell(draw, case):
    cell = draw.choice(["", "NA", "x", "inf", "1_0", "-3", "1e39", "12,5" if case.separator in "\t;" else "x", "-999"])
    name, column = draw.choice(SUBJECTS), draw.choice(ASEG)
    if case.separator == " " and not cell:
        cell = "n/a"
    case.tables[0][1].loc[name, column] = cell
    case.leave = (name,)
    case.kind += f" {cell!r}"


def no_row(draw, case):
    name = draw.choice(SUBJECTS)
    case.tables[0] = case.tables[0][0], case.tables[0][1].drop(index=name)
    case.leave = (name,)


def further_rows(draw, case):
    first, aseg = case.tables[0]
    case.tables[0] = first, pd.concat([aseg, numbers(0, ASEG, ("else", "other"))])


def disagreement(draw, case):
    first, aseg = case.tables[0]
    case.tables.append((first, aseg.assign(**{"Left-Hippocampus": "1.5"}).iloc[:2]))
    case.stops = "expected in column 'Left-Hippocampus' what"


def row_twice(draw, case):
    first, aseg = case.tables[0]
    case.tables[0] = first, pd.concat([aseg, aseg.iloc[:1]])
    case.stops = "expected every subject once"


def column_twice(draw, case):
    first, aseg = case.tables[0]
    case.tables[0] = first, pd.concat([aseg, aseg[["Left-Hippocampus"]]], axis=1)
    case.stops = "expected every column once"


def strangers(draw, case):
    first, aseg = case.tables[0]
    case.tables[0] = first, aseg.rename(index=lambda name: f"x{name}")
    case.stops = "expected rows of the cohort's subjects"


def merged_transposed(draw, case):
    enigma(draw, case)
    case.transposed, case.stops = True, "the table is transposed"
    case.settings = {"columns": ("*",)}
    case.expected = None
    case.stops = "."


def written_otherwise(draw, case):
    changes = {
        "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
        "line ends": lambda content: content.replace(b"\n", b"\r\n"),
        "trailing separator": lambda content: content.replace(b"\n", case.separator.encode() + b"\n"),
        "blank lines": lambda content: content.replace(b"\n", b"\n\n", 2),
        "UTF-16": lambda content: content.decode().encode("utf-16"),
    }
    name = draw.choice(sorted(changes))
    case.damage, case.kind = changes[name], f"written otherwise: {name}"


def ragged(draw, case):
    case.damage = lambda content: content.rstrip(b"\n") + case.separator.encode() + b"7\n"
    case.stops = "cells as in the header"


def empty(draw, case):
    case.damage = lambda content: b""
    case.stops = "found an empty file"


def damaged(draw, case):
    place, byte = draw.random(), draw.randrange(256)
    if draw.random() < 0.5:
        case.damage = lambda content: content[: int(place * len(content))]
    else:
        case.damage = lambda content: content[: (at := int(place * len(content)))] + bytes([byte]) + content[at + 1 :]
    case.expected = None


def stats_files(draw, case):
    """A SUBJECTS_DIR; `write` makes its files."""
    case.subjects_dir = True
    case.tables, case.expected = [], None
    case.kind = draw.choice(
        ["sound", "dangling", "dangling folder", "absent", "cut", "flipped", "two versions", "lacks one"]
    )


CHANGES = (
    *(None, turned, hospitals, versions, version_lacks_a_column, enigma, strange_column, own_segmentation, one_cell),
    *(one_cell, no_row, further_rows, disagreement, row_twice, column_twice, strangers, merged_transposed),
    *(written_otherwise, written_otherwise, ragged, empty, damaged, damaged, stats_files, stats_files, stats_files),
)


def made(seed):
    draw = random.Random(seed)
    case, change = sound(draw), CHANGES[seed % len(CHANGES)]
    case.kind = "sound" if change is None else change.__name__
    if change is not None:
        change(draw, case)
    return case, draw


def text_of(case, first, table):
    table = table.T if case.transposed else table
    rows = [
        [first, *table.columns],
        *([name, *cells] for name, cells in zip(table.index, table.to_numpy(), strict=True)),
    ]
    return "\n".join(case.separator.join(row) for row in rows) + "\n"


def write_stats(folder, case, draw):
    """Stats files of all subjects; those of s3 are changed. Sets what leaves."""
    for number, name in enumerate(SUBJECTS):
        write_subject(folder, name, hippocampus=3000.5 + number)
    stats, target = folder / "s3" / "stats", folder / "s3" / "stats" / draw.choice(["aseg.stats", "lh.aparc.stats"])
    case.leave = () if case.kind in ("sound", "two versions") else ("s3",)
    if case.kind == "dangling":
        target.unlink()
        target.symlink_to(folder / "annex")
    elif case.kind == "absent":
        target.unlink()
    elif case.kind == "dangling folder":
        stats.rename(folder / "moved")
        stats.symlink_to(folder / "nowhere")
    elif case.kind in ("cut", "flipped"):
        content, at = target.read_bytes(), draw.randrange(target.stat().st_size)
        target.write_bytes(
            content[:at] + (b"" if case.kind == "cut" else bytes([draw.randrange(256)]) + content[at + 1 :])
        )
        case.leave = None
    elif case.kind == "two versions":
        for number, name in enumerate(SUBJECTS):
            path = folder / name / "stats" / "aseg.stats"
            structure = "Left-Thalamus" if number % 2 else "Left-Thalamus-Proper"
            path.write_text(f"{path.read_text()}  2  10  7000  {7000.5 + number}  {structure}  70 8 30 110 80\n")
    elif case.kind == "lacks one":
        for name in SUBJECTS:
            if name != "s3":
                path = folder / name / "stats" / "aseg.stats"
                path.write_text(f"{path.read_text()}  2  26  700  700.5  Left-Accumbens-area  70 8 30 110 80\n")


def cohort(folder, case, draw):
    rows = "\n".join(
        f"{name},{'ab'[n % 2]},2{n},male,{('patient', 'control')[n // 4]}" for n, name in enumerate(SUBJECTS)
    )
    (folder / "people.csv").write_text(f"participant_id,site,age,sex,diagnosis\n{rows}\n")
    if case.subjects_dir:
        write_stats(folder / "subjects", case, draw)
        freesurfer = FreeSurferSettings(subjects_dir=str(folder / "subjects"))
    else:
        paths = []
        for number, (first, table) in enumerate(case.tables):
            paths.append(folder / f"table{number}.txt")
            content = text_of(case, first, table).encode()
            paths[-1].write_bytes(content if number else case.damage(content))
        freesurfer = FreeSurferSettings(tables=tuple(map(str, paths)), **case.settings)
    return CohortSettings(
        source="freesurfer", phenotype=str(folder / "people.csv"), freesurfer=freesurfer, on_invalid="drop"
    )


def values_of(file):
    """The measures that the jobs wrote, by subject."""
    return pd.DataFrame(file.arrays["measures"], index=list(file.subjects), columns=file.metadata["regions"])


@pytest.mark.parametrize("seed", SEEDS)
def test_check_and_run_give_one_verdict_and_the_numbers_that_were_written(tmp_path, seed):
    case, draw = made(seed)
    settings = cohort(tmp_path, case, draw)
    stopped, reasons, written = of_the_run(tmp_path, settings)
    checked = check_cohort("c", settings)
    stops, drops = found_by_severity(checked)
    assert stops == ([stopped] if stopped else []), (case.kind, stops, stopped)
    assert "\n" not in stopped
    if stopped or case.stops:
        assert case.expected is None or (case.stops and re.search(case.stops, stopped)), (case.kind, stopped)
        return
    left = {name for name, reason in reasons.items() if reason}
    assert {person.subject for person in checked.people} == set(SUBJECTS) - left
    assert drops.keys() == left, case.kind
    for name in left:
        assert reasons[name] in drops[name]
    if case.subjects_dir:
        assert case.leave is None or set(case.leave) == left, (case.kind, reasons)
    if case.expected is not None:
        assert left == set(case.leave), (case.kind, reasons)
        expected, values = case.expected.drop(index=list(left)).astype(np.float32), values_of(written)
        pd.testing.assert_frame_equal(values[list(expected)], expected, check_exact=True)
        assert sorted(values) == sorted(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_missing_code_that_no_cell_holds_is_no_setting_of_the_job(tmp_path, seed):
    """What the job reads with the codes that cells may hold is what it reads with all."""
    case, draw = made(seed)
    settings = cohort(tmp_path, case, draw)
    files = settings.freesurfer.tables or sorted(Path(settings.freesurfer.subjects_dir).rglob("*.stats"))
    files = [file for file in files if Path(file).is_file()]
    cells = re.split(r"[\s,;|]+", "".join(Path(file).read_text("latin-1") for file in files))
    codes = tuple(dict.fromkeys(["-77", *draw.sample(cells, min(3, len(cells))), "0.123456", "s99"]))
    codes = tuple(code for code in codes if code)
    every = replace(settings, missing=codes)
    try:
        given = CohortInputs("c", every, list_cohort("c", every)).measure_settings()["missing"]
    except UserError:
        return
    if not case.stops:
        assert not {"-77", "0.123456", "s99"} & set(given), case.kind
    stopped, reasons, written = of_the_run(tmp_path, every)
    *others, again = of_the_run(tmp_path, replace(settings, missing=tuple(given)))
    assert [stopped, reasons] == others, case.kind
    assert written is None or values_of(written).equals(values_of(again))


def test_two_versions_of_stats_files_are_one_structure_and_said(tmp_path):
    case = Case([], None, subjects_dir=True, kind="two versions")
    settings = cohort(tmp_path, case, random.Random(0))
    stopped, reasons, written = of_the_run(tmp_path, settings)
    assert not stopped and not any(reasons.values())
    values = values_of(written)
    assert "Left-Thalamus-Proper" not in values
    np.testing.assert_array_equal(values["Left-Thalamus"], [7000.5 + number for number in range(8)])
    notes = [one.sentence for one in check_cohort("c", settings).findings if one.severity == "notes"]
    assert len(notes) == 1
    assert "Left-Thalamus-Proper of FreeSurfer 6 and Left-Thalamus of FreeSurfer 7 are read as one" in notes[0]


def test_a_merged_table_with_a_column_a_subject_is_called_transposed(tmp_path):
    table = numbers(0, ENIGMA)
    case = Case([("measure", table)], None, settings={"columns": ("*",)}, transposed=True, separator=",")
    settings = cohort(tmp_path, case, random.Random(0))
    stopped, _, _ = of_the_run(tmp_path, settings)
    assert "table0.txt: expected a row a subject, found a column a subject; the table is transposed" in stopped
