"""How the library is cut into modules: their number and length, and the share of lines that only import.

python benchmarks/house.py                     # this library
python benchmarks/house.py PACKAGE_FOLDER ...  # others, for comparison
"""

import ast
import statistics
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "workflow" / "brainfed"
SHORT = 40
COLUMNS = ("modules", "doors", "lines", "median", f"under {SHORT}", "imports", "imported once")


def measured(folder: Path) -> tuple[str, ...]:
    """One row: number of modules, of `__init__` with content, lines, median length, and shares in percent.

    A module is imported once if one other file alone names it in an import statement.
    """
    modules = {file: file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.py"))}
    doors = [file for file, text in modules.items() if file.name == "__init__.py" and text.strip()]
    modules = {file: text for file, text in modules.items() if file.name != "__init__.py"}
    lengths = [len(text.splitlines()) for text in modules.values()]
    imports = sum(_import_lines(text) for text in modules.values())
    importers: dict[str, set[Path]] = {}
    for file, text in modules.items():
        for name in _imported(text, folder, file):
            importers.setdefault(name, set()).add(file)
    names = {".".join((folder.name, *file.relative_to(folder).with_suffix("").parts)) for file in modules}
    once = sum(len(importers.get(name, ())) == 1 for name in names)
    short = sum(length < SHORT for length in lengths) / len(lengths)
    return (
        f"{len(lengths)}", f"{len(doors)}", f"{sum(lengths)}", f"{statistics.median(lengths):.0f}", f"{short:.0%}",
        f"{imports / sum(lengths):.1%}", f"{once}",
    )  # fmt: skip


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
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def main() -> None:
    """Print the table."""
    folders = [Path(name).resolve() for name in sys.argv[1:]] or [LIBRARY]
    rows = [("", *COLUMNS)] + [(folder.name, *measured(folder)) for folder in folders]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
