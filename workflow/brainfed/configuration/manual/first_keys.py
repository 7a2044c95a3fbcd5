"""The ten keys that most studies change, at the top of the manual."""

from dataclasses import Field, dataclass, fields
from typing import Any

from brainfed.configuration.manual.rows import dataclass_in, default, link
from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.validation import type_hints

TOP = "The project"
"""Heading of the section on keys at the top of a config."""


@dataclass(frozen=True)
class FirstKey:
    """One of the keys that a study starts with.

    Attributes:
        path: where it stands: `split.count`; NAME stands for a name of the user's choice.
        example: a value, as YAML on one line.
        decides: what it decides, a phrase.
    """

    path: str
    example: str
    decides: str

    @property
    def section(self) -> str:
        """Heading of the section that lists it."""
        return self.path.rpartition(".")[0] or TOP


FIRST_KEYS = (
    FirstKey("project", "my-study", "Name of the study and of its report."),
    FirstKey("cohorts.NAME.source", "timeseries", "Region series, images, fMRIPrep output or FreeSurfer tables."),
    FirstKey("cohorts.NAME.phenotype", "data/participants.csv", "Table of the subjects."),
    FirstKey("cohorts.NAME.series", "data/series/{subject}.csv", "Path of each subject's file."),
    FirstKey("split.institutions", "sites", "An institution is a random part of the cohort, a site, or several sites."),
    FirstKey("split.count", "3", "Number of institutions that are drawn at random."),
    FirstKey("split.repeats", "10", "Number of times that institutions and folds are drawn."),
    FirstKey("features.connectivity", "tangent", "Measure of connectivity between regions."),
    FirstKey(
        "variants", "{wide: {method: fedgcn, hidden: [128, 64]}}", "Methods under other settings, each by a name."
    ),
    FirstKey(
        "experiments.NAME.variants", "[ridge-central, fedgcn, wide]", "Rows of a table of the report, in their order."
    ),
)


def first_keys() -> str:
    """The section on them."""
    head = ["## The ten keys you will change", "", "| key | default | example | what it decides |", "|---|---|---|---|"]
    lines = [
        f"| {link(key.section, f'`{key.path}`')} | {default(setting_at(key.path))} | `{key.example}` | {key.decides} |"
        for key in FIRST_KEYS
    ]
    return "\n".join([*head, *lines]) + "\n"


def setting_at(path: str) -> "Field[Any]":
    """The field at a path of the config, through NAME for each of several names.

    Raises:
        KeyError: there is none.
    """
    kind: type = ProjectSettings
    *parents, last = [part for part in path.split(".") if part != "NAME"]
    for parent in parents:
        inner = dataclass_in(type_hints(kind)[parent])
        if inner is None:
            raise KeyError(f"{path}: {parent} holds no keys of its own")
        kind = inner
    return {field.name: field for field in fields(kind)}[last]
