"""`snakemake --sdm conda`, with a conda that is made up: the environment of jobs has all libraries but brainfed."""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from support.processes.forked_cli import ForkedCommands
from workflow.project import ALONE, REPOSITORY

pytestmark = pytest.mark.workflow

TARGET = "results/tiny/simulated/atlas.nii.gz"
# It answers as conda does, and makes an environment of this Python's libraries: those that lie in its folder, so none
# that is installed from elsewhere, as brainfed is.
CONDA = """#!/bin/bash
case "$*" in
"info --json") echo '{{"conda_prefix": "{base}", "platform": "linux-64"}}' ;;
--version) echo conda 25.9.1 ;;
"config --get channel_priority --json") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
"env create "*)
    {python} -m venv --without-pip "${{!#}}"
    packages=$(echo "${{!#}}"/lib/*/site-packages)
    echo {libraries} > "$packages/libraries.pth"
    echo 'import pathlib, sys; pathlib.Path("used").write_text(sys.prefix)' > "$packages/said.pth" ;;
esac
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The smallest study, beside a conda."""
    binaries = tmp_path / "base" / "bin"
    binaries.mkdir(parents=True)
    words = {"python": sys.executable, "libraries": sysconfig.get_path("purelib")}
    quoted = {name: shlex.quote(word) for name, word in words.items()}
    (binaries / "conda").write_text(CONDA.format(base=tmp_path / "base", **quoted))
    (binaries / "conda").chmod(0o755)
    (binaries / "activate").write_text('PATH="$1/bin:$PATH"\n')
    shutil.copytree(REPOSITORY / ".test" / "config", tmp_path / "study" / "config")
    return tmp_path / "study"


def snakemake(study: Path, *words: str) -> str:
    """What a command says that ends well."""
    path = os.pathsep.join([str(study.parent / "base" / "bin"), os.environ["PATH"]])
    environment = ALONE | {"PATH": path, "PYTHONPATH": ""}
    command = ["snakemake", TARGET, "--directory", str(study), "--sdm", "conda", *words]
    done = ForkedCommands().run_apart(command, REPOSITORY, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_plan_with_conda_names_the_environment(study: Path) -> None:
    assert "workflow/envs/brainfed.yaml will be created" in snakemake(study, "-n").replace("rules/../", "")


@pytest.mark.full("A job in an environment of its own imports every library anew.")
def test_a_job_in_an_environment_of_conda_imports_brainfed_from_the_clone(study: Path) -> None:
    snakemake(study, "--cores", "1")
    assert (study / TARGET).is_file()
    (environment,) = (study / ".snakemake" / "conda").glob("*_")
    assert (study / "used").read_text() == str(environment)
