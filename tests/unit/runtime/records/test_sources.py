"""The cache of parsed files between two runs: the same digests, sooner, and never an old one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainfed.runtime.errors import UserError
from brainfed.runtime.records import sources
from brainfed.runtime.records.digests import SourceTree, code_digest


@pytest.fixture
def base(tmp_path: Path) -> Path:
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
def memory(tmp_path: Path) -> Path:
    return tmp_path / "records" / "sources.json"


def digest(base: Path, memory: Path | None = None) -> str:
    """The digest in a new process, which knows only the cache."""
    sources.meaning_of.cache_clear()
    tree = SourceTree(base, memory)
    found = code_digest("scripts/train.py", base=tree)
    tree.remember()
    return found


def test_a_cached_file_is_not_parsed_again(base: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = digest(base)
    assert digest(base, memory) == plain
    with monkeypatch.context() as patched:
        patched.setattr(sources.ast, "parse", None)
        assert digest(base, memory) == plain
    assert [path.name for path in memory.parent.iterdir()] == [memory.name]


def test_an_edit_is_seen_though_time_and_size_stay(base: Path, memory: Path) -> None:
    before, file = digest(base, memory), base / "pack" / "layers.py"
    state = file.stat()
    file.write_text(file.read_text().replace("3", "5"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file.stat().st_size == state.st_size
    assert digest(base, memory) == digest(base) != before


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"by": "another Python", "meanings": {}}', '{"by": null, "meanings": {"a": [1]}}']
)
def test_a_cache_that_is_damaged_or_of_another_python_is_made_anew(base: Path, memory: Path, content: str) -> None:
    memory.parent.mkdir()
    memory.write_text(content)
    assert digest(base, memory) == digest(base)
    assert len(json.loads(memory.read_text())["meanings"]) == 3


def test_a_cache_of_another_parser_does_not_count(base: Path, memory: Path) -> None:
    plain = digest(base, memory)
    kept = json.loads(memory.read_text())
    kept["meanings"] = {key: ["wrong", [], False] for key in kept["meanings"]}
    memory.write_text(json.dumps(kept))
    assert digest(base, memory) != plain
    memory.write_text(json.dumps(kept | {"by": "Python 2"}))
    assert digest(base, memory) == plain


def test_a_cache_half_written_by_a_killed_process_is_removed(base: Path, memory: Path) -> None:
    memory.parent.mkdir()
    source = (
        "import os; from pathlib import Path; from brainfed.runtime.records import sources\n"
        "Path.replace = lambda *_: os._exit(9)\n"
        f"sources._write(Path({str(memory)!r}), {{}})"
    )
    assert subprocess.run([sys.executable, "-c", source]).returncode == 9
    assert len(list(memory.parent.iterdir())) == 1
    digest(base, memory)
    assert [path.name for path in memory.parent.iterdir()] == [memory.name]


def test_two_nodes_with_the_same_process_number_write_apart(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    memory.parent.mkdir()
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    monkeypatch.setattr(Path, "replace", lambda path, target: written.append(path))
    for _ in range(2):
        sources._write(memory, {})
    assert len(set(written)) == 2


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(base: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert digest(base, tmp_path / "file" / "sources.json") == digest(base)


def test_what_another_target_needed_stays_remembered_until_it_is_edited(base: Path, memory: Path, monkeypatch) -> None:
    def remembered() -> int:
        return len(json.loads(memory.read_text())["meanings"])

    digest(base, memory)
    (base / "scripts" / "other.py").write_text("import pack.other")
    tree = SourceTree(base, memory)
    code_digest("scripts/other.py", base=tree)
    tree.remember()
    assert remembered() == 3 + 2
    (base / "pack" / "layers.py").write_text("DEPTH = 9")
    digest(base, memory)
    assert remembered() == 3 + 2


def test_an_edit_during_a_run_changes_no_digest_of_the_run(base: Path, memory: Path) -> None:
    plain, tree = digest(base), SourceTree(base, memory)
    (base / "pack" / "layers.py").write_text("def")
    (base / "scripts" / "train.py").unlink()
    assert code_digest("scripts/train.py", base=tree) == plain


def test_a_file_that_no_digest_needs_is_not_parsed(base: Path, memory: Path, monkeypatch) -> None:
    parsed, plain = [], sources.ast.parse
    monkeypatch.setattr(sources.ast, "parse", lambda content: parsed.append(content) or plain(content))
    digest(base, memory)
    assert len(parsed) == 3
    assert (base / "pack" / "other.py").read_bytes() not in parsed


def test_an_invalid_file_stops_its_importers_alone(base: Path, memory: Path) -> None:
    (base / "pack" / "other.py").write_text("def")
    assert digest(base, memory) == digest(base)
    (base / "pack" / "layers.py").write_text("def")
    with pytest.raises(UserError, match=r"layers\.py: not valid Python"):
        digest(base, memory)
