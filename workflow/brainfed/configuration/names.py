"""Names in a config: their form, and whether they exist."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar, get_args

from brainfed.configuration.project import Figure, ProjectSettings
from brainfed.configuration.validation import nearest
from brainfed.runtime.errors import UserError

Value = TypeVar("Value")

ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
MAX_LENGTH = 150
"""Characters of a name: a file name may have 255, and endings follow."""
RESERVED_COHORTS = ("reports",)
PAPER = "paper"
"""The target of all experiments that a plain run leaves out."""

RESERVED_EXPERIMENTS = ("all", "site", "tables", "models", PAPER)
"""Targets of the workflow; every experiment is a target too."""

RULE_FILES = Path(__file__).parents[2] / "rules"
RULE = re.compile(r"^ *(?:use rule \w+ as|rule) (\w+)", re.MULTILINE)

TWIN = "-quick"
"""Ends the name of the same experiment with one repeat."""

TABLE_ENDINGS = (
    "-runs", "-tests", "-gain", "-confusion", "-clients", "-audit", "-patterns", "-planted", "-views",
)  # fmt: skip
"""An experiment writes NAME.tsv and a table for each of these; rules name their tables by `paths.table_pattern`."""
FILES = (".tsv", ".json", ".svg")
"""Endings of files that lie beside the folders of experiments."""


@cache
def rule_names() -> frozenset[str]:
    """The names that the workflow's files give to rules; a target is a rule, too, and two may not have one name.

    Raises:
        UserError: no file lies beside the package, as after an installation that is not editable.
    """
    files = sorted(RULE_FILES.glob("*.smk"))
    if not files:
        raise UserError(
            f"{RULE_FILES}: expected the workflow's rules beside its package, found none; install the package from the "
            "clone, by `make install` or `pip install --editable`."
        )
    return frozenset(RULE.findall("\n".join(file.read_text(encoding="utf-8") for file in files)))


def made_rules(project: ProjectSettings) -> Iterator[str]:
    """The names of the rules that the workflow makes in loops."""
    yield from (f"draw_{figure}" for figure in get_args(Figure) if figure != "none")
    for cohort, settings in project.cohorts.items():
        if settings.source == "simulate":
            yield from (f"simulate_scans_{cohort}_shard-{number:02d}" for number in range(settings.shards))


def check_names(project: ProjectSettings) -> None:
    """Check all names of a config, which become file names.

    Raises:
        UserError: a name cannot be a file name, collides with other files or targets, or none is given.
    """
    check_name("project", project.project)
    for cohort, settings in project.cohorts.items():
        if settings.kind == "connectivity":
            check_name(f"cohorts.{cohort}.atlas", settings.atlas)
    named: dict[str, Mapping[str, object]] = {
        "cohorts": project.cohorts,
        "variants": project.variants,
        "experiments": project.experiments,
    }
    for key, table in named.items():
        if not table and key != "variants":
            raise UserError(f"config: {key}: expected at least one, found none; add it.")
        for name in table:
            check_name(key, name)
    for name in RESERVED_COHORTS:
        if name in project.cohorts:
            raise UserError(f"config: cohorts.{name}: results/{name} holds the reports; rename the cohort.")
    rules = {*rule_names(), *made_rules(project)}
    for name in project.experiments:
        if name in RESERVED_EXPERIMENTS or name in rules:
            raise UserError(f"config: experiments.{name}: `snakemake {name}` is another target; rename it.")
        if name.endswith(TWIN):
            raise UserError(
                f"config: experiments.{name}: a name may not end in {TWIN}, which names the same experiment with one "
                "repeat; rename it."
            )
        for ending in (*TABLE_ENDINGS, *FILES):
            if name.endswith(ending):
                raise UserError(
                    f"config: experiments.{name}: a name may not end in {ending}, which ends the name of another file "
                    "of an experiment; rename it."
                )


def known(name: str, table: Mapping[str, Value], where: str, kind: str) -> Value:
    """The entry of that name.

    Raises:
        UserError: there is none; with the nearest name and all the others.
    """
    if name not in table:
        raise UserError(
            f"{where}: expected the name of a {kind}, found {name!r}{nearest(name, list(table))} Write one of: "
            f"{', '.join(sorted(table))}."
        )
    return table[name]


def check_name(key: str, name: str) -> None:
    """Refuse a name that cannot be a part of a path and of a rule's wildcards.

    Raises:
        UserError: it has other characters, or too many.
    """
    if not ALLOWED.fullmatch(name) or len(name) > MAX_LENGTH:
        raise UserError(
            f"config: {key}: expected a name of letters, digits, `-`, `_` and `.`, at most {MAX_LENGTH}, found "
            f"{name!r}; rename it, with a letter or a digit first."
        )
