"""Where a version of Snakemake lacks what brainfed replaces in it, a run has the same results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from brainfed.runtime import borrowed
from brainfed.runtime._borrowed import QUERIES
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


def replaced() -> set[str]:
    """Snakemake's functions that the library replaces."""
    files = (REPOSITORY / "workflow" / "brainfed").rglob("*.py")
    places = [place for file in files for place in PLACE.findall(file.read_text(encoding="utf-8"))]
    return {f"{owner}.{name}" for owner, function in places for name in ([function] if function else QUERIES)}


def test_the_documents_name_what_is_replaced() -> None:
    page = (REPOSITORY / "docs" / "reference" / "borrowed.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(snakemake[\w.]*:[\w.]+)`", page))
    assert named == replaced()


def test_nothing_else_is_imported_from_inside_snakemake() -> None:
    """Its exceptions, utilities and command line are for workflows to use; its persistence has a guard."""
    imports = re.compile(r"^\s*(?:from|import) (snakemake[\w.]*)", re.MULTILINE)
    files = [file for kind in ("*.py", "*.smk", "Snakefile") for file in (REPOSITORY / "workflow").rglob(kind)]
    used = {name for file in files for name in imports.findall(file.read_text(encoding="utf-8"))}
    public = {"snakemake.exceptions", "snakemake.utils", "snakemake.cli"}
    assert used == public | {"snakemake.persistence"}


def test_the_documents_name_what_is_read() -> None:
    workflow = REPOSITORY / "workflow"
    rules = "".join(file.read_text() for file in [workflow / "Snakefile", *(workflow / "rules").glob("*.smk")])
    runtime = workflow / "brainfed" / "runtime"
    records = "".join(file.read_text() for file in [runtime / "_borrowed.py", runtime / "records" / "_records.py"])
    of_jobs = re.findall(r"\b(?:job|writer|reader)\.([a-z]+)\b", records)
    used = {f"workflow.{name}" for name in re.findall(r"\bworkflow\.([a-z]\w+)\b", rules)} - {"workflow.rst"}
    used |= {f"job.{name}" for name in of_jobs}
    page = (
        (REPOSITORY / "docs" / "reference" / "borrowed.md").read_text(encoding="utf-8").partition("## What is read")[2]
    )
    assert used == set(re.findall(r"`((?:workflow|job)\.\w+)`", page))


@pytest.mark.parametrize(
    ("place", "there"),
    [
        ("brainfed.runtime:UserError.no_such", "none"),
        ("brainfed.no_such:Class.function", "none"),
        ("brainfed.runtime.jobs._job:Job.device", "none"),  # A property.
        ("brainfed.runtime.jobs._job:Job.seconds", "self"),
    ],
)
def test_a_part_that_is_no_such_function_is_lacking(place: str, there: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert borrowed(place, ("self", "job"), "it is slower") is None
    assert f"found {there}; it is slower." in capsys.readouterr().err


@pytest.mark.full("A whole run that imports every library anew in each job.")
def test_a_run_without_them_has_the_same_results(finished: Project, tmp_path: Path) -> None:
    places = sorted(replaced())
    assert len(places) >= 9
    (tmp_path / "sitecustomize.py").write_text(OTHER_PARAMETERS.format(places=places))
    project = new_project(tmp_path / "project")
    path = os.pathsep.join([str(tmp_path), str(project.folder / "workflow")])
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "tables", "--configfile", "config.yaml"]
    done = subprocess.run(
        command, cwd=project.folder, env=os.environ | ALONE | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lacking = re.findall(r"expected ([\w.]+)\(.*\) in ([\w.]+), found", done.stderr)
    queries = {place for place in places if "PersistenceBase" in place}
    # One sentence stands for all queries of the records. Whatever parameters a workflow is executed with are passed on.
    expected_places = {*places} - queries - {"snakemake.workflow:Workflow.execute"}
    said = {f"{module}:{name}" for name, module in lacking}
    assert said - queries == expected_places and len(said & queries) == 1, done.stderr
    expected, results = (each.folder / "results" for each in (finished, project))
    files = [file.relative_to(expected) for file in expected.rglob("predictions.parquet")]
    assert len(files) == 3
    assert [name for name in files if (results / name).read_bytes() != (expected / name).read_bytes()] == []
