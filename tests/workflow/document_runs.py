"""How each kind of command of the documents is run in a test, and why so.

A command is run as it is where that takes seconds. A training is planned (`-n`). What downloads or installs is compared
with the files that it names.
"""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmark_options import OPTION, unknown_options
from brainfed.configuration.loading import load_plan
from document_commands import Command
from fake_cohorts import write_cohorts
from forked_cli import PROGRAMS, ForkedCommands
from workflow.project import REPOSITORY

PLANNED, CHECKED = 24, 240
"""Most subjects of a cohort whose jobs are planned, and of one that is checked."""
OF_AN_INSTITUTION = 24
"""Subjects with which every fold of an institution has both classes."""
MINE = "config/mystudy.yaml"
"""The config that the documents call the reader's own."""
BESIDE = ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock")


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
            done = subprocess.run(words, cwd=self.folder, text=True, capture_output=True, timeout=300, check=False)
            found, printed = done.returncode, done.stdout + done.stderr
        assert found == code, f"{_place(command)}: `{command.text}` fails: {printed[-1500:]}"
        return printed


def new_workplace(folder: Path, commands: ForkedCommands, usual: str, subjects: int) -> Workplace:
    """A copy of the configs and of the files beside them, with the workflow of this checkout."""
    folder.mkdir()
    (folder / "workflow").symlink_to(REPOSITORY / "workflow")
    shutil.copytree(REPOSITORY / "config", folder / "config")
    for name in BESIDE:
        shutil.copy2(REPOSITORY / name, folder / name)
    return Workplace(folder, commands, usual, subjects)


def _place(command: Command) -> str:
    return f"{command.document}:{command.line}"


def _configs(words: Sequence[str]) -> list[str]:
    """The files after `--configfile`."""
    if "--configfile" not in words:
        return []
    after = words[words.index("--configfile") + 1 :]
    return [word for at, word in enumerate(after) if not any(one.startswith("-") for one in after[: at + 1])]


def _snakemake(place: Workplace, command: Command, *further: str, code: int = 0) -> str:
    for name in command.environment:
        sources = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "workflow").rglob("*.py"))
        read = any(f'"{name}"' in source for source in sources)
        assert read, f"{_place(command)}: the workflow reads no environment variable {name}"
    words = command.words[1:]
    experiment = place.supply(command, _configs(words))
    words = [experiment if word == "NAME" else word for word in words]
    return place.run(["snakemake", *words, *further], command, code)


def plan_jobs(place: Workplace, command: Command) -> None:
    """Plan all jobs, as training takes minutes to days.

    The jobs of a config and a profile are planned once for a command without targets, and once for one with targets.
    Snakemake reads options and config of every further one, and its targets are among those that Snakemake lists.
    """
    targets = set(_targets(command.words)) - {"NAME"}
    profile = [word for word in command.words if word.startswith("workflow/profiles/")]
    mine = (command.config or place.usual) if MINE in command.words else ""
    plan = (" ".join([*profile, *_configs(command.words), mine]), bool(targets))
    downloads = any(target.startswith("fetch_") for target in targets)
    if downloads or plan not in place.planned:
        _snakemake(place, command, "-n")
        place.planned |= set() if downloads else {plan}
        return
    listed = set(_snakemake(place, command, "--list-target-rules").split())
    unknown = targets - listed
    assert not unknown, f"{_place(command)}: `{command.text}`: this config has no target {', '.join(sorted(unknown))}"


def _targets(words: Sequence[str]) -> list[str]:
    """The words before all options, and those after the one value of `--cores`."""
    first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    found = list(words[1:first])
    if "--cores" in words:
        after = words[words.index("--cores") + 2 :]
        found += after[: next((at for at, word in enumerate(after) if word.startswith("-")), len(after))]
    return found


def unlock(place: Workplace, command: Command) -> None:
    """Run it: only a lock is removed."""
    _snakemake(place, command)


def report_on_nothing(place: Workplace, command: Command) -> None:
    """Ask for Snakemake's report of absent results; it names them once it has read options, config and plan."""
    printed = _snakemake(place, command, code=1)
    assert "marked for report but does not exist" in printed, f"{_place(command)}: `{command.text}`: {printed[-1500:]}"


def check(place: Workplace, command: Command) -> None:
    """Run the check on made-up subjects, enough for every split; it finds nothing that stops the run."""
    if place.larger is None:
        place.larger = new_workplace(place.folder.with_name("checked"), place.commands, place.usual, CHECKED)
    words = ["config/config.yaml" if word == "CONFIG" else word for word in command.words]
    place.larger.supply(command, words[2:3])
    place.larger.run(words, command)


