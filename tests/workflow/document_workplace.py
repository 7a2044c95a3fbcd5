"""Where the commands of the documents are run: a checkout without results, with files of made-up subjects."""

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from brainfed.configuration import load_plan
from support.documents.document_commands import Command
from support.files.fake_cohorts import write_cohorts
from support.processes.awaited import HANGS_AFTER_S
from support.processes.forked_cli import PROGRAMS, ForkedCommands
from workflow.project import REPOSITORY

PLANNED, CHECKED = 24, 240
"""Most subjects of a cohort whose jobs are planned, and of one that is checked."""
OF_AN_INSTITUTION = 25
"""Subjects with which every fold of an institution has both classes, and the one site of the study is large enough."""
MINE = "config/mystudy.yaml"
"""The config that the documents call the reader's own."""
STUDY = {"study.yaml": "lead-a-study.md", "site.yaml": "join-a-study.md"}
"""Configs of a study between hospitals -> the guide that shows it, in its first block of YAML."""
BESIDE = ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock", "requirements-sites.lock")


@dataclass
class Workplace:
    """A checkout without results, with files of made-up subjects for every config that a command names.

    Attributes:
        folder: its folder.
        commands: runs Snakemake and the check.
        usual: content of config/mystudy.yaml for a document that shows none.
        supplied: configs, by content, whose cohorts are written -> their first experiment.
        subjects: most of each made-up cohort; a check counts those of every institution and fold.
        larger: the same with more subjects, for checks.
        planned: profiles, and names and contents of configs, whose jobs were planned; with targets or without.
    """

    folder: Path
    commands: ForkedCommands
    usual: str
    subjects: int
    supplied: dict[str, str] = field(default_factory=dict)
    larger: "Workplace | None" = None
    planned: set[tuple[str, bool]] = field(default_factory=set)

    def supply(self, command: Command, configs: Sequence[str]) -> str:
        """Write the reader's config, and what the cohorts of these configs read; the name of an experiment."""
        mine = self.folder / MINE
        if not mine.exists() or mine.read_text(encoding="utf-8") != (command.config or self.usual):
            mine.write_text(command.config or self.usual, encoding="utf-8")
            # Documents name the same paths for tables of different columns.
            self.supplied = {text: name for text, name in self.supplied.items() if "project: mystudy" not in text}
        paths = [self.folder / config for config in configs or ["config/config.yaml"]]
        if not all(path.is_file() for path in paths):
            # The command meets the same mistake, and its own words are the better ones.
            return "NAME"
        content = "".join(path.read_text(encoding="utf-8") for path in paths)
        if content not in self.supplied:
            with chdir(self.folder):
                plan = load_plan({"extends": [str(path) for path in paths]})
                most = max(experiment.split.count for experiment in plan.experiments.values())
                write_cohorts(self.folder, plan.project, min(self.subjects, OF_AN_INSTITUTION * most))
            self.supplied[content] = next(iter(plan.experiments))
        return self.supplied[content]

    def run(self, words: Sequence[str], command: Command, code: int = 0) -> str:
        """Run a program in the folder with the command's own environment; what it prints.

        Raises:
            AssertionError: it ends with another exit code.
        """
        if words[0] in PROGRAMS:
            found, printed = self.commands.run(words, self.folder, command.environment)
        else:
            done = subprocess.run(
                words, cwd=self.folder, text=True, capture_output=True, timeout=HANGS_AFTER_S, check=False
            )
            found, printed = done.returncode, done.stdout + done.stderr
        assert found == code, f"{command.place}: `{command.text}` fails: {printed[-1500:]}"
        return printed


def new_workplace(folder: Path, commands: ForkedCommands, usual: str, subjects: int) -> Workplace:
    """A copy of the configs and of the files beside them, with the workflow of this checkout."""
    folder.mkdir()
    (folder / "workflow").symlink_to(REPOSITORY / "workflow")
    shutil.copytree(REPOSITORY / "config", folder / "config")
    shutil.copytree(REPOSITORY / ".test" / "config", folder / ".test" / "config")
    for name in BESIDE:
        shutil.copy2(REPOSITORY / name, folder / name)
    write_study(folder)
    return Workplace(folder, commands, usual, subjects)


def write_study(folder: Path) -> None:
    """Write the configs of coordinator and site as the documents show them."""
    for name, page in STUDY.items():
        text = (REPOSITORY / "docs" / "how-to" / page).read_text(encoding="utf-8")
        _, _, after = text.partition("```yaml\n")
        (folder / name).write_text(after.partition("```")[0], encoding="utf-8")
