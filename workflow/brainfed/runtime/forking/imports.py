"""What a script is certain to import: import statements at the top of it, and at the top of what it imports.

Imports inside functions may not run, and are left out. So whatever is found is what the script imports by itself, and
a process that has imported it before holds nothing that the script does not.
"""

import re
import sys
from functools import cache
from pathlib import Path

import brainfed

PACKAGE = "brainfed"
AT_THE_TOP = re.compile(r"^(?:from|import) +([\w.]+)", re.MULTILINE)
IN_A_SCRIPT = re.compile(r"^(?: {4})?(?:from|import) +([\w.]+)", re.MULTILINE)
"""At its top, or in the one `with` block that is all of it."""
ENTRY = re.compile(rf"({PACKAGE}(?:\.\w+)+):\w")
"""An entry point in the parameters, which stand in a script of Snakemake."""
HERE = Path(brainfed.__file__ or "").resolve().parents[1]


def certain_imports(script: Path) -> frozenset[str]:
    """Modules of other packages that the script imports.

    Args:
        script: as Snakemake writes it, with the parameters of the job.
    """
    text = script.read_text(encoding="utf-8")
    found, seen = set(), set[str]()
    waiting = [*IN_A_SCRIPT.findall(text), *ENTRY.findall(text)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        root = name.partition(".")[0]
        if root == PACKAGE:
            waiting += _imported_by(name)
        elif root not in sys.stdlib_module_names:
            found.add(name)
    return frozenset(found)


@cache
def _imported_by(name: str) -> tuple[str, ...]:
    """What a module of this package and its parents import at their top."""
    found: list[str] = []
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = HERE.joinpath(*parts[:length])
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                found += AT_THE_TOP.findall(file.read_text(encoding="utf-8"))
    return tuple(found)
