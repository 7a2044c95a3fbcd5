"""The workflow's scripts on files of a test, without Snakemake."""

import json
import subprocess
import sys
from pathlib import Path

import brainfed

SCRIPTS = Path(brainfed.__file__).parents[1] / "scripts"

RUN_SCRIPTS = """
import json, runpy, sys
from types import SimpleNamespace

class Named(dict):
    __getattr__ = dict.__getitem__

    def __iter__(self):
        return iter(self.values())

for case in json.loads(sys.argv[1]):
    given = {key: Named(case[key]) for key in ("input", "output")}
    fixed = {"log": [], "params": {"given": case["params"]}, "resources": {}, "threads": 1}
    fixed["scriptdir"] = case["path"].rpartition("/")[0]
    runpy.run_path(case["path"], init_globals={"snakemake": SimpleNamespace(**given, **fixed)})
"""


def run_scripts(cases):
    """The scripts, one after the other, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_SCRIPTS, json.dumps(list(cases))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
