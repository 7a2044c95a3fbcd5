"""Whether a workflow that is killed again and again comes to the same results.

    python benchmarks/random_kills.py [--kills 200] [--seed 0] [--cores 1]

Runs a small project of every stage once undisturbed. Then the same project is started, killed, unlocked and started
again, ten times, and run to its end; then another, until so many kills are reached. The seed draws when and how:
SIGKILL, SIGTERM or SIGINT to the workflow and all its jobs, SIGKILL to the workflow alone, SIGKILL or SIGTERM to one
job. After a kill nothing of the run may stay alive; in the end all results but seconds must have the bytes of the
undisturbed run, and no half-written or temporary file, state or marker may be left (of leases, which want a GPU, see
tests/unit/runtime/devices/test_slots.py). One row a project; the exit code is 1 if one failed, and what it left
is kept in the folder that its row names.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from workflow.interrupted import WAYS, Interrupted, finish, left_over, results_of, whole_project

KILLS_A_PROJECT = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cores", type=int, default=1)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="random-kills-"))
    whole = whole_project(folder / "whole")
    seconds = finish(whole, chosen.cores)
    expected = results_of(whole)
    print(f"undisturbed: {seconds:.0f} s, {len(expected)} files; {folder}", flush=True)
    print("| project | kills | seconds | result |\n|---|---|---|---|", flush=True)
    total: Counter[str] = Counter()
    number = failed = 0
    while total.total() < chosen.kills:
        started = time.monotonic()
        project = whole_project(folder / f"project-{number}")
        # As a seed a text is hashed the same way in every process; ten kills fall over about one run.
        draw = random.Random(f"{chosen.seed}/{number}")
        runs = Interrupted(project, draw, 2.5 * seconds / KILLS_A_PROJECT, chosen.cores)
        result = "same bytes, nothing left"
        try:
            while runs.kills.total() < min(KILLS_A_PROJECT, chosen.kills - total.total()) and runs.kill_once():
                pass
            finish(project, chosen.cores)
            found = results_of(project)
            changed = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
            left = left_over(project)
            if changed or left:
                result = f"FAILED: changed {changed}, left {left}, in {project.folder}"
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            result = f"FAILED in {project.folder}: {' '.join(str(error)[-1500:].split())}"
        if result.startswith("FAILED"):
            failed += 1
        else:
            shutil.rmtree(project.folder)
        total += runs.kills
        print(f"| {number} | {runs.kills.total()} | {time.monotonic() - started:.0f} | {result} |", flush=True)
        number += 1
    print(f"{total.total()} kills: " + ", ".join(f"{total[way]} x {way}" for way in WAYS))
    if failed:
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
