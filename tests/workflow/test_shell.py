"""A workflow waits for its jobs after a stop signal, also with a shell that forks (bash before 5.1)."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes.awaited import HANGS_AFTER_S, until_true

pytestmark = pytest.mark.workflow

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
SNAKEFILE = f"""
include: "{RULES}/shell.smk"

rule train:
    output: "scores"
    resources: shell_exec=JOB_SHELL
    script: "train.py"
"""
TRAIN = """
import time
from pathlib import Path
from brainfed.runtime.jobs import stop_asked, whole
from brainfed.runtime.jobs._stopping import stoppable

try:
    with stoppable():
        for _ in whole(range(1)):
            Path("running").touch()
            while not stop_asked():
                time.sleep(0.05)
            time.sleep(1)
            Path("kept").touch()
except KeyboardInterrupt:
    raise SystemExit(130)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workflow of one job, and a bash that waits for its last command."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "train.py").write_text(TRAIN)
    bash = tmp_path / "bin" / "bash"
    bash.parent.mkdir()
    bash.write_text(f'#!/bin/sh\nexec {shutil.which("bash")} -c "$2\nexit"\n')
    bash.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("forks", ["", pytest.param("off", marks=pytest.mark.full("It waits for two rounds."))])
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full("It is passed on as SIGTERM is."))]
)
def test_the_workflow_waits_for_a_job_that_keeps_its_round(folder: Path, number: signal.Signals, forks: str) -> None:
    log = folder / "log"
    with log.open("w") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1"],
            cwd=folder,
            env=os.environ | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "BRAINFED_FORKS": forks},
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    until_true(lambda: (folder / "running").exists() or running.poll() is not None)
    os.killpg(running.pid, number)
    running.wait(timeout=HANGS_AFTER_S)
    kept, said = (folder / "kept").exists(), log.read_text()
    assert running.returncode != 0
    assert kept, said
    assert not (folder / "scores").exists()
    command = r"'\S+python\S* \S+/\.snakemake/scripts/\S+\.train\.py"
    assert number == signal.SIGINT or re.search(rf"{command}' returned non-zero exit status 130", said), said


OTHERS = f"""
include: "{RULES}/shell.smk"

rule all:
    input: "several", "piped", "quoted", "moved", "scored", "by_run"

rule several:
    output: "several"
    shell: "echo one > {{output}}; echo two >> {{output}}"

rule piped:
    input: "several"
    output: "piped"
    shell: "cat {{input}} | sort | head -n 1 > {{output}} && true"

rule quoted:
    output: "quoted"
    shell: \'\'\'
        cat <<END > {{output}}
it's $((1 + 1))
END
        \'\'\'

rule moved:
    output: "moved"
    shell: "mkdir -p sub && cd sub; pwd | sed s,.*/,, > ../{{output}}"

rule scored:
    output: "scored"
    resources: shell_exec=JOB_SHELL
    script: "score.py"

rule by_run:
    output: "by_run"
    run:
        shell("echo one > {{output}}; echo two >> {{output}}")

rule failing:
    output: "failing"
    shell: "echo one > {{output}}; false; echo two >> {{output}}"

rule failing_pipe:
    output: "failing_pipe"
    shell: "false | cat > {{output}}"
"""
SCORE = "import sys\nfrom pathlib import Path\nPath(snakemake.output[0]).write_text(Path(sys.executable).name)\n"


@pytest.mark.parametrize(
    "prefix",
    ["", pytest.param("shell.prefix('export GREETING=good; ')\n", marks=pytest.mark.full("A prefix changes little."))],
)
def test_rules_with_commands_of_their_own_run_whole(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "Snakefile").write_text(prefix + OTHERS)
    (tmp_path / "score.py").write_text(SCORE)

    def run(*targets: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--keep-going", *targets]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)

    done = run()
    assert done.returncode == 0, done.stderr
    expected = {
        "several": "one\ntwo\n",
        "piped": "one\n",
        "quoted": "it's 2\n",
        "moved": "sub\n",
        "by_run": "one\ntwo\n",
    }
    assert {name: (tmp_path / name).read_text() for name in expected} == expected
    assert (tmp_path / "scored").read_text() == Path(sys.executable).name
    if not prefix:
        assert run("failing", "failing_pipe").returncode != 0
        assert not (tmp_path / "failing").exists() and not (tmp_path / "failing_pipe").exists()


def test_every_job_is_one_command_and_starts_in_the_shell_of_jobs() -> None:
    rules = [*RULES.glob("*.smk"), RULES.parent / "Snakefile"]
    other = re.compile(r"^ +(shell|run|wrapper|notebook|cwl):", re.MULTILINE)
    assert [path.name for path in rules if other.search(path.read_text())] == []
    counted = {path: [path.read_text().count(word) for word in (" script:\n", " **job_needs(")] for path in rules}
    assert [path.name for path, (scripts, shells) in counted.items() if scripts != shells] == []
    assert sum(scripts for scripts, _ in counted.values()) > 40
    assert '"shell_exec": JOB_SHELL,' in (RULES / "common.smk").read_text()


def test_no_file_sets_a_prefix_for_all_rules() -> None:
    sources = [path for kind in ("*.smk", "*.py", "Snakefile") for path in RULES.parent.rglob(kind)]
    assert [path.name for path in sources if "shell.prefix(" in path.read_text(encoding="utf-8")] == []
