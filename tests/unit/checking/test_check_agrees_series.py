"""200 generated files of region series: `brainfed check` accepts and refuses the same ones as the job, in its words.

Dialects, encodings, headers and damage are drawn from a seed. An accepted file must hold the numbers that were
written into it, so that nothing is lost or added silently.
"""

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from brainfed.checking._project import SeriesCheck
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import ListedSubject
from brainfed.imaging.series import read_shard
from brainfed.runtime import UserError, read_arrays, read_table
from support.files.run_of_cohort import parts_of

CASES = 200
LEAST = 4
SEPARATORS = (",", ";", "\t", " ", "   ", ", ", " ; ", "\t ")
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1")
ENDS = ("\n", "\n", "\r\n", "\r")
FORMATS = ("%.6f", "%.5g", "%.3e", "%d", "%d", "%.1f")
GYRI = ("Inferior Frontal Gyrus, pars triangularis", "Heschl's Gyrus", "V1", "M1; left", "Gyrus réctus", "Brain-Stem")


def no_header(draw, columns):
    return None


def marked(draw, columns):
    return [f"#{number}" for number in range(1, columns + 1)]


def words(draw, columns):
    return [f"R{number}" for number in range(columns)]


def quoted(draw, columns):
    return [f'"{draw.choice(GYRI)} {number}"' for number in range(columns)]


def counted(draw, columns):
    first = draw.choice([0, 1])
    return [str(first + number) for number in range(columns)]


def ascending(draw, columns):
    return [str(label) for label in sorted(draw.sample(range(10, 9000), columns))]


def unordered(draw, columns):
    return [str(label) for label in draw.sample(range(3000, 9000), columns)]


def as_reals(form):
    def labels(draw, columns):
        return [form % int(label) for label in ascending(draw, columns)]

    return labels


def counted_reals(draw, columns):
    return [f"{number}.0" for number in range(1, columns + 1)]


def with_a_minus(draw, columns):
    return ["-1", *(str(number) for number in range(2, columns + 1))]


def twice(draw, columns):
    return [*(labels := ascending(draw, columns)[:-1]), labels[-1]]


WRITTEN_AS_REALS = (as_reals("%.1f"), as_reals("%.18e"), as_reals("%+d"), counted_reals)
VOLUMES_ABOVE_INTEGERS = (with_a_minus, twice)
HEADERS = (
    *(no_header, no_header, marked, words, quoted, counted, ascending, ascending, unordered),
    *WRITTEN_AS_REALS,
    *VOLUMES_ABOVE_INTEGERS,
)


def cell(text):
    def damage(draw, rows):
        rows[draw.randrange(len(rows))][0] = text

    return damage


def longer_row(draw, rows):
    rows[-1].append("1")


def shorter_row(draw, rows):
    rows[-1].pop()


def trailing_separators(draw, rows):
    for row in rows:
        row.append("")


def constant(draw, rows):
    rows[:] = [list(rows[0]) for _ in rows]


def too_short(draw, rows):
    del rows[LEAST - 1 :]


def offset(draw, rows):
    rows[:] = [[f"{10**9 + float(value) / 1000:.9f}" for value in row] for row in rows]


def decimal_commas(draw, rows):
    rows[:] = [[value.replace(".", ",") for value in row] for row in rows]


DAMAGE_OF_ROWS = (
    *map(cell, ("nan", "inf", "x", "", "n/a", "1e999", "1_0")),
    longer_row,
    shorter_row,
    trailing_separators,
    constant,
    too_short,
    offset,
    decimal_commas,
)
DAMAGE_OF_BYTES = (
    lambda content: b"sep=;\n" + content,
    lambda content: b"# <matrix\n# >\n" + content,
    lambda content: b"",
    lambda content: b"PK\x03\x04" + content,
    lambda content: content[:20] + b"\x00" + content[20:],
)


@dataclass
class Case:
    """One file, the settings to read it with, the numbers before anything was broken, and whether something was."""

    content: bytes
    settings: CohortSettings
    truth: np.ndarray
    broken: bool


