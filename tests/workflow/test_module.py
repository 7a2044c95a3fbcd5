"""brainfed as a module of another workflow, in folders whose names have blanks and parentheses."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from support.processes.forked_cli import LIBRARIES, ForkedCommands
from workflow.project import ALONE, CONFIG, PARSED, SIMULATE, copy_workflow

pytestmark = pytest.mark.workflow

CLONE = "my clone (2)"
MODULE = """
configfile: "config.yaml"


module brainfed:
    snakefile: {snakefile}
    config: config["brain"]
    {prefix}


use rule * from brainfed {names}
"""
OWN_RULES = """
onstart:
    print("the host begins")


rule everything:
    default_target: True
    input:
        "numbers.txt",


rule numbers:
    input:
        "results/tiny/tables/methods.tsv",
    output:
        "numbers.txt",
    params:
        given=["no mapping"],
    shell:
        '''
        echo one > {output}
        echo two >> {output}
        false || echo "{params.given}" >> {output}
        '''


# Snakemake starts itself for such a rule, and reads the whole workflow again.
rule count:
    input:
        "numbers.txt",
    output:
        "counted.txt",
    run:
        with open(input[0]) as read, open(output[0], "w") as written:
            print(len(read.readlines()), file=written)
"""
COHORT = {"source": "simulate", "shards": 1, "simulate": SIMULATE}
BRAIN = CONFIG | {
    "cohorts": {"tiny": COHORT},
    "experiments": {"methods": {"variants": ["ridge-central", "majority"], "reference": "ridge-central"}},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with an environment of its own, which has the packages of this one."""
    folder = tmp_path_factory.mktemp("a place (1)")
    copy_workflow(folder / CLONE)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / CLONE / ".venv"], check=True)
    packages = next((folder / CLONE / ".venv" / "lib").glob("*/site-packages"))
    (packages / "this.pth").write_text(f"{folder / CLONE / 'workflow'}\n{sysconfig.get_path('purelib')}\n")
    return folder


def write_host(
    place: Path,
    name: str,
    names: str = "as brainfed_*",
    prefix: str = "",
    snakefile: str = f'"../{CLONE}/workflow/Snakefile"',
) -> Path:
    """A workflow that uses the clone's."""
    host = place / name
    (host / ".snakemake").mkdir(parents=True)
    (host / PARSED).write_bytes((place / CLONE / PARSED).read_bytes())
    (host / "Snakefile").write_text(MODULE.format(snakefile=snakefile, names=names, prefix=prefix) + OWN_RULES)
    (host / "config.yaml").write_text(yaml.safe_dump({"greeting": "none of brainfed's keys", "brain": BRAIN}))
    return host


@pytest.fixture(scope="module")
def forked() -> ForkedCommands:
    """Starts of Snakemake for plans, which cost no imports."""
    return ForkedCommands(LIBRARIES)


def snakemake(host: Path, *arguments: str, python: Path | str = "") -> "subprocess.CompletedProcess[str]":
    """A command line of the clone's environment, or of this one."""
    own = host.parent / CLONE
    return subprocess.run(
        [python or own / ".venv" / "bin" / "python", "-m", "snakemake", *arguments],
        cwd=host,
        env=os.environ | environment(host),
        capture_output=True,
        text=True,
        check=False,
    )


def environment(host: Path) -> dict[str, str]:
    return ALONE | {"PYTHONPATH": str(host.parent / CLONE / "workflow")}


