"""Parsed files, each parsed once for all runs.

A parsed file is cached under the digest of its bytes, so the cache is never out of date. Reading the files takes
milliseconds; parsing them would take a second at every start of Snakemake.
"""

import ast
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from brainfed.runtime.errors import UserError
from brainfed.runtime.parts import write_whole
from brainfed.runtime.records.definitions import (
    EFFECT,
    Definition,
    Import,
    Source,
    digest_of,
    imports_of,
    is_text,
    last_name,
)
from brainfed.runtime.records.statements import Reader


@lru_cache(maxsize=4096)
def source_of(content: bytes, path: Path) -> Source:
    """The definitions and imports of a Python file's content.

    Raises:
        UserError: it is not valid Python.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: not valid Python ({error}); fix the file and run again.") from error
    definitions: list[Definition] = []
    imports: list[Import] = []
    body: list[int] = []
    for statement, runs in _top_level(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found = imports_of(statement)
        else:
            reader = Reader()
            definition = reader.definition(statement)
            found = reader.at_top
        if runs:
            body.extend(-1 - place for place in range(len(imports), len(imports) + len(found)))
        imports.extend(found)
        if not isinstance(statement, ast.Import | ast.ImportFrom) and (runs or EFFECT not in definition.marks):
            if runs:
                body.append(len(definitions))
            definitions.append(definition)
    return Source(tuple(definitions), tuple(imports), tuple(body), digest_of((ast.get_docstring(tree) or "").encode()))


def _top_level(statements: Sequence[ast.stmt], runs: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a module with whether they run: those for type checkers do not."""
    for statement in statements:
        if isinstance(statement, ast.If) and last_name(statement.test) == "TYPE_CHECKING":
            yield from _top_level(statement.body, runs=False)
            yield from _top_level(statement.orelse, runs)
        elif not is_text(statement):
            yield statement, runs


class Memory:
    """What earlier starts have computed, in a file: finished digests in its first line, parsed files in its second.

    The first line is enough for a start at which no file has changed. A memory that cannot be read or written costs
    time and nothing else.

    Args:
        path: the file.
        contents: place of each file of the tree -> its bytes.
    """

    def __init__(self, path: Path, contents: Mapping[tuple[str, ...], bytes]) -> None:
        self.path = path
        self._keys = {place: digest_of(content) for place, content in contents.items()}
        named = sorted(("/".join(place), key) for place, key in self._keys.items())
        self._state = digest_of(json.dumps([_by(), named]).encode())
        first = self._second = ""
        with suppress(OSError, ValueError):
            first, _, self._second = path.read_text(encoding="utf-8").partition("\n")
        self.finished: dict[str, str] = _finished(first, self._state)
        self._finished_before = len(self.finished)
        self._before: dict[str, Any] | None = None
        self._used: dict[str, Source] = {}

    def source(self, place: tuple[str, ...], content: bytes, path: Path) -> Source:
        """The parsed file of this place and content.

        Raises:
            UserError: it is not valid Python.
        """
        if self._before is None:
            self._before, self._second = _sources(self._second), ""
        key = self._keys[place]
        if key not in self._used:
            try:
                self._used[key] = _restored(self._before[key])
            except (KeyError, ValueError, TypeError):
                self._used[key] = source_of(content, path)
        return self._used[key]

    def write(self) -> None:
        """Write what was asked for, and what was known before of files that are still there: other targets need it."""
        before = self._before or {}
        if len(self.finished) == self._finished_before and self._used.keys() <= before.keys():
            return
        kept = {key: before[key] for key in self._keys.values() if key in before} | self._used
        lines = ({"state": self._state, "finished": self.finished}, {"by": _by(), "sources": kept})
        with suppress(OSError):
            write_whole(self.path, "\n".join(map(json.dumps, lines)))
        self._before, self._finished_before = dict(kept), len(self.finished)


def _finished(line: str, state: str) -> dict[str, str]:
    try:
        content = json.loads(line)
        return dict(content["finished"]) if content["state"] == state else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _sources(line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
        return dict(content["sources"]) if content["by"] == _by() else {}
    except (ValueError, KeyError, TypeError):
        return {}


def _restored(held: Any) -> Source:
    if isinstance(held, Source):
        return held
    definitions, imports, body, doc = held
    return Source(
        tuple(
            Definition(
                tuple(names), meaning, tuple(mentions), tuple(late), tuple(Import(*each) for each in own), tuple(calls),
                tuple(builds), tuple(bases), tuple(marks),
            )
            for names, meaning, mentions, late, own, calls, builds, bases, marks in definitions
        ),
        tuple(Import(*each) for each in imports),
        tuple(body),
        doc,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _by() -> str:
    """A key of what decides the results for equal bytes: Python's grammar, and the modules of this package."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return f"{platform.python_version()} {digest_of(code)}"
