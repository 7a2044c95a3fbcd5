"""What a job has really imported, and the sources that its run has stated."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from brainfed.runtime.records import state_sources
from brainfed.runtime.records._imported import VARIABLE

PACKAGE = {
    "brainfed/__init__.py": "",
    "brainfed/light.py": "VALUE = 1\n",
    "brainfed/neutral.py": "VALUE = 1\n",
    "brainfed/late.py": "VALUE = 1\n",
}
JOB = """
import sys
import {real} as imported
imported.note_sources()
import brainfed.light, brainfed.neutral
import brainfed.light as light
{between}
print(light.VALUE, imported.edited_code({{"brainfed.neutral"}}.__contains__))
"""
REAL = Path(sys.modules[state_sources.__module__].__file__ or "")


def run(folder, between=""):
    """The value that a job in this folder reads, and its digest of edited code."""
    for file in (REAL, REAL.parents[1] / "_disk.py", REAL.parents[1] / "_errors.py"):
        text = file.read_text().replace("from brainfed.runtime import", "from disk import")
        (folder / file.name.lstrip("_")).write_text(text.replace("from brainfed.runtime._errors", "from errors"))
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(real="imported", between=textwrap.dedent(between))],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    value, _, edited = done.stdout.rstrip("\n").partition(" ")
    return value, edited


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    for place, text in PACKAGE.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    state_sources({tuple(place.split("/")): text.encode() for place, text in PACKAGE.items()}, tmp_path / ".snakemake")
    return tmp_path


def test_code_that_is_as_stated(folder):
    assert run(folder) == ("1", "")
    assert run(folder, "import brainfed.late") == ("1", "")


def test_edited_code_whether_or_not_it_is_put_back(folder):
    light = folder / "brainfed" / "light.py"
    light.write_text("VALUE = 2\n")
    value, edited = run(folder)
    assert (value, len(edited)) == ("2", 16)
    assert run(folder, f"open({str(light)!r}, 'w').write('VALUE = 1\\n')") == ("2", edited)
    assert run(folder) == ("1", "")


def test_an_edit_of_the_same_size_and_time_is_not_hidden_by_compiled_code(folder):
    light = folder / "brainfed" / "light.py"
    when = light.stat().st_mtime_ns
    subprocess.run([sys.executable, "-c", "import brainfed.light"], cwd=folder, check=True)
    for value in ("2", "1", "3"):
        light.write_text(f"VALUE = {value}\n")
        os.utime(light, ns=(when, when))
        assert run(folder)[0] == value
        plain = [sys.executable, "-c", "import brainfed.light; print(brainfed.light.VALUE)"]
        assert subprocess.run(plain, cwd=folder, capture_output=True, text=True, check=True).stdout == f"{value}\n"


def test_what_changes_no_result_and_what_is_not_imported(folder):
    for name in ("neutral", "late"):
        (folder / "brainfed" / f"{name}.py").write_text("VALUE = 2\n")
    assert run(folder) == ("1", "")
    assert run(folder, "import brainfed.late")[1]


def test_ends_of_lines_change_nothing_and_a_new_module_does(folder):
    (folder / "brainfed" / "light.py").write_bytes(b"VALUE = 1\r\n")
    assert run(folder) == ("1", "")
    (folder / "brainfed" / "added.py").write_text("")
    assert run(folder, "import brainfed.added")[1]


def test_a_script_that_was_edited_before_it_was_copied(folder):
    texts = PACKAGE | {"scripts/score.py": "print(1)\n"}
    state_sources({tuple(place.split("/")): text.encode() for place, text in texts.items()}, folder / ".snakemake")
    copy = folder / "tmp.score.py"
    named = f"__real_file__, __file__ = {str(copy)!r}, '/any/workflow/scripts/score.py'"
    for text, same in (("print(1)\n", True), ("print(2)\n", False)):
        copy.write_text(f"import pickle\n######## snakemake preamble end #########\n{text}")
        assert (run(folder, named)[1] == "") == same


def test_without_a_statement_nothing_is_edited(folder, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    (folder / "brainfed" / "light.py").write_text("VALUE = 2\n")
    assert run(folder) == ("2", "")


@pytest.mark.parametrize("content", [None, b"", b'{"brainfed', b"[]", b"{}"])
def test_code_counts_as_edited_where_its_statement_is_gone(folder, content):
    stated = Path(os.environ[VARIABLE])
    remove = f"from pathlib import Path; Path({str(stated)!r}).unlink()"
    assert run(folder, remove) == ("1", ""), "it was read when the job began"
    if content is not None:
        stated.write_bytes(content)
    value, edited = run(folder)
    assert (value, len(edited)) == ("1", 16)
