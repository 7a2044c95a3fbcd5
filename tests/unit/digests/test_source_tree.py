"""Parsed files and digests are cached from one start to the next; the cache is never out of date."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainfed.digests import SourceTree, code_digest
from brainfed.digests._definitions import source_of
from brainfed.digests._source_tree import Memory
from brainfed.runtime import UserError


@pytest.fixture
def base(tmp_path):
    """A script that imports a module, and a module that none imports."""
    folder = tmp_path / "workflow"
    for name, text in {
        "scripts/train.py": "from pack.layers import SLOPE\nprint(SLOPE)\n",
        "pack/__init__.py": "",
        "pack/layers.py": '"""Layers."""\n\nSLOPE = 3\n',
        "pack/other.py": "OTHER = 1\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def memory(tmp_path):
    return tmp_path / "records" / "sources.json"


def digest(base, memory=None):
    """The digest in a new process, which knows only the cache."""
    source_of.cache_clear()
    tree = SourceTree(base, memory)
    found = code_digest("scripts/train.py", base=tree)
    tree.remember()
    return found


def test_a_cached_file_is_not_parsed_again(base, memory, monkeypatch):
    plain = digest(base)
    assert digest(base, memory) == plain
    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", None)
        assert digest(base, memory) == plain
    assert [path.name for path in memory.parent.iterdir()] == [memory.name]


def test_an_edit_is_seen_though_time_and_size_stay(base, memory):
    before, file = digest(base, memory), base / "pack" / "layers.py"
    state = file.stat()
    file.write_text(file.read_text().replace("3", "5"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file.stat().st_size == state.st_size
    assert digest(base, memory) == digest(base) != before


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "\n", "{}\n{}", "[]\n[]", "\x00\n\x00"),
        '{"state": "", "finished": {}}\n{"by": "another Python", "sources": {}}',
        '{"state": null, "finished": null}\n{"by": null, "sources": {"a": [1]}}',
    ],
)
def test_a_cache_that_is_damaged_or_of_another_python_is_made_anew(base, memory, content):
    memory.parent.mkdir()
    memory.write_text(content)
    assert digest(base, memory) == digest(base)
    assert len(remembered(memory)) == 3


def remembered(memory):
    """The parsed files in a memory."""
    return json.loads(memory.read_text().splitlines()[1])["sources"]


def test_a_cache_of_another_parser_does_not_count(base, memory):
    plain = digest(base, memory)
    first, second = map(json.loads, memory.read_text().splitlines())
    first["finished"] = dict.fromkeys(first["finished"], "wrong")
    second["sources"] = {key: [[], [], [], ""] for key in second["sources"]}

    def keep(**further):
        memory.write_text("\n".join((json.dumps(first | further), json.dumps(second | further))))

    keep()
    assert digest(base, memory) == "wrong"
    keep(state="another")
    assert digest(base, memory) not in ("wrong", plain)
    keep(state="another", by="Python 2")
    assert digest(base, memory) == plain


def test_a_damaged_entry_is_parsed_anew(base, memory):
    plain = digest(base, memory)
    _, second = map(json.loads, memory.read_text().splitlines())
    second["sources"] = dict(zip(second["sources"], ([], [[[]], [], [], ""], 3), strict=True))
    memory.write_text("\n" + json.dumps(second))
    assert digest(base, memory) == plain


def test_a_start_without_an_edit_reads_the_digests_alone(base, memory, monkeypatch):
    plain = digest(base, memory)
    monkeypatch.setattr(Memory, "source", None)
    assert digest(base, memory) == plain


def test_a_cache_half_written_by_a_killed_process_is_removed(base, memory):
    memory.parent.mkdir()
    source = (
        "import os; from pathlib import Path; from brainfed.digests._source_tree import SourceTree\n"
        "Path.replace = lambda *_: os._exit(9)\n"
        f"tree = SourceTree({str(base)!r}, Path({str(memory)!r}))\n"
        "tree.source(('pack', 'layers')); tree.remember()"
    )
    assert subprocess.run([sys.executable, "-c", source]).returncode == 9
    assert len(list(memory.parent.iterdir())) == 1
    digest(base, memory)
    assert [path.name for path in memory.parent.iterdir()] == [memory.name]


def test_two_nodes_with_the_same_process_number_write_apart(base, memory, monkeypatch):
    written = []
    memory.parent.mkdir()
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    monkeypatch.setattr(Path, "replace", lambda path, target: written.append(path))
    for _ in range(2):
        digest(base, memory)
    assert len(set(written)) == 2


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(base, tmp_path):
    (tmp_path / "file").touch()
    assert digest(base, tmp_path / "file" / "sources.json") == digest(base)


def test_what_another_target_needed_stays_remembered_until_it_is_edited(base, memory, monkeypatch):
    digest(base, memory)
    (base / "scripts" / "other.py").write_text("import pack.other")
    tree = SourceTree(base, memory)
    code_digest("scripts/other.py", base=tree)
    tree.remember()
    assert len(remembered(memory)) == 3 + 2
    (base / "pack" / "layers.py").write_text("DEPTH = 9")
    digest(base, memory)
    assert len(remembered(memory)) == 3 + 2


def test_an_edit_during_a_run_changes_no_digest_of_the_run(base, memory):
    plain, tree = digest(base), SourceTree(base, memory)
    (base / "pack" / "layers.py").write_text("def")
    (base / "scripts" / "train.py").unlink()
    assert code_digest("scripts/train.py", base=tree) == plain


def test_a_file_that_no_digest_needs_is_not_parsed(base, memory, monkeypatch):
    parsed, plain = [], ast.parse
    monkeypatch.setattr(ast, "parse", lambda content: parsed.append(content) or plain(content))
    digest(base, memory)
    assert len(parsed) == 3
    assert (base / "pack" / "other.py").read_bytes() not in parsed


def test_an_invalid_file_stops_its_importers_alone(base, memory):
    (base / "pack" / "other.py").write_text("def")
    assert digest(base, memory) == digest(base)
    (base / "pack" / "layers.py").write_text("def")
    with pytest.raises(UserError, match=r"layers\.py: not valid Python"):
        digest(base, memory)
