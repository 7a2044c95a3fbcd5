"""Scripts as Snakemake starts them, without Snakemake: processes of their own with a `snakemake` object."""

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import brainfed
from support.processes.awaited import HANGS_AFTER_S
from support.processes.fake_driver import FakeDriver

PACKAGE = Path(brainfed.__file__).parents[1]
PREAMBLE = """
import json, os, sys
from types import SimpleNamespace
from brainfed.runtime import UserError
from brainfed.scripting import job
given = json.loads(sys.argv[1])
snakemake = SimpleNamespace(
    log=given["log"], params={"given": given["params"]}, resources=given["resources"], scriptdir=given["scriptdir"],
    input={}, output=[],
)
"""


@dataclass
class Ended:
    """How a script has ended, and what it has said."""

    code: int
    stdout: str
    stderr: str
    log: str


class Scripts:
    """Starts scripts that hold the lines of a test.

    Attributes:
        log: the rule's log.
        given: what the `snakemake` object has.
        environment: of the processes; it hides the GPUs of the machine.
    """

    def __init__(self, folder: Path) -> None:
        self.log = folder / "logs" / "rule.log"
        self.given: dict[str, Any] = {
            "log": [str(self.log)],
            "params": {},
            "resources": {"gpu": 1},
            "scriptdir": str(PACKAGE / "scripts"),
        }
        hidden = {"CUDA_VISIBLE_DEVICES": "", "BRAINFED_LOCKS": str(folder / "locks")}
        self.environment = {name: value for name, value in os.environ.items() if name != "SLURM_JOB_ID"} | hidden

    def see(self, driver: FakeDriver, torch: Path | None = None) -> None:
        """Show fake devices to the scripts, with a fake torch in a folder."""
        del self.environment["CUDA_VISIBLE_DEVICES"]
        self.environment.pop("BRAINFED_JOBS_PER_GPU", None)
        self.environment |= driver.environment
        if torch is not None:
            self.environment["PYTHONPATH"] = os.pathsep.join([str(torch), str(PACKAGE)])

    def start(self, body: str) -> "subprocess.Popen[str]":
        """A script that runs."""
        source = PREAMBLE + textwrap.dedent(body)
        command = [sys.executable, "-c", source, json.dumps(self.given)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, text=True, env=self.environment, **pipes)

    def run(self, body: str) -> Ended:
        """A script that has ended."""
        process = self.start(body)
        stdout, stderr = process.communicate(timeout=HANGS_AFTER_S)
        return Ended(process.returncode, stdout, stderr, self.log.read_text() if self.log.exists() else "")

    def run_in_job(self, body: str) -> Ended:
        """A script whose lines are in a job with a GPU, below an import of torch."""
        inside = textwrap.indent(textwrap.dedent(body), "    ")
        return self.run(f"with job(snakemake, gpu=True) as running:\n    import torch\n{inside}")
