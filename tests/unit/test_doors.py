"""Packages have doors: others import names from these, never an underscored module; `lint-imports` says so too."""

import ast
import re
import subprocess
import sys

import pytest
from grimp import ImportGraph
from importlinter.configuration import configure

from support.doors import LIBRARY, Doors, ForbiddenThroughDoors, imported, is_hidden, offered

REPOSITORY = LIBRARY.parents[1]
PACKAGES = sorted(LIBRARY.rglob("__init__.py"))
IMPORTS = re.compile(r"^from brainfed[\w.]* import (?:\([^)]*\)|.*)$", re.MULTILINE)
LOADER = "__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)"
HEAVY = (
    "torch",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "nilearn",
    "nibabel",
    "matplotlib",
    "torch_geometric",
    "opacus",
)


def name_of(file):
    return ".".join((LIBRARY.name, *file.relative_to(LIBRARY).with_suffix("").parts)).removesuffix(".__init__")


def users():
    """Every file that uses the library, but tests: its module, empty outside the library, and the imports in it."""
    for folder in ("workflow", "benchmarks", "docs"):
        for file in sorted((REPOSITORY / folder).rglob("*")):
            if file.suffix in (".py", ".smk"):
                text = file.read_text(encoding="utf-8")
                code = text if file.suffix == ".py" else "\n".join(IMPORTS.findall(text))
                yield file, name_of(file) if file.is_relative_to(LIBRARY) else "", list(imported(code))


def test_a_package_begins_with_a_sentence_and_has_nothing_but_its_door():
    door = [ast.dump(statement) for statement in ast.parse(f"import lazy_loader\n{LOADER}").body]
    for file in PACKAGES:
        docstring, *code = ast.parse(file.read_text(encoding="utf-8")).body
        assert isinstance(docstring.value.value, str), file
        assert [ast.dump(statement) for statement in code] == (door if offered(name_of(file)) else []), file


def test_outside_a_package_nothing_imports_its_underscored_modules():
    found = [
        (file, module, name)
        for file, importer, names in users()
        for module, name in names
        for hidden in (module, f"{module}.{name}")
        if is_hidden(hidden) and importer.rpartition(".")[0] != hidden.rpartition(".")[0]
        and (LIBRARY.joinpath(*hidden.split(".")[1:]).with_suffix(".py")).exists()
    ]  # fmt: skip
    assert found == []


def test_a_module_asks_not_at_its_own_door():
    found = [(file, name) for file, importer, names in users() for package, name in names
             if importer.rpartition(".")[0] == package and name in offered(package)]  # fmt: skip
    assert found == []


def test_a_door_offers_what_others_use_and_nothing_else():
    used = {pair for _, importer, names in users() for pair in names if importer.rpartition(".")[0] != pair[0]}
    doors = {(name_of(file), name) for file in PACKAGES for name in offered(name_of(file))}
    assert doors - used == set()
    assert {pair for pair in used - doors if offered(pair[0]) and not exists(*pair)} == set()


def exists(package, name):
    place = LIBRARY.joinpath(*package.split(".")[1:], name)
    return place.is_dir() or place.with_suffix(".py").exists()


@pytest.mark.parametrize("stub", [file.with_suffix(".pyi") for file in PACKAGES if file.with_suffix(".pyi").exists()],
                         ids=name_of)  # fmt: skip
def test_a_stub_lists_its_names_once_in_the_order_of_their_definitions(stub):
    *imports, names = ast.parse(stub.read_text(encoding="utf-8")).body
    listed = ast.literal_eval(names.value)
    assert sorted(listed) == sorted(alias.name for node in imports for alias in node.names)
    assert all(alias.asname is None for node in imports for alias in node.names)
    for node in imports:
        module = ast.parse(stub.with_name(f"{node.module}.py").read_text(encoding="utf-8"))
        defined = [name for statement in module.body for name in names_bound(statement)]
        own = [name for name in listed if name in {alias.name for alias in node.names}]
        assert own == sorted(own, key=defined.index), node.module


def names_bound(statement):
    targets = [*getattr(statement, "targets", ()), getattr(statement, "target", None)]
    return [getattr(statement, "name", None), *(name.id for target in targets if target for name in ast.walk(target)
                                                if isinstance(name, ast.Name))]  # fmt: skip


def test_what_the_rules_import_loads_no_heavy_library():
    statements = "\n".join(
        statement
        for file in sorted((REPOSITORY / "workflow" / "rules").glob("*.smk"))
        for statement in IMPORTS.findall(file.read_text(encoding="utf-8"))
    )
    code = f"{statements}\nimport sys\nprint(sorted({set(HEAVY)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def checked(contract, **options):
    configure()
    session = {"root_packages": ["brainfed"], "include_external_packages": True}
    return contract("", session, options)


def test_the_contracts_see_through_doors():
    """`brainfed.graphs` offers what imports numpy; the graph of imports alone ends at the door."""
    graph = ImportGraph()
    for module in ("brainfed", "brainfed.graphs", "brainfed.graphs._settings", "numpy"):
        graph.add_module(module, is_squashed=module == "numpy")
    (user, behind) = next(
        (importer, behind)
        for file, importer, names in users() if importer.startswith("brainfed.samples")
        for package, name in names if package == "brainfed.graphs" and (behind := offered(package).get(name))
    )  # fmt: skip
    for module in {user, behind}:
        graph.add_module(module)
    graph.add_import(importer=user, imported="brainfed.graphs")
    graph.add_import(importer=behind, imported="numpy")
    assert not graph.chain_exists(importer=user, imported="numpy")
    contract = checked(ForbiddenThroughDoors, source_modules=[user], forbidden_modules=["numpy"])
    assert not contract.check(graph, verbose=False).kept


@pytest.mark.parametrize(("importer", "kept"), [("brainfed.graphs.b", True), ("brainfed.samples.b", False)])
def test_a_hidden_module_is_imported_by_its_own_package_alone(importer, kept):
    graph = ImportGraph()
    graph.add_import(importer=importer, imported="brainfed.graphs._a")
    graph.add_import(importer=importer, imported="brainfed.cohort")
    assert checked(Doors).check(graph, verbose=False).kept is kept
