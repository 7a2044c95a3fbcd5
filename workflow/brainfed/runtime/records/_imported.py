"""What a job has really imported of the workflow: the digest in its parameters is that of the code at the run's start.

Code may be edited during a run, and be put back before the next. So the run states the digest of every source file in a
file (`state_sources`), and a job notes the bytes from which each module is compiled (`note_sources`). Where the two
differ, the job's record names other code than its parameters (`edited_code`): no start takes its result for current.

Python would take compiled code for that of a source file of the same size and second. The compiled files that are read
and written here hold the hash of their source, which any Python checks (PEP 552).
"""

import hashlib
import importlib.util
import json
import marshal
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from brainfed.runtime import write_whole

PACKAGE, SCRIPTS = "brainfed", "scripts"
VARIABLE = "BRAINFED_SOURCES"
"""Names the file with the digests of the run's sources."""
FOLDER = "brainfed-code"
KEPT_S = 30 * 86400.0
"""Age at which a start deletes such a file of an earlier one."""
END_OF_PREAMBLE = b"######## snakemake preamble end #########\n"
CHECKED_HASH = (3).to_bytes(4, "little")
"""Flags of a compiled file that holds the hash of its source, and is checked against it."""

# These decide where a job runs and what it logs, never the numbers that it writes: packages with all their modules,
# modules, or definitions as `module:name`.
NEUTRAL_MODULES = frozenset(
    f"brainfed.{name}"
    for name in (
        "digests",
        "runtime.devices",
        "runtime._disk",
        "runtime.jobs._job",
        "runtime.jobs._memory",
        "runtime.jobs._stopping",
        "runtime._logs",
        "runtime._provenance",
        "runtime.records",
        "scripting._job",
    )
)

_noted: dict[str, str] = {}
"""Source file -> digest of the bytes that were compiled."""


def state_sources(contents: Mapping[tuple[str, ...], bytes], beside: Path) -> None:
    """State the sources of a run for its jobs, in a file that is named by its content.

    Args:
        contents: place of each file -> its bytes.
        beside: the folder of Snakemake's own records.
    """
    text = json.dumps({"/".join(place): _digest(content) for place, content in sorted(contents.items())})
    path = beside.absolute() / FOLDER / f"{_digest(text.encode())[:16]}.json"
    try:
        if not path.exists():
            write_whole(path, text)
        path.touch()
        for earlier in path.parent.iterdir():
            if time.time() - earlier.stat().st_mtime > KEPT_S:
                earlier.unlink()
    except OSError:
        return
    os.environ[VARIABLE] = str(path)


def note_sources() -> None:
    """Note from now on from which bytes the modules of the workflow are compiled, and what the run has stated."""
    _stated(os.environ.get(VARIABLE, ""))
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def edited_code(is_neutral: Callable[[str], bool]) -> str:
    """A digest of what this process runs of the workflow, if that is not what the run has stated; else empty.

    Where the statement is gone, or damaged, the code counts as edited.

    Args:
        is_neutral: whether a dotted module changes no result.
    """
    named, different = os.environ.get(VARIABLE, ""), dict[str, str]()
    if not named:
        return ""
    stated = _stated(named)
    if not stated:
        # Who deleted it may have edited the code, too.
        return _digest(b"")[:16]
    package = Path(sys.modules[PACKAGE].__file__ or "")
    if f"{PACKAGE}/{package.name}" not in stated:
        return ""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == PACKAGE and not is_neutral(name) and file:
            place = Path(file).relative_to(package.parents[1]).as_posix()
            digest = _noted.get(file) or _digest(_read(file))
            if stated.get(place) != digest:
                different[place] = digest
    # Snakemake has copied the script behind a preamble, which names both.
    script = sys.modules["__main__"]
    if copy := getattr(script, "__real_file__", ""):
        place = f"{SCRIPTS}/{Path(script.__file__ or '').name}"
        digest = _digest(_read(copy).partition(END_OF_PREAMBLE)[2])
        if stated.get(place, digest) != digest:
            different[place] = digest
    return _digest(json.dumps(different, sort_keys=True).encode())[:16] if different else ""


def is_neutral(module: str) -> bool:
    """Whether no definition of a dotted module changes a result, as it or a package around it is neutral."""
    parts = module.split(".")
    return any(".".join(parts[:length]) in NEUTRAL_MODULES for length in range(1, len(parts) + 1))


class _Loader(SourceFileLoader):
    def get_code(self, _: str) -> CodeType:
        """The code of a module, compiled from the bytes that are noted or from equal ones."""
        source = self.get_data(self.path)
        _noted[self.path] = _digest(source)
        head = importlib.util.MAGIC_NUMBER + CHECKED_HASH + importlib.util.source_hash(source)
        compiled = importlib.util.cache_from_source(self.path)
        content = _read(compiled)
        if content.startswith(head):
            try:
                code: CodeType = marshal.loads(content[len(head) :])
                return code
            except (EOFError, ValueError, TypeError):
                pass
        code = self.source_to_code(source, self.path)
        if not sys.dont_write_bytecode:
            self.set_data(compiled, head + marshal.dumps(code))
        return code


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of the workflow, with a loader that notes its source."""
        if path is None or fullname.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


@cache
def _stated(path: str) -> dict[str, str]:
    try:
        return {str(place): str(digest) for place, digest in json.loads(_read(path)).items()}
    except (ValueError, AttributeError):
        return {}


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _digest(content: bytes) -> str:
    """The digest of a text, whose lines may end in either way: Snakemake reads a script as text."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
