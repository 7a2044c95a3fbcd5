"""Generated phenotype tables: `brainfed check` accepts and refuses the same ones as ingestion, in its words.

Dialects, encodings, headers, ids, units, missing codes and damage are drawn from a seed; `BRAINFED_CASES` counts them.
An accepted table must give the people that were written into it, and the values that pandas reads.
"""

import csv
import io
import math
import os
import random
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from brainfed.checking._project import check_cohort
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.cohort.sources import list_cohort
from brainfed.runtime import UserError

CASES = int(os.environ.get("BRAINFED_CASES", "200"))
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252")
ENDS = ("\n", "\r\n", "\r")
SEPARATORS = (",", ";", "\t", "|", " ")
MISSING = ("", "n/a", "NA", "NULL", "#N/A", "None", "-9999", "<NA>")
IDS = ("{:03d}", "s{}", "{:05d}.0", "s {}")
UNITS = {None: 1, "years": 1, "months": 12, "days": 365.25}
SITES = ("a", "b", "Zürich", "Paris, Nord", "x;y", "<c>", "{d}")
STRANGE = ("s{x}", "s<x>", "s{", "=1+1", "@x", "-x")
PEOPLE = 8


def row_of(rows, draw):
    return rows[draw.randrange(1, len(rows))]


def cell(name, text):
    def damage(draw, rows):
        row_of(rows, draw)[rows[0].index(name)] = text

    return damage


def duplicated(draw, rows):
    rows.append([*rows[1][:-1], "another note"])


def same_twice(draw, rows):
    rows.append(list(rows[2]))


def ragged(draw, rows):
    row_of(rows, draw).pop()


def wide(draw, rows):
    row_of(rows, draw).append("more")


def without_column(draw, rows):
    at = rows[0].index(draw.choice(["site", "age", "dx"]))
    for row in rows:
        del row[at]


def column_twice(draw, rows):
    for row in rows:
        row.append(row[rows[0].index("age")])


def header_only(draw, rows):
    del rows[1:]


def blank_first(draw, rows):
    rows.insert(0, [])


def visits(draw, rows):
    for row in rows:
        row.append("ses" if row is rows[0] else "1")
    rows.append([*rows[1][:-1], "2"])


def several(draw, rows):
    cell("sex", "9")(draw, rows)
    cell("age", "old")(draw, rows)
    cell("site", "")(draw, rows)


DAMAGE_OF_ROWS = (
    cell("sex", "3"),
    cell("dx", "maybe"),
    cell("age", "-4"),
    cell("age", "999"),
    cell("age", "1_0"),
    cell("age", "nan years"),
    cell("site", ""),
    cell("id", ""),
    cell("id", "s0\u200b1"),
    cell("id", "none-such"),
    duplicated,
    same_twice,
    ragged,
    wide,
    without_column,
    column_twice,
    header_only,
    blank_first,
    visits,
    several,
    *(cell("id", strange) for strange in STRANGE),
)
DAMAGE_OF_BYTES = (
    lambda content: b"sep=;\r\n" + content,
    lambda content: b"PK\x03\x04" + content,
    lambda content: b"",
    lambda content: content[:30] + b"\x00" + content[30:],
    lambda content: content + b'"s99,a,20,m,p',
)


@dataclass
class Case:
    """Some tables, and the people in them before anything was broken: id -> site, age, sex, diagnosis."""

    content: list[bytes]
    people: dict[str, tuple[str, float, str | None, int]]
    broken: bool
    columns: dict[str, Any] = field(default_factory=dict)
    read: dict[str, Any] = field(default_factory=dict)


def made(seed):
    """The case of a seed."""
    draw = random.Random(seed)
    columns = ["id", "site", "age", "sex", "dx", *draw.sample(["note", "Höhe", "a, b", "x;y;z"], draw.randint(0, 3))]
    draw.shuffle(columns)
    separator, identity = draw.choice(SEPARATORS), IDS[seed % len(IDS)]
    unit = draw.choice(list(UNITS))
    decimal = "," if separator != "," and draw.random() < 0.4 else "."
    people, rows = {}, [list(columns)]
    sites = draw.sample(SITES, 2)
    for number in range(PEOPLE):
        subject = identity.format(number)
        site, age = sites[number % 2], draw.choice([20, 31.5, 18.25])
        sex, patient = draw.choice(["m", "f"]), number // 2 % 2
        written = str(age * UNITS[unit]).replace(".", decimal)
        if draw.random() < 0.1:
            age, written = math.nan, draw.choice(MISSING)
        if draw.random() < 0.1:
            sex = draw.choice(MISSING)
        people[subject.removesuffix(".0")] = (site, float(age), {"m": "male", "f": "female"}.get(sex), patient)
        known = {"id": subject, "site": site, "age": written, "sex": sex, "dx": "cp"[patient]}
        rows.append([known.get(column, draw.choice(["", "x", "long, text", 'say "so"'])) for column in columns])
    body = rows[1:]
    draw.shuffle(body)
    rows[1:] = body
    broken = draw.random() < 0.5
    damage_bytes = None
    if broken and draw.random() < 0.8:
        draw.choice(DAMAGE_OF_ROWS)(draw, rows)
    elif broken:
        damage_bytes = draw.choice(DAMAGE_OF_BYTES)
    quoting = csv.QUOTE_ALL if separator == " " else draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    halves = [rows] if broken or draw.random() < 0.8 else [rows[:5], [rows[0], *rows[5:]]]
    encoding, end, form = draw.choice(ENCODINGS), draw.choice(ENDS), draw.choice(["NFC", "NFD"])
    form = form if encoding.startswith("utf") else "NFC"
    contents = []
    for half in halves:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator="\n", quoting=quoting)
        for row in half:
            writer.writerow(row)
            if draw.random() < 0.05:
                out.write("\n")
        text = unicodedata.normalize(form, out.getvalue()).replace("\n", end)
        if draw.random() < 0.2:
            text = text.rstrip("\r\n")
        contents.append(text.encode(encoding, errors="replace"))
    if damage_bytes:
        contents = [damage_bytes(contents[0])]
    read = {"sep": separator, "decimal": decimal, "encoding": encoding, "na_values": ["-9999"]}
    return Case(contents, people, broken, {"age_unit": unit}, read)


