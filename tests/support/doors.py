"""Doors of packages: what they offer, and contracts of `lint-imports` that see through them.

A door is lazy, so the graph of imports ends at it: `from brainfed.graphs import build_graph` imports `brainfed.graphs`,
which imports nothing by itself. Contracts here add what such a statement runs, `brainfed.graphs._population`.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract

LIBRARY = Path(__file__).resolve().parents[2] / "workflow" / "brainfed"


@cache
def offered(package: str) -> dict[str, str]:
    """Name -> the module that defines it, as the stub beside a package's door says; empty where there is no door."""
    stub = LIBRARY.joinpath(*package.split(".")[1:], "__init__.pyi")
    if package.partition(".")[0] != LIBRARY.name or not stub.is_file():
        return {}
    statements = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{package}.{node.module}" for node in statements for alias in node.names}


def imported(code: str, *, when_checked: bool = True) -> Iterator[tuple[str, str]]:
    """All (module, name) of `from module import name`, inside functions too.

    Args:
        code: of a Python file.
        when_checked: also those for type checkers alone.
    """
    waiting: list[ast.AST] = [ast.parse(code)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not when_checked:
            waiting += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        waiting += ast.iter_child_nodes(node)


@cache
def through_doors() -> frozenset[tuple[str, str]]:
    """All (importer, module) of the library in which the importer names something that a door has from the module."""
    return frozenset(
        (".".join((LIBRARY.name, *file.relative_to(LIBRARY).with_suffix("").parts)), offered(package)[name])
        for file in LIBRARY.rglob("*.py")
        for package, name in imported(file.read_text(encoding="utf-8"), when_checked=False)
        if name in offered(package)
    )


class _ThroughDoors(Contract):
    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """The check of the imports that really run: of a name at a door, that of its module too."""
        for importer, module in through_doors():
            graph.add_import(importer=importer, imported=module)
        return super().check(graph, verbose)


class ForbiddenThroughDoors(_ThroughDoors, ForbiddenContract):
    """The contract `forbidden`, which sees through doors."""


class AcyclicThroughDoors(_ThroughDoors, AcyclicSiblingsContract):
    """The contract `acyclic_siblings`, which sees through doors: a package below another imports from its door."""


class Doors(Contract):
    """No module imports an underscored module of another package: what it needs, the package's door has."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Look at every import."""
        del verbose
        found = sorted(
            (importer, module)
            for importer in graph.modules
            for module in graph.find_modules_directly_imported_by(importer)
            if is_hidden(module) and importer.rpartition(".")[0] != module.rpartition(".")[0]
        )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """A line an import."""
        for importer, module in check.metadata["found"]:
            output.print_error(f"- {importer} -> {module}: import the name from {module.rpartition('.')[0]}")


def is_hidden(module: str) -> bool:
    """Whether a module of ours is for its own package alone."""
    name = module.rpartition(".")[2]
    return module.startswith(f"{LIBRARY.name}.") and name.startswith("_") and not name.startswith("__")
