"""Digests of code: a job reruns if, and only if, the meaning of its code changes.

Snakemake does not see edits in imported modules. So each rule carries, as a parameter, the digest of
the import closure of its script and of the training entry point that it calls. The digest is taken of
the parsed source without docstrings, comments and line numbers: a reworded sentence reruns nothing.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from brainfed.runtime.errors import UserError
from brainfed.runtime.records.sources import Meaning, Memory, meaning_of

Place = tuple[str, ...]

# These decide where a job runs and what it logs, never the numbers that it writes.
NEUTRAL_MODULES = frozenset(
    f"brainfed.runtime.{name}"
    for name in (
        "logs",
        "devices.lease",
        "devices.visible",
        "devices.driver",
        "devices.strangers",
        "devices.slots",
        "devices.locks",
        "devices.cuda",
        "jobs.job",
        "jobs.stopping",
        "disk",
        "parts",
        "jobs.limits",
        "jobs.memory",
        "records.digests",
        "records.sources",
        "provenance",
        "records.contents",
        "records.imported",
        "records.made",
        "records.judging",
        "records.records",
        "records.snakemake_records",
    )
) | {"brainfed.scripting.job", "brainfed.scripting.remedies"}
DIGEST_LENGTH = 16


def code_digest(*roots: Path | str, base: "Path | str | SourceTree", exclude: Collection[str] = NEUTRAL_MODULES) -> str:
    """Digest of everything inside `base` that the roots run.

    Args:
        roots: files (a `Path`, or a name that ends in `.py`; relative to `base` or absolute) and dotted
            modules (`brainfed.methods.gcn.train`, or an entry point `brainfed.methods.gcn.train:train_fedgcn`).
        base: the folder that is on the import path, or its tree; imports that lead outside it are not followed.
        exclude: dotted modules that are left out together with what only they import.

    Returns:
        16 hexadecimal characters, the same wherever `base` lies.

    Raises:
        UserError: a root is not in `base`, or a file is not valid Python.
    """
    total = hashlib.sha256()
    tree = base if isinstance(base, SourceTree) else SourceTree(base)
    for place, meaning in _closure(roots, tree, exclude).items():
        total.update(f"{'/'.join(place)} {meaning.digest}\n".encode())
    return total.hexdigest()[:DIGEST_LENGTH]


def import_closure(
    *roots: Path | str, base: "Path | str | SourceTree", exclude: Collection[str] = NEUTRAL_MODULES
) -> tuple[Path, ...]:
    """The files inside `base` that the roots import, directly or not, the roots among them.

    Imports inside functions count, names in strings do not; an `__init__` counts unless it is empty.
    Arguments and errors as in `code_digest`.
    """
    tree = base if isinstance(base, SourceTree) else SourceTree(base)
    return tuple(tree.folder.joinpath(*place) for place in _closure(roots, tree, exclude))


def _closure(roots: Sequence[Path | str], tree: "SourceTree", exclude: Collection[str]) -> dict[Place, Meaning]:
    left_out = tree.named(frozenset(exclude))
    waiting = [place for root in roots for place in tree.root(root)]
    # Python also looks beside a script for what the script imports.
    beside = {place[:-1] for place in waiting if (*place[:-1], "__init__.py") not in tree.places}
    searched = tuple(sorted({(), *beside}))
    closure: dict[Place, Meaning] = {}
    while waiting:
        place = waiting.pop()
        if place in closure or place in left_out:
            continue
        closure[place] = tree.meaning(place)
        waiting.extend(tree.imported(place, searched))
    return {
        place: closure[place] for place in sorted(closure) if place[-1] != "__init__.py" or not closure[place].empty
    }


class SourceTree:
    """The Python files below a folder when the tree is made: their places and imports.

    Args:
        folder: the folder that is on the import path.
        memory: a file that caches parsed files from one run to the next; with it all files are read at once, so that
            an edit during a run changes no digest of the run. A file is parsed when a digest needs it.
    """

    def __init__(self, folder: Path | str, memory: Path | None = None) -> None:
        self.folder = Path(folder).resolve()
        self.places = frozenset(_places(str(self.folder), ()))
        self._memory = Memory(memory) if memory else None
        self.contents: dict[Place, bytes] = {}
        if memory:
            self.contents = {place: self.folder.joinpath(*place).read_bytes() for place in self.places}
        self.meaning = cache(self._meaning)
        self.imported = cache(self._imported)
        self.module = cache(self._module)
        self.named = cache(self._named)

    def remember(self) -> None:
        """Write the parsed files into the memory."""
        if self._memory is not None:
            self._memory.write(self.contents.values())

    def _meaning(self, place: Place) -> Meaning:
        """The meaning of a file.

        Raises:
            UserError: it is not valid Python.
        """
        path = self.folder.joinpath(*place)
        if self._memory is None:
            return meaning_of(path.read_bytes(), path)
        return self._memory.meaning(self.contents[place], path)

    def root(self, root: Path | str) -> list[Place]:
        """The files that Python runs for one root of a closure."""
        if isinstance(root, Path) or root.endswith(".py"):
            path = (self.folder / root).resolve()
            place = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
            found = [*self.module(place[:-1]), place] if place in self.places else []
        else:
            name = tuple(root.partition(":")[0].split("."))
            found = [*self.module(name)]
            found = found if found and _module_name(found[-1]) == name else []
        if not found:
            raise UserError(f"{root}: no such file or module in {self.folder}; correct the script or entry.")
        return found

    def _named(self, modules: frozenset[str]) -> frozenset[Place]:
        """The files of these dotted modules."""
        return frozenset(place for place in self.places if ".".join(_module_name(place)) in modules)

    def _module(self, name: Place) -> tuple[Place, ...]:
        """The files that Python runs to import a module: each package's `__init__`, then the module."""
        found: list[Place] = []
        for length in range(1, len(name) + 1):
            package = (*name[:length], "__init__.py")
            module = (*name[: length - 1], f"{name[length - 1]}.py")
            found.extend(place for place in (package, module) if place in self.places)
        return tuple(found)

    def _imported(self, place: Place, searched: tuple[Place, ...]) -> tuple[Place, ...]:
        """The files that a file's import statements run; `y` of `from x import y` may be a module."""
        found: dict[Place, None] = {}
        for statement in self.meaning(place).imports:
            folders = (place[: -statement.level],) if statement.level else searched
            for folder in folders:
                module = (*folder, *statement.module)
                found |= dict.fromkeys(self.module(module))
                for name in statement.names:
                    found |= dict.fromkeys(self.module((*module, name))[-1:])
        return tuple(found)


def _module_name(place: Place) -> Place:
    return place[:-1] if place[-1] == "__init__.py" else (*place[:-1], place[-1].removesuffix(".py"))


def _places(folder: str, place: Place) -> Iterator[Place]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and entry.is_file():
                yield (*place, entry.name)
            elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _places(entry.path, (*place, entry.name))
