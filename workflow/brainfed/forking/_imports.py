"""What a script is certain to import: import statements at the top of it, and at the top of what it imports.

Imports inside functions may not run, and are left out. So whatever is found is what the script imports by itself, and
a process that has imported it before holds nothing that the script does not. A name from the door of a package leads to
the module that defines it, as the stub beside the door says.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import brainfed

PACKAGE = "brainfed"
STATEMENT = r"(?:from|import) +([\w.]+)(?: +import +(\([^)]*\)|.*))?"
AT_THE_TOP = re.compile(f"^{STATEMENT}", re.MULTILINE)
IN_A_SCRIPT = re.compile(f"^(?: {{4}})?{STATEMENT}", re.MULTILINE)
"""At its top, or in the one `with` block that is all of it."""
ENTRY = re.compile(rf"({PACKAGE}(?:\.\w+)+):(\w+)")
"""An entry point in the parameters, which stand in a script of Snakemake."""
OFFERED = re.compile(r"^from \.(\w+) import (\([^)]*\)|.*)", re.MULTILINE)
"""A statement of a stub."""
HERE = Path(brainfed.__file__ or "").resolve().parents[1]


def certain_imports(script: Path) -> frozenset[str]:
    """Modules of other packages that the script imports.

    Args:
        script: as Snakemake writes it, with the parameters of the job.
    """
    text = script.read_text(encoding="utf-8")
    modules, seen = set(), set[str]()
    waiting = [*_modules(IN_A_SCRIPT, text), *_modules(ENTRY, text)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        root = name.partition(".")[0]
        if root == PACKAGE:
            waiting += _imported_by(name)
        elif root not in sys.stdlib_module_names:
            modules.add(name)
    return frozenset(modules)


def _modules(statement: re.Pattern[str], text: str) -> Iterator[str]:
    """The modules that statements name, and those behind doors that define what they name."""
    for module, names in statement.findall(text):
        yield module
        if module.startswith(PACKAGE):
            offered = _offered(module)
            yield from (offered[name] for name in re.findall(r"(?<!\bas )\b\w+", names) if name in offered)


@cache
def _offered(door: str) -> Mapping[str, str]:
    """Name -> the module behind a door that defines it; empty where there is no door."""
    stub = HERE.joinpath(*door.split("."), "__init__.pyi")
    statements = OFFERED.findall(stub.read_text(encoding="utf-8")) if stub.is_file() else ()
    return {name: f"{door}.{module}" for module, names in statements for name in re.findall(r"\w+", names)}


@cache
def _imported_by(name: str) -> tuple[str, ...]:
    """What a module of this package and its parents import at their top."""
    names: list[str] = []
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = HERE.joinpath(*parts[:length])
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                names += _modules(AT_THE_TOP, file.read_text(encoding="utf-8"))
    return tuple(names)
