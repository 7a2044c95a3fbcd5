"""The environment: `make install` in folders with blanks and with other versions of Python; conda, containers, CI."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
# A Python that says that it is of some version, makes environments of itself, and installs nothing.
PYTHON = """#!/bin/sh
case "$1 $2" in
"-c "*) exec {python} -c 'import sys; number = (sys.argv[1] + ".13").split(".")
sys.version_info, sys.version = tuple(map(int, number)), ".".join(number) + " (made up)"
exec(sys.argv[2])' {version} "$2" ;;
"-m venv")
    for folder; do :; done
    rm -rf "$folder" && mkdir -p "$folder/bin" && cp "$0" "$folder/bin/python" ;;
*) for word; do printf '[%s]' "$word"; done; echo ;;
esac
"""

# What the catalog reads, by two files of https://github.com/snakemake/snakemake-workflow-catalog: the keys are those of
# `source/docs/about/adding_workflows.md`, and `scripts/generate-catalog.py` asks `usage` for `report` too.
CATALOG_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["usage"],
    "additionalProperties": False,
    "properties": {
        "usage": {
            "type": "object",
            "required": ["mandatory-flags", "software-stack-deployment", "report"],
            "additionalProperties": False,
            "properties": {
                "mandatory-flags": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "desc": {"type": ["string", "null"]},
                        "flags": {
                            "type": ["string", "array", "null"],
                            "items": {"type": "string", "pattern": "^--?[a-z]"},
                        },
                    },
                },
                "software-stack-deployment": {
                    "type": "object",
                    "required": ["conda", "apptainer", "apptainer+conda"],
                    "additionalProperties": False,
                    "patternProperties": {r"^(conda|apptainer|apptainer\+conda|report)$": {"type": "boolean"}},
                },
                "report": {"type": "boolean"},
            },
        }
    },
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "my clone (2)"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder)
    return folder


def install(clone: Path, version: str, *, named: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run `make install` with a Python of that version, which the command names, or which is the usual one."""
    python = clone.parent / "bin" / ("python" + version if named else "python3")
    python.parent.mkdir(exist_ok=True)
    python.write_text(PYTHON.format(python=shlex.quote(sys.executable), version=version))
    python.chmod(0o755)
    # What `make test PYTHON=...` hands to its own commands is not for this one.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHON" and not name.startswith("MAKE")
    }
    environment["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    words = [f"PYTHON={python.name}"] if named else []
    return subprocess.run(["make", "install", *words], cwd=clone, env=environment, capture_output=True, text=True)


def version_of(clone: Path) -> str:
    shown = [clone / ".venv" / "bin" / "python", "-c", "print('.'.join(map(str, sys.version_info[:2])))"]
    return subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip()


def test_a_folder_with_a_blank_and_parentheses_is_one_word_of_every_command(clone: Path) -> None:
    done = install(clone, "3.11")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"[{clone}/.venv/lib]" in done.stdout and (clone / ".venv" / ".installed").exists()


@pytest.mark.parametrize("named", [True, False])
def test_a_python_that_is_too_old_is_named_before_anything_is_installed(clone: Path, named: bool) -> None:
    done = install(clone, "3.10", named=named)
    assert done.returncode != 0 and "brainfed needs Python 3.11 or newer, found 3.10.13" in done.stderr
    assert "[pip]" not in done.stdout and not (clone / ".venv").exists()


def test_an_environment_of_a_python_that_is_too_old_is_made_anew(clone: Path) -> None:
    install(clone, "3.10")
    (clone / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(clone.parent / "bin" / "python3.10", clone / ".venv" / "bin" / "python")
    assert version_of(clone) == "3.10"
    done = install(clone, "3.11", named=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert version_of(clone) == "3.11"


def test_another_python_makes_the_environment_anew_where_the_command_names_it(clone: Path) -> None:
    install(clone, "3.11")
    assert "[pip]" not in install(clone, "3.11").stdout
    assert "[pip]" not in install(clone, "3.12", named=False).stdout and version_of(clone) == "3.11"
    assert "[pip]" in install(clone, "3.12").stdout and version_of(clone) == "3.12"
    assert "[pip]" not in install(clone, "3.12").stdout


def test_an_environment_that_a_user_has_made_is_kept(clone: Path) -> None:
    install(clone, "3.12")
    (clone / ".venv" / ".installed").unlink()
    (clone / ".venv" / "another build of torch").touch()
    assert "[pip]" in install(clone, "3.10", named=False).stdout
    assert (clone / ".venv" / "another build of torch").exists()


def test_the_environment_of_conda_has_the_locked_versions() -> None:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    environment = yaml.safe_load((REPOSITORY / "workflow" / "envs" / "brainfed.yaml").read_text())
    # A path to the file would lead elsewhere: Snakemake copies the environment's file to where it makes it.
    assert environment["dependencies"][-1]["pip"] == [line for line in lines if line and not line.startswith("#")]


def test_an_installed_copy_has_every_file_of_the_library(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    library = tmp_path / "workflow" / "brainfed"
    shutil.copytree(REPOSITORY / "workflow" / "brainfed", library, ignore=shutil.ignore_patterns("__pycache__"))
    build = f"from setuptools.build_meta import build_wheel; build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if name.startswith("brainfed/")}
    assert installed == {f"brainfed/{file.relative_to(library)}" for file in library.rglob("*") if file.is_file()}


def workflow_steps(name: str) -> tuple[dict[str, Any], list[str]]:
    """A workflow of `.github/`, and the commands of all its jobs."""
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / name).read_text())
    return workflow, [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_pull_requests_run_targets_of_the_makefile_on_the_versions_of_the_readme() -> None:
    workflow, commands = workflow_steps("tests.yml")
    targets = re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    made = [command.split()[1] for command in commands if command.startswith("make ")]
    assert {"lint", "docs", "test", "test-full"} <= set(made) <= set(targets)
    assert ". .venv/bin/activate && snakemake --directory .test --cores 2" in commands
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert f"with Python {', '.join(versions[:-1])} or {versions[-1]}" in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize(("tag", "code"), [("v1.2.3", 0), ("v1.2.4", 1)])
def test_a_tag_is_a_release_if_all_files_say_its_version(tmp_path: Path, tag: str, code: int) -> None:
    (check, _) = workflow_steps("release.yml")[1]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n- later\n\n## 1.2.3\n\n- now\n\n## 1.2.2\n\n- before\n")
    done = subprocess.run(["bash", "-e", "-c", check], cwd=tmp_path, env=os.environ | {"GITHUB_REF_NAME": tag})
    assert done.returncode == code
    if code == 0:
        assert (tmp_path / "notes.md").read_text() == "## 1.2.3\n\n- now\n\n"


def test_the_catalog_of_workflows_can_read_and_list_this_one() -> None:
    settings = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))
    jsonschema.validate(settings, CATALOG_SCHEMA)
    usage = settings["usage"]
    assert usage["software-stack-deployment"].get("report", usage["report"]) == usage["report"]
    # What else it asks of a workflow that it shows under standardized usage.
    assert all((REPOSITORY / name).is_file() for name in ("workflow/Snakefile", "config/README.md"))
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme and "workflow" in readme
    # An apptainer image of jobs would be named by the Snakefile (docs/how-to/container.md says why none is).
    snakefile = (REPOSITORY / "workflow" / "Snakefile").read_text(encoding="utf-8")
    assert (
        bool(re.search(r"^container(ized)?:", snakefile, re.MULTILINE))
        == usage["software-stack-deployment"]["apptainer"]
    )


def test_the_files_that_a_release_is_checked_by_say_one_version() -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version
    heads = re.findall(r"^## (.*)$", (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert version in heads and heads.index(version) <= heads[:1].count("Unreleased")


def test_the_citation_has_what_zenodo_and_github_read() -> None:
    # `cffconvert --validate` has the whole schema (citation-file-format 1.2.0). Zenodo makes its record of this file
    # where there is no .zenodo.json, and dates it itself.
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["cff-version"], citation["type"], citation["license"]) == ("1.2.0", "software", "MIT")
    assert all(isinstance(citation[key], str) for key in ("version", "abstract"))
    assert len({*citation["keywords"]}) == len(citation["keywords"]) > 0
    for authors in [citation["authors"], *(each["authors"] for each in citation["references"])]:
        assert authors and all(author.keys() in ({"name"}, {"family-names", "given-names"}) for author in authors)
    assert all({"type", "title", "year"} <= each.keys() for each in citation["references"])
    assert not (REPOSITORY / ".zenodo.json").exists()


def test_a_recipe_of_a_container_copies_files_that_there_are() -> None:
    docker, apptainer = ((REPOSITORY / name).read_text() for name in ("Dockerfile", "apptainer.def"))
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", docker, re.MULTILINE) for name in line.split()]
    assert copied == re.findall(r"^    (\S+) /brainfed/$", apptainer, re.MULTILINE)
    assert all((REPOSITORY / name).exists() for name in copied)
    kept = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert all(f"!{name}" in kept for name in copied)
