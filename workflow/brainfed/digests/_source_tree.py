"""The Python files of a workflow: where they stand, and how they import each other."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from brainfed.digests._definitions import Definition, Import, Source, digest_of, source_of
from brainfed.runtime import UserError, write_whole

Place = tuple[str, ...]
Module = tuple[str, ...]


class Memory:
    """A cache file of earlier starts: finished digests in its first line, parsed files in its second.

    A parsed file is cached under the digest of its bytes, so the cache is never out of date. The first line is enough
    for a start at which no file has changed. A memory that cannot be read or written costs time and nothing else.

    Args:
        path: the file.
        contents: place of each file of the tree -> its bytes.
    """

    def __init__(self, path: Path, contents: Mapping[Place, bytes]) -> None:
        self.path = path
        self._keys = {place: digest_of(content) for place, content in contents.items()}
        named = sorted(("/".join(place), key) for place, key in self._keys.items())
        self._state = digest_of(json.dumps([_by(), named]).encode())
        first = self._second = ""
        with suppress(OSError, ValueError):
            first, _, self._second = path.read_text(encoding="utf-8").partition("\n")
        self.finished: dict[str, str] = _entries(first, "finished", state=self._state)
        self._finished_before = len(self.finished)
        self._used: dict[str, Source] = {}

    @cached_property
    def _before(self) -> dict[str, Any]:
        return _entries(self._second, "sources", by=_by())

    def source(self, place: Place, content: bytes, path: Path) -> Source:
        """The parsed file of this place and content.

        Raises:
            UserError: it is not valid Python.
        """
        key = self._keys[place]
        if key not in self._used:
            try:
                self._used[key] = _restored(*self._before[key])
            except (KeyError, ValueError, TypeError):
                self._used[key] = source_of(content, path)
        return self._used[key]

    def write(self) -> None:
        """Write what this run used, and what was cached of other files that still exist: other targets need it."""
        if len(self.finished) == self._finished_before and all(key in self._before for key in self._used):
            return
        kept = {key: self._before[key] for key in self._keys.values() if key in self._before} | self._used
        lines = ({"state": self._state, "finished": self.finished}, {"by": _by(), "sources": kept})
        with suppress(OSError):
            write_whole(self.path, "\n".join(map(json.dumps, lines)))


def _entries(line: str, name: str, **expected: str) -> dict[str, Any]:
    """The entries of a line of the cache; none if it is damaged, or its key is another one."""
    try:
        content = json.loads(line)
        return dict(content[name]) if expected.items() <= content.items() else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _restored(definitions: Any, imports: Any, body: Any, doc: str) -> Source:
    parsed = (Definition(*each) for each in definitions)
    restored = [each._replace(imports=[Import(*own) for own in each.imports]) for each in parsed]
    return Source(restored, [Import(*each) for each in imports], body, doc)


@lru_cache(maxsize=1)
def _by() -> str:
    """A key for what parses the files: Python's version, and the modules of this package."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return f"{platform.python_version()} {digest_of(code)}"