def settings_for(folder, tables, **columns):
    named = {"subject": "id", "site": "site", "age": "age", "sex": "sex", "diagnosis": "dx"}
    return CohortSettings(
        source="timeseries",
        phenotype=tuple(map(str, tables)),
        missing=("-9999",),
        series=str(folder / "series") + "/{subject}.csv",
        regions=3,
        min_timepoints=3,
        columns=ColumnSettings(**(named | columns)),
        codes=CodeSettings(sex={"m": "male", "f": "female"}, diagnosis={"p": "patient", "c": "control"}),
    )


def of_the_run(settings):
    """The participants, or the sentence that stops the run."""
    try:
        listing = list_cohort("c", settings)
        return ingest(listing.tables, settings, listing.absences), ""
    except UserError as error:
        return None, str(error)


def write_series(folder):
    """A sound series for everybody who is ever drawn, strange ids included."""
    (folder / "series").mkdir()
    draw = np.random.default_rng(0)
    numbered = [name.format(number).removesuffix(".0") for number in range(PEOPLE) for name in IDS]
    for subject in (*numbered, *STRANGE):
        np.savetxt(folder / "series" / f"{subject}.csv", draw.normal(size=(4, 3)), fmt="%.5f", delimiter=",")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Seed -> the case, the verdict of the run, and the stopping findings of the check."""
    folder = Path(tmp_path_factory.mktemp("tables"))
    write_series(folder)
    found = {}
    for seed in range(CASES):
        case = made(seed)
        tables = [folder / f"{seed}-{part}.csv" for part in range(len(case.content))]
        for table, content in zip(tables, case.content, strict=True):
            table.write_bytes(content)
        settings = settings_for(folder, tables, **case.columns)
        stops = [one.sentence for one in check_cohort("c", settings).findings if one.severity == "stops"]
        found[seed] = case, of_the_run(settings), stops
    return found


@pytest.mark.parametrize("seed", range(CASES))
def test_check_and_run_give_one_verdict_and_people_are_as_written_and_as_pandas_reads_them(verdicts, seed):
    case, (participants, sentence), stops = verdicts[seed]
    assert (participants is None) == bool(stops), (sentence, stops)
    absent = "expected the series" in sentence
    assert not sentence or sentence in stops or (absent and sentence.partition(", found")[0] in stops[0])
    if participants is not None:
        compare_with_written(case, participants)
        if not case.broken:
            compare_with_pandas(case, participants)


def compare_with_written(case, participants):
    rows = participants[["subject", "site", "age", "sex", "diagnosis"]].itertuples(index=False, name=None)
    found = {
        subject: (site, age, None if pd.isna(sex) else sex, int(diagnosis))
        for subject, site, age, sex, diagnosis in rows
    }
    if not case.broken:
        assert found.keys() == case.people.keys()
    for subject, (site, age, sex, diagnosis) in found.items():
        if subject in case.people:
            assert (site, sex, diagnosis) == (case.people[subject][0], *case.people[subject][2:])
            assert case.broken or age == pytest.approx(case.people[subject][1], rel=1e-12, nan_ok=True)


def compare_with_pandas(case, participants):
    read = pd.concat(
        [
            pd.read_csv(io.BytesIO(content), dtype={"id": str, "site": str, "dx": str}, **case.read)
            for content in case.content
        ]
    )
    read.columns = [unicodedata.normalize("NFC", name) for name in read.columns]
    read["id"] = read["id"].str.removesuffix(".0")
    expected = read.set_index("id").sort_index()
    assert expected.index.tolist() == participants["subject"].tolist()
    assert (
        expected["site"].map(lambda site: unicodedata.normalize("NFC", site)).tolist() == participants["site"].tolist()
    )
    assert (expected["dx"] == "p").tolist() == (participants["diagnosis"] == 1).tolist()
    ages = expected["age"].to_numpy(dtype=float) / UNITS[case.columns["age_unit"]]
    np.testing.assert_allclose(participants["age"].to_numpy(dtype=float), ages, rtol=1e-12)


def test_both_verdicts_and_every_kind_of_refusal_are_drawn(verdicts):
    sentences = [sentence for _, (_, sentence), _ in verdicts.values()]
    assert sentences.count("") >= CASES // 4
    assert len(sentences) - sentences.count("") >= CASES // 4
    for words in (
        "expected a sex code", "the age", "a site in column", "every subject once", "cells as in the header",
        "expected a column", "expected one column", "header only", "Excel's line", "Excel workbook", "zero bytes",
        "without a byte order mark", "empty file", "braces and angle brackets", "remove the blank",
    ):  # fmt: skip
        assert any(words in sentence for sentence in sentences), words


def test_no_sound_table_is_refused_but_for_its_encoding(verdicts):
    for case, (_, sentence), _ in verdicts.values():
        if sentence and not case.broken:
            assert "byte order mark" in sentence or "expected UTF-8 text" in sentence, sentence