def name_the_check(_: Workplace, command: Command) -> None:
    """Nothing: a sentence names the tool without a config."""
    assert not command.in_block, f"{_place(command)}: `{command.text}` names no config"


def plan_make(place: Workplace, command: Command) -> None:
    """Let make print what it would do, as CI itself installs, runs and tests."""
    place.run([*command.words, "--dry-run"], command)


def compare_options(place: Workplace, command: Command) -> None:
    """Compare the options with those of the script's parser, as a measurement takes minutes."""
    script = REPOSITORY / command.words[1]
    assert script.is_file(), f"{_place(command)}: there is no {command.words[1]}"
    compile(script.read_text(encoding="utf-8"), str(script), "exec")
    unknown = unknown_options(script, set(OPTION.findall(command.text)))
    assert not unknown, f"{_place(command)}: {command.words[1]} has no {', '.join(sorted(unknown))}"


def find_module(place: Workplace, command: Command) -> None:
    """Find the module, which writes into the checkout."""
    path = Path(*command.words[2].split("."))
    runs = [REPOSITORY / "workflow" / path / "__main__.py", REPOSITORY / "workflow" / path.with_suffix(".py")]
    assert any(file.is_file() for file in runs), f"{_place(command)}: no module {command.words[2]} can be run"


def find_pins(place: Workplace, command: Command) -> None:
    """Find the packages among the constraints, as nothing is installed here."""
    _, _, _, constraints, *packages = command.words
    pins = (place.folder / constraints).read_text(encoding="utf-8").lower()
    absent = [package for package in packages if not re.search(rf"^{re.escape(package)}==", pins, re.MULTILINE)]
    assert packages and not absent, f"{_place(command)}: {constraints} pins no {', '.join(absent)}"


def find_package(place: Workplace, command: Command) -> None:
    """Find the package that would be installed from here."""
    assert "project" in tomllib.loads((place.folder / "pyproject.toml").read_text(encoding="utf-8"))


def find_conda_file(place: Workplace, command: Command) -> None:
    """Read the file of the environment, as nothing is installed here."""
    path = place.folder / command.words[command.words.index("--file") + 1]
    assert path.is_file(), f"{_place(command)}: there is no {path.relative_to(place.folder)}"
    assert "dependencies" in yaml.safe_load(path.read_text(encoding="utf-8"))


def compare_with_package(place: Workplace, command: Command) -> None:
    """Compare the name with the package's, which the repository and the environment of conda also have."""
    name = tomllib.loads((place.folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    assert command.words[-1] == name, f"{_place(command)}: expected {name}, found {command.words[-1]}"


def find_environment(place: Workplace, command: Command) -> None:
    """Find the folder among the lines of the Makefile, as CI itself makes and activates it."""
    folder = command.words[1].removesuffix("/bin/activate")
    assert f"VENV := {folder}\n" in (place.folder / "Makefile").read_text(encoding="utf-8"), _place(command)


def leave(_: Workplace, command: Command) -> None:
    """Nothing: the address is the reader's, and tests have no network."""
    assert command.words[2:], f"{_place(command)}: `{command.text}` names no repository"


Way = Callable[[Workplace, Command], None]

WAYS: dict[str, Way] = {
    r"snakemake .*--unlock.*": unlock,
    r"snakemake .*--report .*": report_on_nothing,
    r"snakemake .*": plan_jobs,
    r"brainfed check \S+( --json)?": check,
    r"brainfed check": name_the_check,
    r"make .*": plan_make,
    r"python benchmarks/\S+\.py.*": compare_options,
    r"python -m brainfed\.\S+": find_module,
    r"pip install --constraint \S+ .*": find_pins,
    r"pip install --no-deps --editable \.": find_package,
    r"conda env create .*--file \S+.*": find_conda_file,
    r"conda activate \S+": compare_with_package,
    r"cd \S+": compare_with_package,
    r"git clone .*": leave,
    r"\. \S+/bin/activate": find_environment,
}
"""Pattern of a command -> how it is run; the first that fits counts."""


def run_command(place: Workplace, command: Command) -> None:
    """Run a command in its way.

    Raises:
        AssertionError: it fails, or no way is known; the sentence names document and line.
    """
    words = " ".join(command.words)
    way = next((way for pattern, way in WAYS.items() if re.fullmatch(pattern, words)), None)
    assert way is not None, (
        f"{_place(command)}: no pattern of WAYS in tests/workflow/document_runs.py fits `{command.text}`; add one that "
        "runs it or proves it valid, or correct the command"
    )
    way(place, command)
