"""How each kind of command of the documents is run in a test, and why so.

A command is run as it is where that takes seconds. A training is planned (`-n`). What downloads or installs is compared
with the files that it names; what needs other machines, with the parser.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import yaml
from snakemake.cli import get_argument_parser

from brainfed.configuration import load_plan
from support.documents.benchmark_options import OPTION, unknown_options
from support.documents.document_commands import Command, commands_of
from workflow.document_workplace import CHECKED, MINE, Workplace, new_workplace
from workflow.project import REPOSITORY


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
        assert read, f"{command.place}: the workflow reads no environment variable {name}"
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
    assert not unknown, f"{command.place}: `{command.text}`: this config has no target {', '.join(sorted(unknown))}"


def plan_kept_models(place: Workplace, command: Command) -> None:
    """Plan the jobs with the config of the guide to kept models, as the demo keeps none."""
    guide = REPOSITORY / "docs" / "how-to" / "use-a-model.md"
    (config,) = {one.config for one in commands_of(guide, REPOSITORY)} - {""}
    _snakemake(place, replace(command, text=f"{command.text} --configfile {MINE}", config=config), "-n")


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
    assert "marked for report but does not exist" in printed, f"{command.place}: `{command.text}`: {printed[-1500:]}"


def check(place: Workplace, command: Command) -> None:
    """Run the check on made-up subjects, enough for every split; it finds nothing that stops the run."""
    if place.larger is None:
        place.larger = new_workplace(place.folder.with_name("checked"), place.commands, place.usual, CHECKED)
    words = ["config/config.yaml" if word == "CONFIG" else word for word in command.words]
    place.larger.supply(command, words[2:3])
    place.larger.run(words, command)


def name_the_tool(_: Workplace, command: Command) -> None:
    """Nothing: a sentence names the tool without a config."""
    assert not command.in_block, f"{command.place}: `{command.text}` names no config"


def say_the_version(place: Workplace, command: Command) -> None:
    """Run it."""
    assert place.run(command.words, command).startswith("brainfed ")


def compare_with_parser(place: Workplace, command: Command) -> None:
    """Compare the options with the program's, and read the config: a study needs the machines of several hospitals."""
    _, name, config, *_ = command.words
    known = set(OPTION.findall(place.run(["brainfed", name, "-h"], command)))
    unknown = set(OPTION.findall(command.text)) - known
    assert not unknown, f"{command.place}: brainfed {name} has no {', '.join(sorted(unknown))}"
    path = place.folder / config
    assert path.is_file(), f"{command.place}: no document shows {config}"
    with chdir(place.folder):
        study = load_plan({"extends": [config]}).project.study
    assert study.sites and bool(study.site) == (name == "join"), f"{command.place}: {config} is not for {name}"


def predict_without_a_model(place: Workplace, command: Command) -> None:
    """Run it: it reads all options, and names the folder, as the model takes a training."""
    printed = place.run(command.words, command, 1)
    assert "expected the folder of a kept model" in printed, f"{command.place}: `{command.text}`: {printed[-1500:]}"


def name_predictions(_: Workplace, command: Command) -> None:
    """Nothing: a sentence names the tool and its kinds of arguments."""
    assert not command.in_block, f"{command.place}: `{command.text}` names no folder"


def plan_make(place: Workplace, command: Command) -> None:
    """Let make print what it would do, as CI itself installs, runs and tests."""
    place.run([*command.words, "--dry-run"], command)


def compare_options(place: Workplace, command: Command) -> None:
    """Compare the options with those of the script's parser, as a measurement takes minutes."""
    script = REPOSITORY / command.words[1]
    assert script.is_file(), f"{command.place}: there is no {command.words[1]}"
    compile(script.read_text(encoding="utf-8"), str(script), "exec")
    unknown = unknown_options(script, set(OPTION.findall(command.text)))
    assert not unknown, f"{command.place}: {command.words[1]} has no {', '.join(sorted(unknown))}"


def find_module(place: Workplace, command: Command) -> None:
    """Find the module, which writes into the checkout."""
    path = Path(*command.words[2].split("."))
    runs = [REPOSITORY / "workflow" / path / "__main__.py", REPOSITORY / "workflow" / path.with_suffix(".py")]
    assert any(file.is_file() for file in runs), f"{command.place}: no module {command.words[2]} can be run"