def made(seed, folder):
    """The case of a seed: three in five are sound, but for headers that may be ambiguous."""
    draw = random.Random(seed)
    columns, volumes, form = draw.randint(3, 9), draw.randint(6, 14), draw.choice(FORMATS)
    spread = 300 if form == "%d" else 1
    rows = [[form % draw.gauss(0, spread) for _ in range(columns)] for _ in range(volumes)]
    truth = np.array(rows, dtype=np.float64).astype(np.float32)
    header = draw.choice(HEADERS)
    names = header(draw, columns)
    settings = CohortSettings(source="timeseries", regions=draw.choice([columns, None]), min_timepoints=LEAST)
    listed = names is not None and (names[0].isdigit() or header in WRITTEN_AS_REALS) and header is not twice
    if listed and draw.random() < 0.3:
        table = folder / f"{seed}-labels.tsv"
        indices = [int(float(name)) + (names[0] == "0") for name in names]
        table.write_text("index\tname\n" + "".join(f"{index}\tN{index}\n" for index in indices))
        settings = replace(settings, labels=str(table), regions=None)
    if draw.random() < 0.25 or (form == "%d" and header in VOLUMES_ABOVE_INTEGERS):
        settings = replace(settings, header=names is not None)
    broken = draw.random() < 0.4
    if broken and draw.random() < 0.8:
        draw.choice(DAMAGE_OF_ROWS)(draw, rows)
        bytes_too = None
    else:
        bytes_too = draw.choice(DAMAGE_OF_BYTES) if broken else None
    encoding, end, separator = draw.choice(ENCODINGS), draw.choice(ENDS), draw.choice(SEPARATORS)
    lines = [separator.join(cells) for cells in ([names] if names else []) + rows]
    for _ in range(draw.choice([0, 0, 2])):
        lines.insert(draw.randint(0, len(lines)), draw.choice(["", "  "]))
    text = end.join(lines) + (end if draw.random() < 0.8 else "")
    content = text.encode(encoding)
    return Case(bytes_too(content) if bytes_too else content, settings, truth, broken)


def of_the_job(folder, subject, path, settings):
    """The problem of the subject, the series that was written, and the sentence of a run that stops."""
    out = parts_of(folder, subject)
    stopped = ""
    try:
        read_shard({subject: path}, settings, out)
    except UserError as error:
        stopped = str(error)
    read_shard({subject: path}, replace(settings, on_invalid="drop"), out)
    return read_table(out.quality)["problem"].iloc[0], read_arrays(out.series).arrays.get(subject), stopped


def of_the_check(subject, path, settings):
    """The sentences of the check, and the length that it saw."""
    check, refused = SeriesCheck("c", settings), []
    look = check.look(ListedSubject(subject, "a", str(path), None, "", "shard-00"), refused.append)
    assert not check.mistakes
    return [str(error) for error in refused], look


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Seed -> the case, the verdict of the job and that of the check."""
    folder = tmp_path_factory.mktemp("series")
    found = {}
    for seed in range(CASES):
        case, path, subject = made(seed, folder), folder / f"{seed}.txt", f"s{seed}"
        path.write_bytes(case.content)
        found[seed] = case, of_the_job(folder, subject, path, case.settings), of_the_check(subject, path, case.settings)
    return found


@pytest.mark.parametrize("seed", range(CASES))
def test_check_and_job_give_one_verdict_in_one_sentence_and_the_numbers_that_were_written(verdicts, seed):
    case, (problem, series, stopped), (refused, look) = verdicts[seed]
    assert refused == ([problem] if problem else [])
    assert stopped == problem
    assert (look is None) == (series is None) == bool(problem)
    if not problem:
        assert look.timepoints == len(series)
        assert np.array_equal(series, case.truth)


def test_both_verdicts_and_every_kind_of_refusal_are_drawn(verdicts):
    problems = [problem for _, (problem, *_), _ in verdicts.values()]
    assert problems.count("") >= 60
    assert len(problems) - problems.count("") >= 60
    for words_of in (
        "may be either", "finite number", "equal length", "decimal commas", "Excel's line", "zero bytes",
        "empty file", "single precision", "time points", "without a byte order mark", "expected a signal",
    ):  # fmt: skip
        assert any(words_of in problem for problem in problems), words_of


def test_no_sound_file_is_refused_but_for_an_ambiguous_line_or_its_encoding(verdicts):
    for case, (problem, *_), _ in verdicts.values():
        if problem and not case.broken:
            ambiguous = any(words in problem for words in ("may be either", "another order", "every region once"))
            assert ambiguous or "byte order mark" in problem or "utf-8" in problem, problem
