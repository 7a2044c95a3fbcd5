"""A project for hostile edits: made-up brains as the demo has them, and the same brains as the files of a lab."""

import csv
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from workflow.project import SIMULATE, Project, new_project

SUBJECTS, SHARDS = 24, 2
SMALL = SIMULATE | {"subjects": SUBJECTS, "sites": {"a": {"volumes": 60, "tr": 2.0}, "b": {"volumes": 60, "tr": 2.0}}}
QUICK = {"rounds": 2, "local_epochs": 3}
CONFIG: dict[str, Any] = {
    "project": "hostile",
    "seed": 7,
    "threads": 1,
    "cohorts": {
        "demo": {"source": "simulate", "atlas": "sim20", "shards": SHARDS, "simulate": SMALL},
        "lab": {
            "source": "nifti",
            "atlas": "twenty",
            "phenotype": ["resources/first.csv", "resources/second.csv"],
            "series": "resources/scans/{subject}.nii.gz",
            "confounds": "resources/confounds/{subject}.tsv",
            "parcellation": "resources/atlas.nii.gz",
            "labels": "resources/atlas.tsv",
            "columns": {"mean_fd": "fd"},
            "flag": {"alike": 0.999},
            "min_coverage": 0.95,
            "shards": SHARDS,
        },
    },
    "split": {"institutions": "random", "count": 2, "folds": 2, "repeats": 1},
    "variants": {
        "quick": {"method": "fedgcn", **QUICK},
        "nodes": {"method": "fedni", **QUICK, "inpainting": {"rounds": 2, "local_epochs": 2}},
    },
    "experiments": {
        "methods": {"cohorts": ["lab"], "variants": ["ridge-central", "quick", "nodes"], "reference": "ridge-central"},
        "plain": {"cohorts": ["demo"], "variants": ["majority", "ridge-central"], "reference": "ridge-central"},
    },
}

# Which job reads what another writes, in the cohort `lab`; of `demo` the same without graphs. Written down by hand: the
# rules are held against it.
READERS = {
    "ingest_phenotypes": ["list_issues", "draw_cohort", "draw_experiment", "write_report"],
    "ingest_columns:site-labelled-series": ["measure_scans", "include_subjects", "relate_motion"],
    "ingest_columns:mean_fd": ["measure_quality"],
    "ingest_columns:site-diagnosis": [
        "split_subjects", "train_method:ridge-central", "train_method:quick", "train_method:nodes", "draw_connectivity",
    ],
    "ingest_columns:age-sex": ["build_graph", "train_generator", "fuse_graph"],
    "ingest_columns:site-age-sex-diagnosis": ["draw_graphs"],
    "extract_series": [
        "measure_scans", "include_subjects", "list_issues", "relate_motion", "compute_connectivity", "draw_cohort",
        "draw_connectivity", "write_report",
    ],
    "measure_scans": ["include_subjects", "measure_quality", "write_report"],
    "measure_quality": [
        "list_issues", "relate_motion", "draw_cohort", "draw_experiment", "write_report",
    ],
    "include_subjects": [
        "list_issues", "relate_motion", "split_subjects", "audit_experiment", "draw_cohort", "draw_connectivity",
        "draw_experiment", "write_report",
    ],
    "list_issues": ["write_report"],
    "relate_motion": ["draw_cohort", "write_report"],
    "split_subjects": [
        "build_graph", "train_method:ridge-central", "train_method:quick", "train_method:nodes", "train_generator",
        "fuse_graph", "score_experiment", "draw_graphs", "draw_scopes", "write_report",
    ],
    "compute_connectivity": [
        "build_graph", "train_method:ridge-central", "train_method:quick", "train_method:nodes", "train_generator",
        "fuse_graph", "write_report",
    ],
    "build_graph": [
        "train_generator", "fuse_graph", "train_method:quick", "draw_graphs", "draw_scopes", "write_report",
    ],
    "train_generator": ["fuse_graph", "draw_leakage", "draw_experiment", "write_report"],
    "fuse_graph": ["train_method:nodes", "write_report"],
    "train_method:ridge-central": ["score_experiment", "audit_experiment", "draw_leakage", "draw_patterns"],
    "train_method:quick": ["score_experiment", "audit_experiment", "draw_leakage"],
    "train_method:nodes": ["score_experiment", "audit_experiment", "draw_leakage"],
    "score_experiment": ["draw_experiment", "draw_leakage", "write_report"],
    "audit_experiment": ["draw_leakage", "write_report"],
    "draw_experiment": ["write_report"],
    "draw_leakage": ["write_report"],
    "draw_cohort": ["write_report"],
    "draw_connectivity": ["write_report"],
    "draw_graphs": ["write_report"],
    "draw_scopes": ["write_report"],
    "draw_patterns": ["write_report"],
}  # fmt: skip
DEMO = {
    "simulate_participants": [
        "ingest_phenotypes",
        "ingest_columns:site-labelled-series",
        "ingest_columns:mean_fd",
        "ingest_columns:site-diagnosis",
        "draw_patterns",
    ],
    "simulate_atlas": ["extract_series:0", "extract_series:1", "draw_connectivity", "draw_patterns", "write_report"],
    "simulate_scans:0": ["extract_series:0"],
    "simulate_scans:1": ["extract_series:1"],
}
REFUSED = Counter(refused=1)
"""Instead of jobs, of an edit that no run may begin with."""
GRAPHS = (
    "build_graph", "train_generator", "fuse_graph", "draw_graphs", "draw_scopes", "train_method:quick",
    "train_method:nodes", "ingest_columns:age-sex", "ingest_columns:site-age-sex-diagnosis",
)  # fmt: skip