class SourceTree:
    """The Python files below a folder when the tree is made: their places, definitions and imports.

    Args:
        folder: the folder that is on the import path.
        memory: a file that caches parsed files and digests from one run to the next; with it all files are read at
            once, so that an edit during a run changes no digest of the run. A file is parsed when a digest needs it.
    """

    def __init__(self, folder: Path | str, memory: Path | None = None) -> None:
        self.folder = Path(folder).resolve()
        self.places = frozenset(_places(str(self.folder), ()))
        self.contents: dict[Place, bytes] = {}
        if memory:
            self.contents = {place: self.folder.joinpath(*place).read_bytes() for place in self.places}
        self._memory = Memory(memory, self.contents) if memory else None
        code = (place for place in sorted(self.places, reverse=True) if place[-1].endswith(".py"))
        self.modules = {_module_name(place): place for place in code}
        self.folders = {place[:length] for place in self.places for length in range(1, len(place))}
        self.source = cache(self._source)
        self.runs = cache(self._runs)
        self.offers = cache(self._offers)
        self.root = cache(self._root)
        self.around = cache(self._around)
        self._inside = cache(self._modules_inside)
        self.finished: dict[str, str] = self._memory.finished if self._memory is not None else {}
        """Roots -> their digest."""

    def remember(self) -> None:
        """Write the parsed files and the digests into the memory."""
        if self._memory is not None:
            self._memory.write()

    def searched(self, roots: Sequence[Path | str]) -> tuple[Place, ...]:
        """The folders that absolute imports are looked up in: Python also looks beside a script."""
        beside = {self.root(root)[:-1] for root in roots}
        return tuple(sorted({(), *(folder for folder in beside if folder not in self.modules)}))

    def exists(self, module: Module) -> bool:
        """Whether there is such a module, or a folder that is one."""
        return module in self.modules or module in self.folders

    def named(self, module: Module, level: int, name: str, searched: tuple[Place, ...]) -> tuple[Module, ...]:
        """The modules inside the tree for which an import's name stands."""
        if level:
            package = module if self.modules.get(module, ("",))[-1] == "__init__.py" else module[:-1]
            searched = (package[: len(package) - level + 1],)
        return self._inside(searched, name)

    def _modules_inside(self, searched: tuple[Place, ...], name: str) -> tuple[Module, ...]:
        parts = tuple(name.split(".")) if name else ()
        return tuple((*folder, *parts) for folder in searched if self.exists((*folder, *parts)))

    def _around(self, module: Module) -> tuple[Module, ...]:
        """The modules that Python runs to import one: each package's `__init__`, then the module."""
        prefixes = (module[:length] for length in range(1, len(module) + 1))
        return tuple(prefix for prefix in prefixes if prefix in self.modules)

    def _root(self, root: Path | str) -> Module:
        """The module of a root.

        Raises:
            UserError: there is none.
        """
        if isinstance(root, Path) or root.endswith(".py"):
            path = (self.folder / root).resolve()
            place = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
            module = _module_name(place) if place in self.places else ()
        else:
            module = tuple(root.partition(":")[0].split("."))
        if module not in self.modules:
            raise no_root(root, self.folder)
        return module

    def _offers(self, module: Module) -> Sequence[Import]:
        """The names behind a lazy door: those of the stub beside an `__init__` with `lazy_loader.attach_stub`."""
        stub = (*module, "__init__.pyi")
        if stub not in self.places or module not in self.modules:
            return ()
        values = (each for each in self.source(module).definitions if "__getattr__" in each.names)
        if not any(call.rpartition(".")[2] == "attach_stub" for each in values for call in each.calls):
            return ()
        return self._source_at(stub).imports

    def _runs(self, module: Module, each: Import, searched: tuple[Place, ...]) -> tuple[Module, ...]:
        """The modules that an import runs; `y` of `from x import y` may be a module, or stand in one behind a door.

        If the import fails, Python has run the packages that are there.
        """
        runs: dict[Module, None] = {}
        name, inside = each.runs, self.named(module, each.level, each.runs, searched)
        while name and not inside:
            name = name.rpartition(".")[0]
            inside = self.named(module, each.level, name, searched) if name or each.level else ()
        for other in inside:
            runs |= dict.fromkeys(self.around(other))
            if each.name:
                runs |= dict.fromkeys(self.around((*other, each.name)))
                for offered in self.offers(other):
                    if offered.bound == each.name:
                        runs |= dict.fromkeys(self.runs(other, offered, ()))
        return tuple(runs)

    def _source(self, module: Module) -> Source:
        """A parsed module; of a folder without `__init__` an empty one."""
        place = self.modules.get(module)
        return self._source_at(place) if place else Source((), (), (), "")

    def _source_at(self, place: Place) -> Source:
        path = self.folder.joinpath(*place)
        if self._memory is None:
            return source_of(path.read_bytes(), path)
        return self._memory.source(place, self.contents[place], path)


def no_root(root: Path | str, folder: Path) -> UserError:
    """The error where a root of a digest is not there."""
    return UserError(f"{root}: no such file, module or definition in {folder}; correct the script or entry.")


def _module_name(place: Place) -> Module:
    return place[:-1] if place[-1] == "__init__.py" else (*place[:-1], place[-1].removesuffix(".py"))


def _places(folder: str, place: Place) -> Iterator[Place]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if (entry.name.endswith(".py") or entry.name == "__init__.pyi") and entry.is_file():
                yield (*place, entry.name)
            elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _places(entry.path, (*place, entry.name))
