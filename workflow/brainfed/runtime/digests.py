"""Digests of code: what makes a job rerun when, and only when, the code behind it means something else.

Snakemake does not see edits in imported modules. So each rule carries, as a parameter, the digest of
the import closure of its script and of the training entry point that it calls. The digest is taken of
the parsed source without docstrings, comments and line numbers: a reworded sentence reruns nothing.
"""

import ast
import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from brainfed.runtime.errors import UserError

# They decide where a job runs and what it says on the way, never the numbers that it writes.
NEUTRAL_MODULES = frozenset(
    f"brainfed.runtime.{name}"
    for name in (
        "logs",
        "devices",
        "driver",
        "locks",
        "job",
        "stopping",
        "disk",
        "memory",
        "digests",
        "provenance",
    )
)
DIGEST_LENGTH = 16

# Of `runtime.settings.setting(...)` only the default reaches a job; its description and bounds are the manual's.
SETTING = "setting"
VALUES_OF_A_SETTING = frozenset({"default", "factory"})


@dataclass(frozen=True)
class ImportStatement:
    """`from ..module import names` (level 2) or `import module` (level 0, no names)."""

    level: int
    module: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class SourceFile:
    """One Python file below the base folder, and what it means."""

    place: tuple[str, ...]
    digest: str
    imports: tuple[ImportStatement, ...]
    empty: bool


def code_digest(*roots: Path | str, base: Path | str, exclude: Collection[str] = NEUTRAL_MODULES) -> str:
    """Digest of everything inside `base` that the roots run.

    Args:
        roots: files (a `Path`, or a name that ends in `.py`; relative to `base` or absolute) and dotted
            modules (`brainfed.training.federated`, or an entry point `brainfed.training.federated:train`).
        base: the folder that is on the import path; imports that lead outside it are not followed.
        exclude: dotted modules that are left out together with what only they import.

    Returns:
        16 hexadecimal characters, the same wherever `base` lies.

    Raises:
        UserError: a root is not in `base`, or a file is not valid Python.
    """
    total = hashlib.sha256()
    for file in _closure(roots, Path(base).resolve(), exclude):
        total.update(f"{'/'.join(file.place)} {file.digest}\n".encode())
    return total.hexdigest()[:DIGEST_LENGTH]


def import_closure(
    *roots: Path | str, base: Path | str, exclude: Collection[str] = NEUTRAL_MODULES
) -> tuple[Path, ...]:
    """The files inside `base` that the roots import, directly or not, the roots among them.

    Imports inside functions count, names in strings do not; an `__init__` counts unless it is empty.
    Arguments and errors as in `code_digest`.
    """
    folder = Path(base).resolve()
    return tuple(folder.joinpath(*file.place) for file in _closure(roots, folder, exclude))


def _closure(roots: Sequence[Path | str], folder: Path, exclude: Collection[str]) -> list[SourceFile]:
    tree = _SourceTree(folder)
    left_out = {place for place in tree.states if ".".join(_module_name(place)) in exclude}
    waiting = [place for root in roots for place in tree.root(root)]
    # Python also looks beside a script for what the script imports.
    beside = {place[:-1] for place in waiting if (*place[:-1], "__init__.py") not in tree.states}
    searched = sorted({(), *beside})
    closure: dict[tuple[str, ...], SourceFile] = {}
    while waiting:
        place = waiting.pop()
        if place in closure or place in left_out:
            continue
        closure[place] = tree.parse(place)
        waiting.extend(tree.imported(closure[place], searched))
    return [closure[place] for place in sorted(closure) if place[-1] != "__init__.py" or not closure[place].empty]


class _SourceTree:
    """The Python files below a folder, listed once: place -> (modification time, size)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states = dict(_list_sources(str(folder), ()))

    def parse(self, place: tuple[str, ...]) -> SourceFile:
        return _parse(self.folder, place, *self.states[place])

    def root(self, root: Path | str) -> list[tuple[str, ...]]:
        if isinstance(root, Path) or root.endswith(".py"):
            path = (self.folder / root).resolve()
            place = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
            found = [*self.module(place[:-1]), place] if place in self.states else []
        else:
            name = tuple(root.partition(":")[0].split("."))
            found = self.module(name)
            found = found if found and _module_name(found[-1]) == name else []
        if not found:
            raise UserError(f"{root}: no such file or module in {self.folder}; correct the script or entry.")
        return found

    def module(self, name: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The files that Python runs to import a module: each package's `__init__`, then the module."""
        found: list[tuple[str, ...]] = []
        for length in range(1, len(name) + 1):
            package = (*name[:length], "__init__.py")
            module = (*name[: length - 1], f"{name[length - 1]}.py")
            found.extend(place for place in (package, module) if place in self.states)
        return found

    def imported(self, file: SourceFile, searched: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
        """The files that a file's import statements run; `y` of `from x import y` may be a module."""
        for statement in file.imports:
            folders = [file.place[: -statement.level]] if statement.level else searched
            for folder in folders:
                module = (*folder, *statement.module)
                yield from self.module(module)
                for name in statement.names:
                    yield from self.module((*module, name))[-1:]


def _module_name(place: tuple[str, ...]) -> tuple[str, ...]:
    return place[:-1] if place[-1] == "__init__.py" else (*place[:-1], place[-1].removesuffix(".py"))


def _list_sources(folder: str, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and entry.is_file():
                state = entry.stat()
                yield (*place, entry.name), (state.st_mtime_ns, state.st_size)
            elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _list_sources(entry.path, (*place, entry.name))


@lru_cache(maxsize=4096)
def _parse(folder: Path, place: tuple[str, ...], _modified: int, _size: int) -> SourceFile:
    path = folder.joinpath(*place)
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: not valid Python ({error}); mend the file and run again.") from error
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
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return SourceFile(place, digest, tuple(dict.fromkeys(imports)), not tree.body)


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string: the docstring of a module, a class, a function or a field."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
