"""How the library is cut into modules: their number and length, and the share of lines that only import.

python benchmarks/house.py                     # this library
python benchmarks/house.py PACKAGE_FOLDER ...  # others, for comparison
"""

import ast
import statistics
import sys
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "workflow" / "brainfed"
SHORT = 40
COLUMNS = ("modules", "doors", "lines", "median", f"under {SHORT}", "imports", "imported once")


def measured(folder: Path) -> tuple[str, ...]:
    """One row: number of modules, of doors, lines with those of doors, median length, and shares in percent.

    A door is an `__init__` with code. Its stub is all imports. A module is imported once if one other file alone names
    it in an import statement, or a name that a door has from it.
    """
    modules = {file: file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.py"))}
    begun = {file: text for file, text in modules.items() if file.name == "__init__.py" and text.strip()}
    stubs = [stub.read_text(encoding="utf-8") for file in begun if (stub := file.with_suffix(".pyi")).exists()]
    doors = [file for file, text in begun.items() if _has_code(text)]
    modules = {file: text for file, text in modules.items() if file.name != "__init__.py"}
    lengths = [len(text.splitlines()) for text in modules.values()]
    in_stubs = sum(len(text.splitlines()) for text in stubs)
    lines = sum(lengths) + in_stubs + sum(len(text.splitlines()) for text in begun.values())
    imports = in_stubs + sum(map(_import_lines, (*modules.values(), *begun.values())))
    importers: dict[str, set[Path]] = {}
    for file, text in modules.items():
        for name in _imported(text, folder, file):
            importers.setdefault(name, set()).add(file)
    names = {".".join((folder.name, *file.relative_to(folder).with_suffix("").parts)) for file in modules}
    once = sum(len(importers.get(name, ())) == 1 for name in names)
    short = sum(length < SHORT for length in lengths) / len(lengths)
    return (
        f"{len(lengths)}", f"{len(doors)}", f"{lines}", f"{statistics.median(lengths):.0f}", f"{short:.0%}",
        f"{imports / lines:.1%}", f"{once}",
    )  # fmt: skip


def _has_code(text: str) -> bool:
    """Whether a file has a statement other than its docstring."""
    return any(not isinstance(node, ast.Expr) for node in ast.parse(text).body)


def _import_lines(text: str) -> int:
    statements = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in statements)


def _imported(text: str, folder: Path, file: Path) -> set[str]:
    """Dotted names of the modules that a file may import."""
    found: set[str] = set()
    place = (folder.name, *file.relative_to(folder).parent.parts)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = place[: len(place) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            offered = _offered(folder.joinpath(*module.split(".")[1:]))
            found |= {module, *(f"{module}.{offered.get(alias.name, alias.name)}" for alias in node.names)}
    return found


@cache
def _offered(package: Path) -> dict[str, str]:
    """Name -> the module that defines it, of a package whose door has a stub."""
    stub = package / "__init__.pyi"
    statements = ast.parse(stub.read_text(encoding="utf-8")).body if stub.exists() else []
    return {
        alias.name: node.module or "" for node in statements if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def main() -> None:
    """Print the table."""
    folders = [Path(name).resolve() for name in sys.argv[1:]] or [LIBRARY]
    rows = [("", *COLUMNS)] + [(folder.name, *measured(folder)) for folder in folders]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
