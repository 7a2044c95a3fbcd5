"""What a run costs beside its computing: parsing, planning, starting jobs.

Times are of this machine as it is: processor seconds stand beside those of the clock, which other work makes longer.
"""

import argparse
import ast
import csv
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from brainfed.methods.registry import METHODS

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPTS = REPOSITORY / "workflow" / "scripts"
SHOWN = {"linear": "ridge", "federated": "fedgcn", "with a generator": "fedni"}

PROJECT = {
    "project": "overhead",
    "cohorts": {"overhead": {"source": "simulate", "atlas": "sim122", "shards": 4, "simulate": {"subjects": 60}}},
    "split": {"institutions": "random", "count": 3, "folds": 5, "repeats": 2},
    "variants": {"rounds": {"method": "fedgcn", "rounds": 20}},
    "experiments": {
        "methods": {"variants": ["majority", "ridge-central", "rounds", "fedmlp"], "reference": "ridge-central"}
    },
}
SWEPT = PROJECT | {
    "split": {"institutions": "random", "count": 3, "folds": 5, "repeats": 5},
    "variants": {
        "graphs": {
            "method": "fedgcn",
            "rounds": [2, 3, 4, 5],
            "local_epochs": [1, 2, 3, 4],
            "graph": {"k": [3, 5, 10]},
        },
        "nodes": {"method": "fedni", "rounds": [2, 3, 4], "graph": {"k": [3, 5, 10]}},
    },
    "experiments": {
        "methods": {
            "variants": ["majority", "phenotype", "ridge-central", "graphs", "nodes"],
            "reference": "ridge-central",
        }
    },
}


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of all processors."""

    wall: float
    cpu: float


def spent(command: Sequence[str], folder: Path) -> tuple[Spent, str]:
    """What a command takes, its children too, and what it prints."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stdout


def snakemake(*arguments: str, workflow: Path = REPOSITORY / "workflow" / "Snakefile") -> list[str]:
    named = ["--snakefile", str(workflow), "--configfile", "config.yaml"]
    return [sys.executable, "-m", "snakemake", *arguments, *named]


def project(folder: Path, config: dict[str, object]) -> Path:
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def many_series(folder: Path, subjects: int) -> Path:
    """A project of so many small files of series, and a table that names them."""
    (folder / "series").mkdir(parents=True)
    rows = ["participant_id,site,age,sex,diagnosis"]
    for number in range(subjects):
        (folder / "series" / f"sub-{number:05d}.1D").write_text("1 2 3\n", encoding="utf-8")
        kind = ("patient", "control")[number % 2]
        rows.append(
            f"sub-{number:05d},{'ab'[number // 2 % 2]},{20 + number % 9},{('male', 'female')[number % 2]},{kind}"
        )
    (folder / "participants.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    cohort = {"source": "timeseries", "phenotype": "participants.csv", "series": "series/{subject}.1D", "regions": 3}
    variants = {"variants": ["ridge-central"], "reference": "ridge-central"}
    config = {"project": "many", "cohorts": {"many": cohort}, "experiments": {"methods": variants}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def finish_without_computing(folder: Path) -> int:
    """Give a project results of one byte each, on record as made by the jobs of today; their number."""
    _, summary = spent(snakemake("--summary"), folder)
    files = [Path(row["output_file"]) for row in csv.DictReader(summary.splitlines(), delimiter="\t")]
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("0", encoding="utf-8")
    spent(["env", "BRAINFED_ADOPT=1", *nothing_to_do()], folder)
    return len(files)


def nothing_to_do() -> list[str]:
    """All results but the page: it counts the results that were not computed here, so it would be written again."""
    return snakemake("--cores", "1", "--omit-from", "write_report")


def start_of(script: str, entry: str = "") -> Spent:
    """From the start of Python to the last import of a script, and of the entry point that it resolves."""
    tree = ast.parse((SCRIPTS / f"{script}.py").read_text(encoding="utf-8"))
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    if entry:
        imports.append(f"from brainfed.runtime.entry import resolve\nresolve({entry!r})")
    return spent([sys.executable, "-c", "\n".join(imports)], REPOSITORY)[0]


def jobs_of(folder: Path) -> list[tuple[str, float, float]]:
    """Script, seconds and processor seconds of every job, as Snakemake measured them."""
    found = []
    for path in folder.glob("results/*/benchmarks/**/*.tsv"):
        rule = path.relative_to(folder).parts[3].removesuffix(".tsv")
        with path.open(encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file, delimiter="\t")
        cpu = row["cpu_time"]
        found.append((rule, float(row["s"]), 0.0 if cpu == "NA" else float(cpu)))
    return found


def share_not_computing(folder: Path, cores: int) -> list[str]:
    """Lines about one whole run: what Snakemake itself takes, what the starts of jobs take, and what is left."""
    run, _ = spent(snakemake("--cores", str(cores)), folder)
    jobs = jobs_of(folder)
    inside, computed = sum(seconds for _, seconds, _ in jobs), sum(cpu for _, _, cpu in jobs)
    numbers = Counter(rule for rule, _, _ in jobs)
    starts = sum(number * start_of(rule).cpu for rule, number in numbers.items() if (SCRIPTS / f"{rule}.py").exists())
    return [
        f"a run of {len(jobs)} jobs on {cores} cores: {run.wall:.0f} s by the clock, {run.cpu:.0f} s of processors",
        f"  cores without a job                {1 - inside / (run.wall * cores):6.0%} of the clock's seconds",
        f"  Snakemake and the ends of jobs     {1 - computed / run.cpu:6.0%} of the processors' seconds",
        f"  imports at the start of jobs       {starts / run.cpu:6.0%}",
        f"  computing                          {(computed - starts) / run.cpu:6.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--series", type=int, default=50_000, help="files of a large cohort; 0 leaves it out")
    parser.add_argument("--no-run", action="store_true", help="leave out the share of a whole run")
    options = parser.parse_args()
    rows: dict[str, Spent] = {}
    with tempfile.TemporaryDirectory() as temporary:
        swept = project(Path(temporary) / "swept", SWEPT)
        empty = swept / "empty.smk"
        empty.write_text("rule all:\n    input: []\n", encoding="utf-8")
        rows["parse an empty Snakefile"] = spent(snakemake("--list-target-rules", workflow=empty), swept)[0]
        rows["parse, every source file new"] = spent(snakemake("--list-target-rules"), swept)[0]
        rows["parse"] = spent(snakemake("--list-target-rules"), swept)[0]
        rows["dry run, 60 variants x 5 repeats"] = spent(snakemake("-n"), swept)[0]
        files = finish_without_computing(swept)
        no_op, _ = spent(nothing_to_do(), swept)
        rows[f"nothing to do, the same ({files} files)"] = no_op
        if options.series:
            many = many_series(Path(temporary) / "many", options.series)
            rows[f"parse, {options.series:,} series"] = spent(snakemake("--list-target-rules"), many)[0]
            finish_without_computing(many)
            rows[f"nothing to do, {options.series:,} series"] = spent(nothing_to_do(), many)[0]
        for kind, method in SHOWN.items():
            rows[f"start of a job, {kind} ({method})"] = start_of("train_method", METHODS[method].entry)
        print(f"{'':44}{'clock (s)':>10}{'processors (s)':>16}")
        for name, seconds in rows.items():
            print(f"{name:44}{seconds.wall:10.2f}{seconds.cpu:16.2f}")
        if not options.no_run:
            print("\n".join(share_not_computing(project(Path(temporary) / "run", PROJECT), options.cores)))


if __name__ == "__main__":
    main()
