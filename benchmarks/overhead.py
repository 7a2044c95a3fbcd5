"""What a run costs beside its computing: parsing, planning, starting jobs.

Times are of this machine as it is: processor seconds stand beside those of the clock, which other work makes longer.
"""

import argparse
import ast
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from spending import Spent, adopt_orphans, spent, wait_for_orphans

from brainfed.forking import client, job_shell
from brainfed.methods import METHODS

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


def imports_of(script: str, entry: str = "") -> str:
    """The imports of a script, and of the entry point that it resolves; it prints the processor's seconds."""
    tree = ast.parse((SCRIPTS / f"{script}.py").read_text(encoding="utf-8"))
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    if entry:
        imports.append(f"from brainfed.runtime import resolve\nresolve({entry!r})")
    # Snakemake's own, and a line after them that the rest of a script takes the place of.
    first = ["import snakemake.logging", "import snakemake.iocontainers"]
    return "\n".join([*first, *imports, "import time", "print(time.process_time())"]) + "\n"


@contextmanager
def forks() -> Iterator[None]:
    """Jobs of the block are forked from one process."""
    with subprocess.Popen(["sleep", "3600"]) as owner:
        os.environ[client.VARIABLE] = f"{owner.pid}-overhead"
        yield
        del os.environ[client.VARIABLE]
        owner.kill()
    wait_for_orphans()


@contextmanager
def forks_off() -> Iterator[None]:
    """Jobs of the block start by themselves."""
    os.environ[client.VARIABLE] = client.OFF
    yield
    del os.environ[client.VARIABLE]


def start_of(script: str, entry: str = "", *, again: bool = False) -> Spent:
    """From the start of a job to the last import of its script: of the first job of its kind, or of a later one."""
    with tempfile.TemporaryDirectory() as folder, forks():
        job = Path(folder) / "job.py"
        job.write_text(imports_of(script, entry), encoding="utf-8")
        command = [job_shell(), "-c", f"{sys.executable} {job}"]
        found = []
        for _ in range(2):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found.append(Spent(time.monotonic() - start, own + float(done.stdout)))
    return found[again]


def start_by_itself(script: str, entry: str = "") -> Spent:
    """The same where nothing is forked."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.py"
        job.write_text(imports_of(script, entry), encoding="utf-8")
        return spent([sys.executable, str(job)], REPOSITORY)[0]


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


def shares(temporary: Path, cores: int) -> list[str]:
    """Lines about one whole run whose jobs start by themselves, and about the same run with forked jobs.

    What the jobs compute is the same in both. It is known of the first: Snakemake looks at a job every half second, and
    a forked one may have ended by then.
    """
    with forks_off():
        folder = project(temporary / "by-themselves", PROJECT)
        apart, _ = spent(snakemake("--cores", str(cores)), folder)
    jobs = jobs_of(folder)
    inside, computed = sum(seconds for _, seconds, _ in jobs), sum(cpu for _, _, cpu in jobs)
    numbers = Counter(rule for rule, _, _ in jobs)
    starts = sum(n * start_by_itself(rule).cpu for rule, n in numbers.items() if (SCRIPTS / f"{rule}.py").exists())
    folder = project(temporary / "forked", PROJECT)
    forked, _ = spent(snakemake("--cores", str(cores)), folder)
    inside_forks = sum(seconds for _, seconds, _ in jobs_of(folder))
    idle = [1 - taken / (run.wall * cores) for taken, run in ((inside, apart), (inside_forks, forked))]
    return [
        f"{f'a run of {len(jobs)} jobs on {cores} cores':44}{'by themselves':>14}{'forked':>10}",
        f"{'  seconds by the clock':44}{apart.wall:14.0f}{forked.wall:10.0f}",
        f"{'  seconds of processors':44}{apart.cpu:14.0f}{forked.cpu:10.0f}",
        f"{'  imports at the start of jobs':44}{starts / apart.cpu:14.0%}",
        f"{'  computing':44}{(computed - starts) / apart.cpu:14.0%}{(computed - starts) / forked.cpu:10.0%}",
        f"{'  cores without a job':44}{idle[0]:14.0%}{idle[1]:10.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--series", type=int, default=50_000, help="files of a large cohort; 0 leaves it out")
    parser.add_argument("--no-run", action="store_true", help="leave out the share of a whole run")
    options = parser.parse_args()
    adopt_orphans()
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
            entry = METHODS[method].entry
            rows[f"start of a job, {kind} ({method})"] = start_by_itself("train_method", entry)
            rows[f"  forked, the first ({method})"] = start_of("train_method", entry)
            rows[f"  forked, a later one ({method})"] = start_of("train_method", entry, again=True)
        print(f"{'':44}{'clock (s)':>10}{'processors (s)':>16}")
        for name, seconds in rows.items():
            print(f"{name:44}{seconds.wall:10.2f}{seconds.cpu:16.2f}")
        if not options.no_run:
            print("\n".join(shares(Path(temporary), options.cores)))


if __name__ == "__main__":
    main()
