"""200 generated phenotype tables: `brainfed check` accepts and refuses the same ones as ingestion, in its words.

Dialects, encodings, headers and damage are drawn from a seed. An accepted table must give the people that were
written into it.
"""

import csv
import io
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from brainfed.checking.cohort import check_cohort
from brainfed.cohort.phenotype.ingest import ingest
from brainfed.cohort.settings.cohort import CodeSettings, CohortSettings, ColumnSettings
from brainfed.cohort.sources.listing import list_cohort
from brainfed.runtime.errors import UserError

CASES = 200
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252")
ENDS = ("\n", "\r\n", "\r")
SEPARATORS = (",", ";", "\t")
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
    """One table, and the people in it before anything was broken: id -> site, age, sex, diagnosis."""

    content: bytes
    people: dict[str, tuple[str, float, str, int]]
    broken: bool


def made(seed):
    """The case of a seed."""
    draw = random.Random(seed)
    columns = ["id", "site", "age", "sex", "dx", *draw.sample(["note", "Höhe", "a, b", "x;y;z"], draw.randint(0, 3))]
    draw.shuffle(columns)
    separator = draw.choice(SEPARATORS)
    decimal = "," if separator != "," and draw.random() < 0.4 else "."
    people, rows = {}, [list(columns)]
    sites = draw.sample(SITES, 2)
    for number in range(PEOPLE):
        subject = f"{number:03d}" if seed % 3 else f"s{number}"
        site, age = sites[number % 2], draw.choice([20, 31.5, 18.25])
        sex, patient = draw.choice(["m", "f"]), number // 2 % 2
        people[subject] = (site, float(age), {"m": "male", "f": "female"}[sex], patient)
        known = {"id": subject, "site": site, "age": str(age).replace(".", decimal), "sex": sex, "dx": "cp"[patient]}
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
    out = io.StringIO()
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(out, delimiter=separator, lineterminator="\n", quoting=quoting)
    for row in rows:
        writer.writerow(row)
        if draw.random() < 0.05:
            out.write("\n")
    text = out.getvalue().replace("\n", draw.choice(ENDS))
    if draw.random() < 0.2:
        text = text.rstrip("\r\n")
    content = text.encode(draw.choice(ENCODINGS), errors="replace")
    return Case(damage_bytes(content) if damage_bytes else content, people, broken)


def settings_for(folder, table):
    return CohortSettings(
        source="timeseries",
        phenotype=str(table),
        series=str(folder / "series") + "/{subject}.csv",
        regions=3,
        min_timepoints=3,
        columns=ColumnSettings(subject="id", site="site", age="age", sex="sex", diagnosis="dx"),
        codes=CodeSettings(sex={"m": "male", "f": "female"}, diagnosis={"p": "patient", "c": "control"}),
    )


def of_the_run(settings):
    """The participants, or the sentence that stops the run."""
    try:
        listing = list_cohort("c", settings)
        return ingest(listing.phenotype, settings, listing.absences), ""
    except UserError as error:
        return None, str(error)


def write_series(folder):
    """A sound series for everybody who is ever drawn, strange ids included."""
    (folder / "series").mkdir()
    draw = np.random.default_rng(0)
    numbered = [name for number in range(PEOPLE) for name in (f"{number:03d}", f"s{number}")]
    for subject in (*numbered, *STRANGE):
        np.savetxt(folder / "series" / f"{subject}.csv", draw.normal(size=(4, 3)), fmt="%.5f", delimiter=",")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Seed -> the case, the verdict of the run, and the stopping findings of the check."""
    folder = Path(tmp_path_factory.mktemp("tables"))
    write_series(folder)
    found = {}
    for seed in range(CASES):
        case, table = made(seed), folder / f"{seed}.csv"
        table.write_bytes(case.content)
        settings = settings_for(folder, table)
        stops = [one.sentence for one in check_cohort("c", settings).findings if one.severity == "stops"]
        found[seed] = case, of_the_run(settings), stops
    return found


@pytest.mark.parametrize("seed", range(CASES))
def test_check_and_run_give_one_verdict(verdicts, seed):
    _, (participants, sentence), stops = verdicts[seed]
    assert (participants is None) == bool(stops), (sentence, stops)


@pytest.mark.parametrize("seed", range(CASES))
def test_the_sentence_of_the_run_is_among_those_of_the_check(verdicts, seed):
    _, (_, sentence), stops = verdicts[seed]
    absent = "expected the series file" in sentence
    assert not sentence or sentence in stops or (absent and sentence.partition(", found")[0] in stops[0])


@pytest.mark.parametrize("seed", range(CASES))
def test_an_accepted_table_gives_the_people_that_were_written(verdicts, seed):
    case, (participants, _), _ = verdicts[seed]
    if participants is None:
        return
    rows = participants[["subject", "site", "age", "sex", "diagnosis"]].itertuples(index=False, name=None)
    found = {subject: (site, age, sex, int(diagnosis)) for subject, site, age, sex, diagnosis in rows}
    if not case.broken:
        assert found == case.people
    assert all(case.people[subject] == person for subject, person in found.items() if subject in case.people)


def test_both_verdicts_and_every_kind_of_refusal_are_drawn(verdicts):
    sentences = [sentence for _, (_, sentence), _ in verdicts.values()]
    assert sentences.count("") >= 60
    assert len(sentences) - sentences.count("") >= 60
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
