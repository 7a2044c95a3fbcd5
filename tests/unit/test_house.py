"""Modules of the library are topics of some length, and folders of the tests bear the names of their rooms."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY, TESTS = REPOSITORY / "workflow" / "brainfed", REPOSITORY / "tests" / "unit"
LONGEST = 520
"""Lines of a module; a topic that needs more is two."""


def test_no_module_is_too_long_to_be_read_from_top_to_bottom():
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in LIBRARY.rglob("*.py")}
    assert {file.name: length for file, length in lengths.items() if length > LONGEST} == {}


def test_tests_lie_in_rooms_of_the_library_or_are_those_of_one_module():
    folders = {init.parent.relative_to(TESTS) for init in TESTS.rglob("__init__.py")}
    assert [
        folder
        for folder in folders
        if not (LIBRARY / folder).is_dir() and not (LIBRARY / folder.parent / f"_{folder.name}.py").exists()
    ] == []


def test_only_the_federation_writes_into_the_ledger():
    writers = {file for file in LIBRARY.rglob("*.py") if "ledger.record(" in file.read_text(encoding="utf-8")}
    assert {file.parent for file in writers} == {LIBRARY / "federation"}


def test_only_sharing_asks_a_link_for_a_sum():
    """`add_up` checks what is sent. Inside `federation`, strategies add up replies that the wire has checked."""
    rooms = {file: file.read_text(encoding="utf-8") for file in LIBRARY.rglob("*.py")}
    inside = {LIBRARY / "federation", LIBRARY / "sites"}
    outside = {file for file in rooms if inside.isdisjoint(file.parents)}
    assert {file for file in outside if re.search(r"\.total\(", rooms[file])} == set()
    askers = {file.name for file in rooms if re.search(r"\blink\.total\b", rooms[file])}
    assert askers == {"_sharing.py"}


def test_the_runtime_names_no_rule():
    rules = "\n".join(file.read_text() for file in (LIBRARY.parent / "rules").glob("*.smk"))
    names = re.findall(r"^rule (\w+):", rules, re.MULTILINE)
    sources = "\n".join(file.read_text() for file in (LIBRARY / "runtime").rglob("*.py"))
    assert len(names) > 20 and [name for name in names if re.search(rf"\b{name}\b", sources)] == []


def test_quick_settings_of_a_method_reach_no_job():
    readers = [
        file for file in LIBRARY.rglob("*.py") if re.search(r"\w\.quick\b(?!`)", file.read_text(encoding="utf-8"))
    ]
    assert readers == []
