"""A tiny project on disk and the workflow run on it, for tests of the DAG."""

import ast
import compileall
import csv
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from brainfed.digests import SourceTree, code_digest
from support.processes.forked_cli import LIBRARIES, OURS, ForkedCommands
from support.processes.made_once import made_once

REPOSITORY = Path(__file__).resolve().parents[2]
SITES = ("alpha", "beta")
REGIONS, VOLUMES = 12, 60
PARSED = Path(".snakemake") / "brainfed-sources.json"
"""Where a run remembers the parsed files of the workflow (`rules/common.smk`)."""

CONFIG = {
    "project": "tiny",
    "cohorts": {
        "tiny": {
            "source": "timeseries",
            "atlas": "twelve",
            "phenotype": "resources/participants.csv",
            "series": "resources/series/{file}.1D",
            "regions": REGIONS,
            "shards": 3,
        }
    },
    "split": {"institutions": "random", "count": 2, "folds": 2, "repeats": 1},
    "variants": {"quick": {"method": "fedgcn", "rounds": 2, "local_epochs": 2}},
    "experiments": {"methods": {"variants": ["ridge-central", "fedmlp", "quick"], "reference": "ridge-central"}},
}

ALONE = {"PYTHONDONTWRITEBYTECODE": "", "SLURM_CONF": os.devnull}
"""Environment of every run. The project's modules are compiled once, as on a user's machine. At each start Snakemake's
SLURM plugin asks for a controller, and here finds none at once, whatever the machine's own configuration names."""

SIMULATE = {
    "subjects": 24,
    "regions": 20,
    "grid": [8, 9, 8],
    "voxel_size": 18.0,
    "effect": 0.4,
    "effect_connections": 40,
    "age_connections": 20,
    "sex_connections": 20,
    "sites": {"a": {"volumes": 60, "tr": 2.0, "noise": 0.5}, "b": {"volumes": 70, "tr": 1.5, "noise": 1.0}},
}
"""A simulated cohort that takes seconds."""


