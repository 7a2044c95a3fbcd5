"""Whether a change made the project faster or slower: the same commands on two commits, in turns, in one run.

Seconds of one commit say little on a machine that does other work. So each command runs on both commits, the first of
each pair changing, and the ratio of every pair counts. A ratio whose range includes 1 shows no difference.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml
from overhead import PROJECT
from spending import Spent, adopt_orphans, spent

REPOSITORY = Path(__file__).resolve().parents[1]
SNAKEMAKE, SHORT = "snakemake", "short.yaml"
"""The program; the config of a run of jobs that take seconds."""
COMMANDS = {
    "plan": [SNAKEMAKE, "-n", "--quiet", "all"],
    "run": [SNAKEMAKE, "--cores", "2", "--quiet", "all", SHORT],
    "classifiers": ["benchmarks/training_speed.py", "fedmlp", "fedgcn", "--features", "2000"],
    "linear": ["benchmarks/training_speed.py", "ridge-central", "--features", "2000"],
    "generator": ["benchmarks/inpainting_speed.py", "--features", "2000"],
    "tangent": ["benchmarks/tangent_speed.py", "--subjects", "300", "--regions", "122"],
}
"""What is compared: a script of a commit with its arguments, or Snakemake on the commit's workflow and demo."""


def taken(commit: Path, arguments: Sequence[str]) -> Spent:
    """What a command takes on a commit, in a folder of its own, with nothing left of earlier runs."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = [sys.executable, str(commit / arguments[0]), *arguments[1:]]
        if arguments[0] == SNAKEMAKE:
            (folder / "config").symlink_to(commit / "config")
            (folder / SHORT).write_text(yaml.safe_dump(PROJECT), encoding="utf-8")
            config = SHORT if SHORT in arguments else "config/config.yaml"
            files = ["--snakefile", str(commit / "workflow" / "Snakefile"), "--configfile", config]
            command = [sys.executable, "-m", *(word for word in arguments if word != SHORT), *files]
        return spent(command, folder, {"PYTHONPATH": str(commit / "workflow"), "BRAINFED_FORKS": ""})[0]


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A worktree of a commit; `.` is the folder as it stands, with its edits."""
    if commit == ".":
        yield REPOSITORY
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = str(Path(temporary) / "commit")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, commit], cwd=REPOSITORY, check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=REPOSITORY, check=True)


def row(name: str, pairs: Sequence[tuple[Spent, Spent]]) -> str:
    """Least seconds of both commits, and medians and ranges of the pairs' ratios."""
    cells = [name]
    for seconds in (lambda each: each.wall, lambda each: each.cpu):
        before, after = ([seconds(pair[place]) for pair in pairs] for place in (0, 1))
        found = [new / old for old, new in zip(before, after, strict=True)]
        cells += [f"{min(before):.2f}", f"{min(after):.2f}", f"{statistics.median(found):.2f}"]
        cells.append(f"{min(found):.2f} to {max(found):.2f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="a commit, such as HEAD~1")
    parser.add_argument("after", nargs="?", default=".", help="a commit; without it, the files as they are")
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--times", type=int, default=3, help="pairs of runs")
    options = parser.parse_args()
    adopt_orphans()
    print("| command | clock (s) before | after | ratio | range | processors (s) before | after | ratio | range |")
    print("|---|---:|---:|---:|---|---:|---:|---:|---|")
    with ExitStack() as stack:
        before, after = (stack.enter_context(checked_out(commit)) for commit in (options.before, options.after))
        for name in options.only:
            pairs = []
            for number in range(options.times):
                first, second = (before, after) if number % 2 == 0 else (after, before)
                one, other = taken(first, COMMANDS[name]), taken(second, COMMANDS[name])
                pairs.append((one, other) if number % 2 == 0 else (other, one))
            print(row(name, pairs), flush=True)


if __name__ == "__main__":
    main()