def below(*jobs: str, cohort: str = "lab") -> "Counter[str]":
    """Rule -> number of the jobs that must run where these must, themselves included.

    Args:
        jobs: `extract_series:0` (a shard), `train_method:quick` (a variant), or a rule with one job.
        cohort: whose.
    """
    found: set[str] = set()
    waiting = list(jobs)
    while waiting:
        job = waiting.pop()
        if job not in found:
            found.add(job)
            waiting.extend(_readers(job, cohort))
    return Counter(job.partition(":")[0] for job in found)


def of_tables(jobs: "Counter[str]") -> "Counter[str]":
    """Those of these jobs that the target `tables` needs; it reads a part of what many jobs write."""
    needed = {"score_experiment", "list_issues"}
    while more := {job for job, readers in (READERS | DEMO).items() if _rules(readers) & needed} - needed:
        needed |= _rules(more) | more
    return Counter({rule: number for rule, number in jobs.items() if rule in needed})


def ingested(*columns: str) -> list[str]:
    """The jobs of `lab` that write participants with one of these columns; without any, all."""
    named = [job for job in READERS if job.startswith("ingest_columns:")]
    chosen = [job for job in named if not columns or set(columns) & set(job.partition(":")[2].split("-"))]
    return ["ingest_phenotypes", *chosen]


def everything(cohort: str = "lab") -> "Counter[str]":
    """All jobs of a cohort."""
    first = [*ingested(), "extract_series:0", "extract_series:1"]
    return below(*(DEMO if cohort == "demo" else first), cohort=cohort)


def both(*parts: "Counter[str]") -> "Counter[str]":
    """Jobs of two cohorts: there is one report."""
    total = sum(parts, Counter())
    total["write_report"] = min(total["write_report"], 1)
    return +total


def _rules(jobs: Iterable[str]) -> set[str]:
    return {job.partition(":")[0] for job in jobs}


def _readers(job: str, cohort: str) -> Iterable[str]:
    if cohort == "lab":
        return READERS.get(job, READERS.get(job.partition(":")[0], ()))
    if job in DEMO:
        return DEMO[job]
    readers = [name for name in READERS.get(job, READERS.get(job.partition(":")[0], ())) if name not in GRAPHS]
    return [*readers, *(["train_method:majority"] if "train_method:ridge-central" in readers else [])]


def hostile_project(folder: Path) -> Project:
    """The project with its files, not yet run: the scans are those that the demo's own rules simulate."""
    demo = {key: {name: CONFIG[key][name]} for key, name in (("cohorts", "demo"), ("experiments", "plain"))}
    project = new_project(folder, subjects=0, **CONFIG | demo)
    made = [f"results/demo/simulated/{name}" for name in ("participants.tsv", "atlas.nii.gz", "atlas.tsv")]
    scans = [f"results/demo/simulated/sub-{number:04d}_bold.nii.gz" for number in range(1, SUBJECTS + 1)]
    project.snakemake("--cores", "2", *made, *scans)
    _lay_out(project.folder, [folder / scan for scan in scans])
    project.configure(**CONFIG)
    return project


def _lay_out(folder: Path, scans: list[Path]) -> None:
    resources = folder / "resources"
    for name in ("scans", "confounds"):
        (resources / name).mkdir(parents=True)
    for name in ("atlas.nii.gz", "atlas.tsv"):
        shutil.copy(folder / "results/demo/simulated" / name, resources / name)
    with (folder / "results/demo/simulated/participants.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for number, (row, scan) in enumerate(zip(rows, scans, strict=True)):
        subject = row["participant_id"]
        shutil.copy(scan, resources / "scans" / f"{subject}.nii.gz")
        write_confounds(resources / "confounds" / f"{subject}.tsv", nib.load(scan).shape[3], number)
        row["fd"] = f"{0.1 + number / 100:.2f}"
    for name, part in (("first.csv", rows[::2]), ("second.csv", rows[1::2])):
        with (resources / name).open("w", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(part)


def write_confounds(path: Path, volumes: int, seed: int) -> None:
    """A table of two confounds."""
    values = np.random.default_rng(seed).standard_normal((volumes, 2))
    np.savetxt(path, values, fmt="%.4f", delimiter="\t", header="x\ty", comments="")


def rule_of(name: str) -> str:
    """The rule that a plan lists; simulating scans has one rule a shard."""
    return "simulate_scans" if name.startswith("simulate_scans") else name


def planned_jobs(project: Project, environment: Mapping[str, str], target: str = "all") -> "tuple[Counter[str], str]":
    """Rule -> number of jobs that a dry run lists, and all that it says."""
    done = project.snakemake("-n", target, check=False, environment=environment)
    text = done.stdout + done.stderr
    if done.returncode:
        return REFUSED, text
    table = re.search(r"^job +count\n-+ +-+\n(.*?)^total", text, re.MULTILINE | re.DOTALL)
    if table is None:
        assert "Nothing to be done" in text, text
        return Counter(), text
    rows = [line.split() for line in table[1].splitlines() if line.strip()]
    return Counter(rule_of(name) for name, number in rows if name != target for _ in range(int(number))), text


def finished_jobs(project: Project) -> dict[Path, int]:
    """What Snakemake measured of every job -> when it wrote that down, in ns: it does so each time that a job runs."""
    return {path: path.stat().st_mtime_ns for path in project.folder.glob("results/*/benchmarks/**/*.tsv")}


def rules_that_ran(before: Mapping[Path, int], after: Mapping[Path, int]) -> "Counter[str]":
    """Rule -> number of jobs that ran between two looks at the finished jobs."""
    ran = (path for path, when in after.items() if before.get(path) != when)
    return Counter(path.parts[path.parts.index("benchmarks") + 1].removesuffix(".tsv") for path in ran)
