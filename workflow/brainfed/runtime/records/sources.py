"""The meaning of each Python file that a digest needs, parsed once for all runs.

A meaning is cached under the digest of the file's bytes, so the cache is never out of date. Reading the files takes
milliseconds; parsing them would take seconds at every start of Snakemake.
"""

import ast
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from brainfed.runtime.errors import UserError
from brainfed.runtime.parts import write_whole

# Of `runtime.settings.setting(...)` only the default reaches a job, not its description and bounds.
SETTING = "setting"
VALUES_OF_A_SETTING = frozenset({"default", "factory"})


@dataclass(frozen=True)
class ImportStatement:
    """`from ..module import names` (level 2) or `import module` (level 0, no names)."""

    level: int
    module: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Meaning:
    """The meaning of a Python file: the digest of its code, its imports, whether it is empty of code."""

    digest: str
    imports: tuple[ImportStatement, ...]
    empty: bool


class Memory:
    """Meanings of Python files by the digest of their bytes, cached in a file from one run to the next.

    A cache that cannot be read or written costs time and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._remembered = _read(path)
        self._used: dict[str, Meaning] = {}

    def meaning(self, content: bytes, path: Path) -> Meaning:
        """The meaning of a file of this content.

        Raises:
            UserError: it is not valid Python.
        """
        key = hashlib.sha256(content).hexdigest()
        self._used[key] = self._remembered.get(key) or meaning_of(content, path)
        return self._used[key]

    def write(self, contents: Iterable[bytes]) -> None:
        """Write what was asked for, and what was known before of files with these contents: other targets need it."""
        if self._used.keys() <= self._remembered.keys():
            return
        present = {hashlib.sha256(content).hexdigest() for content in contents}
        kept = {key: meaning for key, meaning in self._remembered.items() if key in present} | self._used
        _write(self.path, kept)
        self._remembered = kept


@lru_cache(maxsize=4096)
def meaning_of(content: bytes, path: Path) -> Meaning:
    """The meaning of a Python file's content, without docstrings, comments and line numbers.

    Raises:
        UserError: it is not valid Python.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: not valid Python ({error}); fix the file and run again.") from error
    imports: list[ImportStatement] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.extend(ImportStatement(0, tuple(alias.name.split(".")), ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            imports.append(ImportStatement(node.level, module, tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == SETTING:
            node.args = node.args[:1]
            node.keywords = [keyword for keyword in node.keywords if keyword.arg in VALUES_OF_A_SETTING]
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [child for child in node.body if not _is_text(child)]
    digest = hashlib.sha256(_written(tree).encode()).hexdigest()
    return Meaning(digest, tuple(dict.fromkeys(imports)), not tree.body)


def _written(value: Any) -> str:
    """A syntax tree as text that is the same under every version of Python, unlike that of `ast.dump`.

    Versions add optional fields, and split the text around the values of an f-string in other places. So fields without
    a value are left out, neighbouring pieces of text are joined, and other characters than ASCII are escaped, as each
    version has its own list of those that can be printed.
    """
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, ast.Constant):
        return f"Constant({value.value!a})"
    if not isinstance(value, ast.AST):
        return ascii(value)
    fields = {name: getattr(value, name, None) for name in value._fields}
    if isinstance(value, ast.JoinedStr):
        fields["values"] = _joined_text(value.values)
    elif isinstance(value, ast.FormattedValue) and isinstance(value.format_spec, ast.JoinedStr):
        fields["format_spec"] = value.format_spec if _joined_text(value.format_spec.values) else None
    held = [f"{name}={_written(field)}" for name, field in fields.items() if field is not None and field != []]
    return f"{type(value).__name__}({', '.join(held)})"


def _joined_text(pieces: list[ast.expr]) -> list[ast.expr]:
    """The pieces of an f-string, with neighbouring pieces of text as one, and without empty ones."""
    joined: list[ast.expr] = []
    for piece in pieces:
        if isinstance(piece, ast.Constant) and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(str(joined[-1].value) + str(piece.value))
        elif not (isinstance(piece, ast.Constant) and piece.value == ""):
            joined.append(piece)
    return joined


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string: the docstring of a module, a class, a function or a field."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _read(path: Path) -> dict[str, Meaning]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {key: _restored(*value) for key, value in content["meanings"].items()} if content["by"] == _by() else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _as_lists(meaning: Meaning) -> list[Any]:
    return [meaning.digest, [[each.level, each.module, each.names] for each in meaning.imports], meaning.empty]


def _restored(digest: str, imports: list[Any], empty: bool) -> Meaning:
    statements = (ImportStatement(level, tuple(module), tuple(names)) for level, module, names in imports)
    return Meaning(digest, tuple(statements), empty)


def _write(path: Path, meanings: Mapping[str, Meaning]) -> None:
    content = {"by": _by(), "meanings": {key: _as_lists(meaning) for key, meaning in meanings.items()}}
    with suppress(OSError):
        write_whole(path, json.dumps(content))


def _by() -> str:
    """A key of the two that decide the meaning of equal bytes: Python's grammar, and this file."""
    return f"{platform.python_version()} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
