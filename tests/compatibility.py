"""The smallest study with each version of Python, and with the newest and the oldest libraries that are allowed.

`make compatibility` prints the table of `docs/reference/versions.md`; `python tests/compatibility.py oldest` prints the
rows of the first environment and of this one. uv makes each environment in a temporary folder. It needs Python 3.11,
3.12 and 3.13 on the PATH, or downloads them. torch for GPUs takes some GB of each: `UV_TORCH_BACKEND=cpu` spares them.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

REPOSITORY = Path(__file__).resolve().parents[1]
STUDY = f"""\
extends: {REPOSITORY / ".test" / "config" / "config.yaml"}
variants:
  harmonised: {{method: ridge, training: central, features: {{harmonise: combat}}}}
  private: {{method: fglbc, rounds: 2, window: 20, channels: 4, kernel: 3, strides: [2, 1], batch: 4, delta: 0.01}}
experiments:
  methods:
    variants: [phenotype, ridge-central, tangent-central, svm-central, harmonised, fedgcn, fedni, private]
    reference: ridge-central
"""
"""The smallest study, with a method for each library that computes."""
SHOWN = ("snakemake", "torch", "numpy", "pandas", "scikit-learn", "nilearn", "pydantic")


@dataclass(frozen=True)
class Environment:
    """A version of Python, and what uv is asked to install."""

    name: str
    python: str
    requirements: tuple[str, ...]


ENVIRONMENTS = (
    *(Environment("lock", python, ("-r", "requirements.lock")) for python in ("3.11", "3.12", "3.13")),
    Environment("newest", "3.13", ("-r", "pyproject.toml")),
    Environment("oldest", "3.11", ("--resolution", "lowest-direct", "-r", "pyproject.toml")),
)


@contextmanager
def installed(environment: Environment) -> Iterator[Path]:
    """The Python of the environment, which is removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        uv = [sys.executable, "-m", "uv", "--quiet"]
        subprocess.run([*uv, "venv", "--python", environment.python, folder, "--clear"], check=True)
        install = [*uv, "pip", "install", "--python", python, *environment.requirements]
        subprocess.run(install, cwd=REPOSITORY, check=True)
        yield python


def versions(python: Path) -> list[str]:
    """Of Python, and of the libraries `SHOWN`."""
    code = f"import importlib.metadata as m, platform as p; print(p.python_version(), *map(m.version, {SHOWN}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def run(python: Path, folder: Path) -> tuple[str, str]:
    """Run the study in a folder: number of jobs, and the first error, empty if there is none."""
    (folder / "workflow").symlink_to(REPOSITORY / "workflow")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    command = [python, "-m", "snakemake", "--cores", "all", "--configfile", "study.yaml"]
    # A machine with SLURM is not asked for it.
    own = {"PYTHONPATH": str(folder / "workflow"), "SLURM_CONF": os.devnull}
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    steps = re.findall(r"(\d+) of \d+ steps", said)
    errors = re.findall(r"^(\w*(?:Error|Exception): .*)$", said, re.MULTILINE) or [said[-300:]]
    made = (folder / "results" / "reports" / "test.html").exists()
    return steps[-1] if steps else "0", "" if done.returncode == 0 and made else errors[0]


def predictions(folder: Path) -> dict[str, pd.DataFrame]:
    """Of each variant."""
    files = sorted(folder.glob("results/tiny/methods/*/*/repeat-0/predictions.parquet"))
    return {file.parts[-3]: pd.read_parquet(file) for file in files}


def compared(own: Mapping[str, pd.DataFrame], first: Mapping[str, pd.DataFrame]) -> str:
    """`equal`, or the largest difference of a score."""
    if own.keys() != first.keys():
        return f"other variants: {', '.join(sorted(own.keys() ^ first.keys()))}"
    if all(own[name].equals(first[name]) for name in first):
        return "equal"
    scores = [(own[name].select_dtypes(float), first[name].select_dtypes(float)) for name in first]
    return f"differ by {max(float(np.abs(ours - theirs).max(axis=None)) for ours, theirs in scores):.0e} at most"


def main(names: Sequence[str]) -> int:
    """Print the table; 1 if an environment fails, or gives other predictions with the same libraries."""
    print("| libraries | Python |", " | ".join(SHOWN), "| jobs | predictions |")
    print("|---" * (len(SHOWN) + 4) + "|")
    first: dict[str, pd.DataFrame] = {}
    bad = False
    for environment in ENVIRONMENTS:
        if first and names and environment.name not in names:
            continue
        with installed(environment) as python, tempfile.TemporaryDirectory() as folder:
            shown = versions(python)
            jobs, error = run(python, Path(folder))
            own = predictions(Path(folder))
            first = first or own
            result = error or compared(own, first)
        bad |= bool(error) or (environment.name == "lock" and result != "equal")
        print(f"| {environment.name} |", " | ".join([*shown, jobs, result]), "|", flush=True)
    return int(bad)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    choice = {each.name for each in ENVIRONMENTS}
    parser.add_argument("environments", nargs="*", help=f"beside the first one; all without: {', '.join(choice)}")
    sys.exit(main(parser.parse_args().environments))