def planned(forked: ForkedCommands, host: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and all that a dry run says."""
    return forked.run(["snakemake", "-n", *arguments], host, environment(host))


@pytest.mark.full("A run in an environment of its own imports every library anew; plans of a host stand below.")
def test_a_host_with_rules_of_its_own_runs_brainfed_as_a_module(place: Path, forked: ForkedCommands) -> None:
    host = write_host(place, "host (1)")
    done = snakemake(host, "--cores", "2")
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "the host begins" in output
    assert (host / "numbers.txt").read_text() == "one\ntwo\nno mapping\n"
    assert "ridge-central" in (host / "results/tiny/tables/methods.tsv").read_text()
    assert "Nothing to be done" in planned(forked, host)[1]
    # Snakemake cannot start itself by a Python in a folder with a blank.
    counted = snakemake(host, "--cores", "2", "counted.txt", python=sys.executable)
    assert (host / "counted.txt").exists(), counted.stdout + counted.stderr
    assert (host / "counted.txt").read_text() == "3\n"
    # Only what the line touches, and the host's rules above it.
    path = host / "config.yaml"
    path.write_text(path.read_text().replace("- majority", "- phenotype"))
    lines = planned(forked, host, "--quiet", "all")[1].splitlines()
    jobs = {words[0] for words in map(str.split, lines) if len(words) == 2 and words[1].isdigit()}
    jobs_of_ours = ("ingest_columns", "train_method", "score_experiment")
    touched = {"numbers", "everything", *(f"brainfed_{name}" for name in jobs_of_ours)}
    assert jobs - {"total", "jobid:"} == touched, lines


def test_rules_of_a_module_may_keep_their_names(place: Path, forked: ForkedCommands) -> None:
    code, said = planned(forked, write_host(place, "no names", names=""), "methods")
    assert code == 0, said
    assert "write_report" in said


@pytest.mark.parametrize(("names", "target"), [("", "models"), ("as brainfed_*", "brainfed_models")])
def test_a_target_with_nothing_to_make_is_one_sentence_under_its_name_in_the_host(
    place: Path, forked: ForkedCommands, names: str, target: str
) -> None:
    code, said = planned(forked, write_host(place, f"nothing {target}", names=names), target)
    assert code != 0
    assert "models: expected variants whose models are kept, found none" in said
    assert "Traceback" not in said


def test_a_prefix_is_refused_with_one_sentence(place: Path, forked: ForkedCommands) -> None:
    code, said = planned(forked, write_host(place, "prefix", prefix='prefix: "brain"'))
    assert code != 0
    assert "expected results/tiny/ to stay where it is, found `prefix`" in said
    assert "Traceback" not in said


def test_a_snakefile_that_is_no_file_of_the_clone_is_refused_with_one_sentence(
    place: Path, forked: ForkedCommands
) -> None:
    for words in (
        ["init", "-q"],
        ["add", "workflow/Snakefile", "workflow/rules"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "Add"],
    ):
        subprocess.run(["git", *words], cwd=place / CLONE, check=True)
    remote = f'gitfile("{place / CLONE}", path="workflow/Snakefile", ref="HEAD")'
    code, said = planned(forked, write_host(place, "remote", snakefile=remote))
    assert code != 0
    assert f"write {place / CLONE}/workflow/Snakefile" in said


def test_the_snakefile_of_another_clone_is_refused_before_a_job_imports_the_installed_one(
    place: Path, forked: ForkedCommands
) -> None:
    """Snakemake puts the folder of a workflow first, so its rules find the package beside it; jobs do not."""
    copy_workflow(place / "other")
    host = write_host(place, "host of another", snakefile='"../other/workflow/Snakefile"')
    code, said = planned(forked, host)
    assert code != 0
    assert f"imports brainfed from {place / CLONE}/workflow/brainfed, not from this workflow" in said
    assert f"Snakefile: {place / CLONE}/workflow/Snakefile." in said


def test_a_clone_in_a_folder_of_the_packages_name_beside_the_host_is_found(place: Path) -> None:
    """Python searches the folder of the host, too, where `brainfed` is the clone and not the package."""
    host = write_host(place, "host with a clone", snakefile='"brainfed/workflow/Snakefile"')
    (host / "brainfed").symlink_to(place / CLONE)
    command = [place / CLONE / ".venv" / "bin" / "python", "-m", "snakemake", "-n"]
    done = subprocess.run(command, cwd=host, env=os.environ | ALONE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
