"""Where a version of Snakemake lacks what brainfed replaces in it, a run has the same results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.project import ALONE, Project, new_project

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"\"(snakemake[\w.]*:\w+)(?:\.(\w+))?\"")
OTHER_PARAMETERS = """
import sys

PLACES = {places}

if any(word.endswith("snakemake") for word in sys.orig_argv):
    import snakemake.cli
    from importlib import import_module

    def other(theirs):
        return lambda self, *values, **options: theirs(self, *values, **options)

    for place in PLACES:
        module, _, name = place.partition(":")
        owner, function = name.split(".")
        kind = getattr(import_module(module), owner)
        setattr(kind, function, other(getattr(kind, function)))
"""


def replaced() -> dict[str, set[str]]:
    """Snakemake's functions that the library replaces, by the module that asks for them."""
    from brainfed.runtime.records._records import QUERIES

    found: dict[str, set[str]] = {}
    for file in (REPOSITORY / "workflow" / "brainfed").rglob("*.py"):
        for owner, function in PLACE.findall(file.read_text(encoding="utf-8")):
            names = {f"{owner}.{function}"} if function else {f"{owner}.{name}" for name in QUERIES}
            found.setdefault(file.name, set()).update(names)
    return found


def test_the_documents_name_what_is_replaced() -> None:
    page = (REPOSITORY / "docs" / "reference" / "borrowed.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(snakemake[\w.]*:[\w.]+)`", page))
    assert named == set().union(*replaced().values())


def test_nothing_else_is_imported_from_inside_snakemake() -> None:
    """Its exceptions, utilities and command line are for workflows to use; its persistence has a guard."""
    imports = re.compile(r"^\s*(?:from|import) (snakemake[\w.]*)", re.MULTILINE)
    files = [file for kind in ("*.py", "*.smk", "Snakefile") for file in (REPOSITORY / "workflow").rglob(kind)]
    used = {name for file in files for name in imports.findall(file.read_text(encoding="utf-8"))}
    public = {"snakemake.exceptions", "snakemake.utils", "snakemake.cli"}
    assert used == public | {"snakemake.persistence"}


@pytest.mark.full("A whole run that imports every library anew in each job.")
def test_a_run_without_them_has_the_same_results(finished: Project, tmp_path: Path) -> None:
    places = sorted(set().union(*replaced().values()))
    assert len(places) >= 9
    (tmp_path / "sitecustomize.py").write_text(OTHER_PARAMETERS.format(places=places))
    project = new_project(tmp_path / "project")
    path = os.pathsep.join([str(tmp_path), str(project.folder / "workflow")])
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "tables", "--configfile", "config.yaml"]
    done = subprocess.run(
        command, cwd=project.folder, env=os.environ | ALONE | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for place in places:
        module, _, name = place.partition(":")
        assert re.search(rf"expected {re.escape(name)}\(.*\) in {re.escape(module)}, found", done.stderr) or (
            # One sentence stands for all queries of the records.
            name.startswith("PersistenceBase")
        ), place
    expected, results = (each.folder / "results" for each in (finished, project))
    files = [file.relative_to(expected) for file in expected.rglob("predictions.parquet")]
    assert len(files) == 3
    assert [name for name in files if (results / name).read_bytes() != (expected / name).read_bytes()] == []
