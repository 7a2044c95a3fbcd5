"""Digests of code: what makes a job rerun when, and only when, the code behind it means something else.

Snakemake does not see edits in imported modules. So each rule carries, as a parameter, the digest of
the import closure of its script and of the training entry point that it calls. The digest is taken of
the parsed source without docstrings, comments and line numbers: a reworded sentence reruns nothing.
"""

import ast
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from brainfed.runtime.errors import UserError

# They decide where a job runs and what it says on the way, never the numbers that it writes.
NEUTRAL_MODULES = frozenset(
    f"brainfed.runtime.{name}" for name in ("logs", "devices", "job", "digests", "provenance")
)
DIGEST_LENGTH = 16


@dataclass(frozen=True)
class ImportStatement:
    """`from ..module import names` (level 2) or `import module` (level 0, no names)."""

    level: int
    module: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ParsedFile:
    """What one source file means: the digest of its syntax tree, and what it imports."""

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
    folder = Path(base).resolve()
    total = hashlib.sha256()
    for path in import_closure(*roots, base=folder, exclude=exclude):
        total.update(f"{path.relative_to(folder).as_posix()} {_parsed(path).digest}\n".encode())
    return total.hexdigest()[:DIGEST_LENGTH]


def import_closure(
    *roots: Path | str, base: Path | str, exclude: Collection[str] = NEUTRAL_MODULES
) -> tuple[Path, ...]:
    """The files inside `base` that the roots import, directly or not, the roots among them.

    Imports inside functions count, names in strings do not; an `__init__` counts unless it is empty.
    Arguments and errors as in `code_digest`. Ascending order of path.
    """
    folder = Path(base).resolve()
    left_out = {path for name in exclude for path in _module_files(folder, name.split("."))[-1:]}
    waiting = [path for root in roots for path in _root_files(folder, root)]
    # Python looks for a script's imports beside the script as well.
    searched = [folder, *dict.fromkeys(path.parent for path in waiting if not (path.parent / "__init__.py").exists())]
    closure: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in closure or path in left_out:
            continue
        closure.add(path)
        waiting.extend(file for statement in _parsed(path).imports for file in _imported(path, statement, searched))
    return tuple(sorted(path for path in closure if path.name != "__init__.py" or not _parsed(path).empty))


def _root_files(folder: Path, root: Path | str) -> list[Path]:
    if isinstance(root, Path) or root.endswith(".py"):
        path = (folder / root).resolve()
        if path.is_file() and path.is_relative_to(folder):
            packages = path.relative_to(folder).parts[:-1]
            return [*_module_files(folder, packages), path]
    else:
        parts = root.partition(":")[0].split(".")
        files = _module_files(folder, parts)
        if files and files[-1] in _candidates(folder, parts):
            return files
    raise UserError(f"{root}: there is no such file or module in {folder}; correct the script or entry point.")


def _candidates(folder: Path, parts: Collection[str]) -> tuple[Path, Path]:
    place = folder.joinpath(*parts)
    return place.with_name(f"{place.name}.py"), place / "__init__.py"


def _module_files(folder: Path, parts: Collection[str]) -> list[Path]:
    """The files that Python runs to import `parts` from `folder`: each package's `__init__`, then the module."""
    names = tuple(parts)
    if names and not (folder / names[0]).is_dir() and not (folder / f"{names[0]}.py").is_file():
        return []
    steps = (_candidates(folder, names[:length]) for length in range(1, len(names) + 1))
    return [path for step in steps for path in step if path.is_file()]


def _imported(importer: Path, statement: ImportStatement, searched: list[Path]) -> Iterator[Path]:
    """The files that one import statement may run; `y` of `from x import y` may be a module."""
    folders = [importer.parents[statement.level - 1]] if statement.level else searched
    if statement.level and not folders[0].is_relative_to(searched[0]):
        return
    module = tuple(part for part in statement.module.split(".") if part)
    for folder in folders:
        yield from _module_files(folder, module)
        for name in statement.names:
            yield from _module_files(folder, (*module, name))


def _parsed(path: Path) -> ParsedFile:
    state = path.stat()
    return _parse(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _parse(path: Path, _modified: int, _size: int) -> ParsedFile:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: not valid Python ({error}); mend the file and run again.") from error
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.extend(ImportStatement(0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imports.append(ImportStatement(node.level, node.module or "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [child for child in node.body if not _is_text(child)]
    return ParsedFile(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imports), not tree.body)


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string: a docstring, of a function, a class, a module or a field."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