@dataclass(frozen=True)
class Project:
    """A folder with a config and a tiny cohort, and a link to the workflow, or a copy once that is edited."""

    folder: Path

    def write_subject(self, subject: str, seed: int) -> Path:
        """One subject's region series."""
        path = self.folder / "resources" / "series" / f"{subject}.1D"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = np.random.default_rng(seed).standard_normal((VOLUMES, REGIONS))
        header = "\t".join(f"#{number}" for number in range(1, REGIONS + 1))
        np.savetxt(path, values, fmt="%.6f", delimiter="\t", header=header, comments="")
        return path

    def write_cohort(self, subjects: int) -> None:
        """The phenotype table and every series."""
        rows = []
        for number in range(subjects):
            subject = f"sub-{number:03d}"
            self.write_subject(subject, number)
            rows.append(
                [
                    subject,
                    SITES[number % 2],
                    20 + number % 10,
                    ("male", "female")[number // 2 % 2],
                    ("patient", "control")[number // 4 % 2],
                ]
            )
        with (self.folder / "resources" / "participants.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["participant_id", "site", "age", "sex", "diagnosis"], *rows])

    def add_subject(self, subject: str, *cells: str) -> None:
        """One more row of the phenotype table, and its series."""
        with (self.folder / "resources" / "participants.csv").open("a", newline="") as file:
            csv.writer(file).writerow([subject, *cells])
        self.write_subject(subject, 10_000)

    def configure(self, **changes: object) -> None:
        """Write the config with top-level keys replaced."""
        (self.folder / "config.yaml").write_text(yaml.safe_dump(CONFIG | changes, sort_keys=False))

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace text in a file of the workflow."""
        self.own_workflow()
        path = self._workflow / file
        text = path.read_text()
        assert text.count(old) >= 1, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, 1))

    def edit_function(self, file: str, name: str) -> None:
        """Add a statement to a function of the workflow."""
        self.own_workflow()
        path = self._workflow / file
        text = path.read_text()
        (function,) = (each for each in ast.parse(text).body if getattr(each, "name", "") == name)
        last = function.body[-1]
        lines = text.splitlines(keepends=True)
        lines.insert(last.lineno - 1, f"{' ' * last.col_offset}ADDED = 1\n")
        path.write_text("".join(lines))

    def snakemake(
        self, *arguments: str, check: bool = True, environment: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run snakemake on the project's copy of the workflow, with additions to the environment.

        It is forked from a process that has imported Snakemake, and this checkout's library where the project's
        workflow is a link to it.
        """
        own = ALONE | {"PYTHONPATH": str(self.folder / "workflow")} | dict(environment or {})
        words = [*arguments, "--configfile", "config.yaml"]
        done = _forked(self._workflow.is_symlink()).run_apart(["snakemake", *words], self.folder, own)
        if check and done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return done

    def planned(self, target: str = "tables") -> Counter[str]:
        """What a dry run would do: rule -> number of jobs."""
        done = self.snakemake("-n", target)
        table = re.search(r"^job +count\n-+ +-+\n(.*?)^total", done.stdout + done.stderr, re.MULTILINE | re.DOTALL)
        if table is None:
            assert "Nothing to be done" in done.stdout + done.stderr, done.stdout + done.stderr
            return Counter()
        counts = Counter({line.split()[0]: int(line.split()[1]) for line in table[1].splitlines() if line.strip()})
        del counts[target]
        return counts

    def copy(self, folder: Path) -> "Project":
        """The project as it stands, results and times of change included, somewhere else."""
        _copy_folder(self.folder, folder)
        return Project(folder)

    def own_workflow(self) -> None:
        """Have a copy of the workflow in place of the link, to change its code."""
        if self._workflow.is_symlink():
            self._workflow.unlink()
            compiled = made_once("compiled-workflow", _compile_workflow)
            subprocess.run(["cp", "-a", compiled / "workflow", self.folder], check=True)

    @property
    def _workflow(self) -> Path:
        return self.folder / "workflow"


@cache
def _forked(with_library: bool) -> ForkedCommands:
    """The process that forks runs; it ends with this one, whose end closes its input."""
    return ForkedCommands((*LIBRARIES, *OURS) if with_library else LIBRARIES)


def copy_workflow(folder: Path) -> None:
    """The workflow of this checkout, to run and to edit in `folder`, compiled and parsed."""
    _copy_folder(made_once("compiled-workflow", _compile_workflow), folder)


def _compile_workflow(folder: Path) -> None:
    """The workflow in a folder, each module compiled and parsed."""
    ignored = shutil.ignore_patterns("*.egg-info", "*.pyc.*")
    shutil.copytree(REPOSITORY / "workflow", folder / "workflow", ignore=ignored)
    compileall.compile_dir(folder / "workflow" / "brainfed", quiet=2)
    (folder / ".snakemake").mkdir()
    sources = SourceTree(folder / "workflow", memory=folder / PARSED)
    for script in (folder / "workflow" / "scripts").glob("*.py"):
        code_digest(f"scripts/{script.name}", base=sources)
    for module in sources.modules:
        sources.source(module)
    sources.remember()


def _copy_folder(source: Path, folder: Path) -> None:
    """A copy with times and links. `cp` is twice as fast as `shutil`."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", folder], check=True)


def participants_of(cohort: Path) -> pd.DataFrame:
    """All columns of a cohort's participants that a run has written, for whatever jobs, by subject."""
    tables = [*cohort.glob("participants/*.parquet"), *cohort.glob("participants.parquet")]
    found = pd.concat([pd.read_parquet(path).set_index("subject") for path in tables], axis=1)
    return found.loc[:, ~found.columns.duplicated()]


def new_project(folder: Path, subjects: int = 40, **changes: object) -> Project:
    """A project that has not run yet; with 0 subjects it has no table and no series."""
    compiled = made_once("compiled-workflow", _compile_workflow)
    _copy_folder(compiled / ".snakemake", folder / ".snakemake")
    (folder / "workflow").symlink_to(REPOSITORY / "workflow")
    project = Project(folder)
    if subjects:
        project.write_cohort(subjects)
    project.configure(**changes)
    return project