def find_pins(place: Workplace, command: Command) -> None:
    """Find the packages among the constraints, as nothing is installed here."""
    _, _, _, constraints, *packages = command.words
    pins = (place.folder / constraints).read_text(encoding="utf-8").lower()
    absent = [package for package in packages if not re.search(rf"^{re.escape(package)}==", pins, re.MULTILINE)]
    assert packages and not absent, f"{command.place}: {constraints} pins no {', '.join(absent)}"


def find_package(place: Workplace, command: Command) -> None:
    """Find the package that would be installed from here."""
    assert "project" in tomllib.loads((place.folder / "pyproject.toml").read_text(encoding="utf-8"))


def find_conda_file(place: Workplace, command: Command) -> None:
    """Read the file of the environment, as nothing is installed here."""
    path = place.folder / command.words[command.words.index("--file") + 1]
    assert path.is_file(), f"{command.place}: there is no {path.relative_to(place.folder)}"
    assert "dependencies" in yaml.safe_load(path.read_text(encoding="utf-8"))


def compare_with_package(place: Workplace, command: Command) -> None:
    """Compare the name with the package's, which the repository and the environment of conda also have."""
    name = tomllib.loads((place.folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    assert command.words[-1] == name, f"{command.place}: expected {name}, found {command.words[-1]}"


def find_environment(place: Workplace, command: Command) -> None:
    """Find the folder among the lines of the Makefile, as CI itself makes and activates it."""
    folder = command.words[1].removesuffix("/bin/activate")
    assert f"VENV := {folder}\n" in (place.folder / "Makefile").read_text(encoding="utf-8"), command.place


def compare_with_snakemake(_: Workplace, command: Command) -> None:
    """Read the words with Snakemake's parser, as there is no conda here."""
    get_argument_parser().parse_args(command.words[1:])


def compare_with_recipe(_: Workplace, command: Command) -> None:
    """Find the recipe of a container, and read the words for Snakemake, as no container is made here."""
    program, what, *words = command.words
    if what == "build":
        assert (REPOSITORY / ("Dockerfile" if program == "docker" else words[-1])).is_file(), command.place
        return
    image = next(at for at, word in enumerate(words) if word in ("brainfed", "brainfed.sif"))
    get_argument_parser().parse_args(words[image + 1 :])


def leave(_: Workplace, command: Command) -> None:
    """Nothing: the address is the reader's, and tests have no network."""
    assert command.words[2:], f"{command.place}: `{command.text}` names no repository"


Way = Callable[[Workplace, Command], None]

WAYS: dict[str, Way] = {
    r"snakemake .*--unlock.*": unlock,
    r"snakemake .*--report .*": report_on_nothing,
    r"snakemake models": plan_kept_models,
    r"snakemake --sdm (apptainer|conda)": compare_with_snakemake,
    r"snakemake .*": plan_jobs,
    r"brainfed check \S+( --json| --scans)?": check,
    r"brainfed (join|coordinate) \S+\.yaml.*": compare_with_parser,
    r"brainfed (check|join|coordinate)": name_the_tool,
    r"brainfed --version": say_the_version,
    r"brainfed predict \S+/\S+ .*": predict_without_a_model,
    r"brainfed predict.*": name_predictions,
    r"make .*": plan_make,
    r"python benchmarks/\S+\.py.*": compare_options,
    r"python -m brainfed\.\S+": find_module,
    r"pip install --constraint \S+ .*": find_pins,
    r"pip install (--no-deps )?--editable (\.|PATH_OF_THE_CLONE)": find_package,
    r"conda env create .*--file \S+.*": find_conda_file,
    r"conda activate \S+": compare_with_package,
    r"cd \S+": compare_with_package,
    r"(docker|apptainer) (build|run) .*": compare_with_recipe,
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
        f"{command.place}: no pattern of WAYS in tests/workflow/document_runs.py fits `{command.text}`; add one that "
        "runs it or proves it valid, or correct the command"
    )
    way(place, command)
