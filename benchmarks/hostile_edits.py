"""Edit, swap, replace, re-date and delete what a run depends on, run again, and compare the jobs that really ran.

    python benchmarks/hostile_edits.py [--cores 2] [--most-jobs 8] [WORD ...]

The project holds the demo's made-up brains twice: as the demo simulates them, and as the files of a lab. Each case
begins with a copy of the finished project. A job ran where Snakemake measured it anew. The exit code is 1 if one case
ran other jobs than those that it touches.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from workflow.hostile_cases import CASES, Case
from workflow.hostile_project import REFUSED, finished_jobs, hostile_project, planned_jobs, rules_that_ran
from workflow.project import Project


def run_case(case: Case, finished: Project, folder: Path, cores: int) -> str:
    """What is wrong after an edit and a run; empty where nothing is."""
    project = finished.copy(folder)
    case.edit(project)
    before = finished_jobs(project)
    done = project.snakemake("--cores", str(cores), case.target, check=False, environment=case.environment)
    if done.returncode and case.runs != REFUSED:
        return (done.stdout + done.stderr).strip().splitlines()[-1]
    if case.runs == REFUSED:
        said = case.says in done.stdout + done.stderr
        return "" if done.returncode and said else f"expected a refusal: {case.says}"
    ran = rules_that_ran(before, finished_jobs(project))
    if ran != case.runs:
        return f"ran without need: {dict(ran - case.runs)}, did not run: {dict(case.runs - ran)}"
    left, _ = planned_jobs(project, {}, case.target)
    return f"still to do: {dict(left)}" if left else ""


def chosen(words: Sequence[str]) -> list[Case]:
    return [case for case in CASES if not words or any(word in case.name for word in words)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--most-jobs", type=int, default=1000, help="leave out the cases that run more jobs")
    parser.add_argument("words", nargs="*", help="only the cases with one of these words in their names")
    arguments = parser.parse_args()
    cases = [case for case in chosen(arguments.words) if sum(case.runs.values()) <= arguments.most_jobs]
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        finished = hostile_project(Path(folder) / "finished")
        finished.snakemake("--cores", str(arguments.cores))
        for case in cases:
            started = time.monotonic()
            wrong = run_case(case, finished, Path(folder) / "case", arguments.cores)
            shutil.rmtree(Path(folder) / "case")
            right += not wrong
            jobs = sum(case.runs.values())
            print(
                f"{'wrong' if wrong else 'right'}  {jobs:3d} jobs  {time.monotonic() - started:5.1f} s  {case.name}",
                flush=True,
            )
            if wrong:
                print(f"       {wrong}", flush=True)
    print(f"{right} of {len(cases)} edits ran exactly the jobs that they touch")
    raise SystemExit(right < len(cases))


if __name__ == "__main__":
    main()
