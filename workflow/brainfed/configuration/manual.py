"""`config/README.md`, the page that lists every key of a config: one table for each settings dataclass.

A table has its keys, their types with bounds, defaults and meanings, all from the dataclass. A dataclass that several
methods have as a base is printed once, and their entries link to it.

    python -m brainfed.configuration.manual  # writes the page and the JSON schema; a test fails when they drift
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from inspect import get_annotations
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, cast, get_args, get_origin

import yaml

from brainfed.configuration._project import ExperimentSettings, ProjectSettings
from brainfed.configuration._validation import type_hints
from brainfed.configuration.prune import EXTENDS, schema
from brainfed.configuration.stages import registry
from brainfed.methods import METHODS, Method

# Rows: a key, its type, its default, its meaning.


@dataclass(frozen=True)
class Row:
    """One key, as Markdown: `default` is `required` without one."""

    key: str
    type: str
    default: str
    meaning: str

    def __str__(self) -> str:
        """The row of a table."""
        return f"| `{self.key}` | {self.type} | {self.default} | {self.meaning} |"


@cache
def rows(kind: type, path: str = "") -> tuple[Row, ...]:
    """A row for each field of a settings dataclass, whose keys stand at `path` of a config (`cohorts.NAME.`)."""
    hints = type_hints(kind)
    return tuple(
        Row(
            field.name,
            _type_of(path, field, hints[field.name]),
            default_of(field),
            str(field.metadata.get("description", "")).replace("|", "\\|"),
        )
        for field in fields(kind)
    )


def table(listed: Iterable[Row | str]) -> str:
    """Rows under their heading."""
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *map(str, listed)]) + "\n"


def link(title: str, words: str = "") -> str:
    """A link to the heading `title` of this page, under other words where they are named."""
    return f"[{words or title}](#{anchor(title)})"


def anchor(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def default_of(field: "Field[Any]") -> str:
    """A field's default, as YAML reads it; `required` without one."""
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is MISSING:
        return "required"
    if is_dataclass(value):
        return "its defaults"
    if isinstance(value, dict) and any(is_dataclass(item) for item in value.values()):
        return ", ".join(f"`{name}`" for name in value)
    if isinstance(value, str) and value:
        return f"`{value}`"
    return "none" if value is None else f"`{json.dumps(value, ensure_ascii=False).replace(chr(34) * 2, chr(39) * 2)}`"


def _type_of(path: str, field: "Field[Any]", hint: Any) -> str:
    """Type with bounds; a link where the keys have a section of their own."""
    if _dataclass_in(hint) is not None or (field in fields(ProjectSettings) and field.name == "variants"):
        return f"keys of {link(f'{path}{field.name}{_many(hint)}')}"
    if field in fields(ExperimentSettings) and field.name == "split":
        return "keys of [split](#split)"
    low, high = field.metadata.get("ge"), field.metadata.get("le")
    bounds = f" ≥\N{NO-BREAK SPACE}{low:g}" if low is not None else ""
    bounds = f", {low:g} to {high:g}" if low is not None and high is not None else bounds
    choices = _choices(hint)
    # A bound is a number's, and a number has no other choice beside it but none.
    return _either([choices[0] + bounds, *choices[1:]])


def _dataclass_in(hint: Any) -> type | None:
    """The settings that a field of type `hint` holds, one or several by name; None for a plain value."""
    return next((cast(type, inner) for inner in (hint, *get_args(hint)) if is_dataclass(inner)), None)


def _many(hint: Any) -> str:
    """The placeholder in a path for each of several names; empty for a single one."""
    return ".NAME" if get_origin(hint) in (dict, Mapping) else ""


def _either(choices: list[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _choices(hint: Any) -> list[str]:
    """What a value may be, each possibility for itself, none last."""
    if get_origin(hint) is Literal:
        return [f"`{choice}`" for choice in get_args(hint)]
    if get_origin(hint) in (Union, UnionType):
        parts = sorted(get_args(hint), key=lambda part: part is type(None))
        return [choice for part in parts for choice in _choices(part)]
    return [_plain(hint)]


WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "none"}
PLURALS = {"text": "texts", "whole number": "whole numbers", "number": "numbers"}


def _plain(hint: Any) -> str:
    """The words for a type that is no choice."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and Ellipsis in arguments:
        return f"list of {_either([PLURALS.get(choice, choice) for choice in _choices(arguments[0])])}"
    if origin is tuple:
        return f"{len(arguments)} {PLURALS[_plain(arguments[0])]}"
    return f"NAME: {_either(_choices(arguments[1]))}" if origin in (dict, Mapping) else WORDS[hint]


# The keys that most studies change.

TOP = "The project"
"""Heading of the section on keys at the top of a config."""


class FirstKey(NamedTuple):
    """A key that a study starts with: its path, an example as YAML on one line, and what it decides."""

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
    """The section on the keys that most studies change."""
    head = ["## The ten keys you will change", "", "| key | default | example | what it decides |", "|---|---|---|---|"]
    lines = [
        f"| {link(key.section, f'`{key.path}`')} | {default_of(setting_at(key.path))} | `{key.example}` "
        f"| {key.decides} |"
        for key in FIRST_KEYS
    ]
    return "\n".join([*head, *lines]) + "\n"


def setting_at(path: str) -> "Field[Any]":
    """The field at a path of the config, through NAME for each of several names."""
    kind: type = ProjectSettings
    *parents, last = [part for part in path.split(".") if part != "NAME"]
    for parent in parents:
        kind = cast(type, _dataclass_in(type_hints(kind)[parent]))
    return {field.name: field for field in fields(kind)}[last]


# A study: the settings of the project, then of each part, and of the parts within it.

LEAST_IN_COMMON = 3
"""Keys that a part has in common with the part around it, from which on they are not printed again."""


def study_sections() -> list[str]:
    """The project's own keys, then those of its parts in the order of a study."""
    extends = Row("extends", "text or list of texts", "none", EXTENDS)
    sections = [f"## {TOP}\n\n{_summary(ProjectSettings)}\n{table([extends, *rows(ProjectSettings)])}"]
    hints = type_hints(ProjectSettings)
    for field in fields(ProjectSettings):
        if field.name == "variants":
            stages = "\n".join(f"| `{kind.key}` | {kind.manual} |" for kind in registry.KINDS)
            sections.append(VARIANTS.replace("STAGES", stages))
        elif (inner := _dataclass_in(hints[field.name])) is not None:
            sections += _with_inner_parts(field.name + _many(hints[field.name]), inner)
    return sections


def _with_inner_parts(title: str, kind: type, around: tuple[str, type] | None = None) -> Iterator[str]:
    yield section(title, kind, around)
    hints = type_hints(kind)
    for field in fields(kind):
        if (inner := _dataclass_in(hints[field.name])) is not None:
            yield from _with_inner_parts(f"{title}.{field.name}{_many(hints[field.name])}", inner, (title, kind))


def section(title: str, kind: type, around: tuple[str, type] | None = None, level: str = "##") -> str:
    """The table of a part's keys under its heading, the path of its keys.

    `around` is title and dataclass of the part that holds it; keys that both have are not printed again.
    """
    lead = f"{EXPERIMENTS if kind is ExperimentSettings else ''}{_summary(kind)}"
    listed, outer = rows(kind, f"{title}."), rows(around[1], f"{around[0]}.") if around else ()
    if around and len(common := [row for row in listed if row in outer]) >= LEAST_IN_COMMON:
        besides = ", ".join(f"`{row.key}`" for row in outer if row not in common)
        lead += f"It has the keys of {link(around[0])}, except {besides}, and:\n"
        listed = tuple(row for row in listed if row not in common)
    return f"{level} {title}\n\n{lead}" + (f"\n{table(listed)}" if listed else "")


def _summary(kind: Any) -> str:
    """First line of a dataclass's docstring, and its end."""
    return f"{(kind.__doc__ or '').strip().splitlines()[0]}\n"


# Methods: the dataclasses that several have, an entry for each, and the settings of stages that they bring.

HEADING, SHARED = "method: {}", "shared: {}"
DECLARATION = re.compile(r"brainfed\.methods\.\w+\.declaration")


def method_sections(methods: Mapping[str, Method] = METHODS) -> list[str]:
    """The index of methods, a table for each shared dataclass, the methods, and what these bring."""
    shared = shared_classes(methods)
    index = [
        f"- {title}: "
        + ", ".join(link(HEADING.format(name), name) for name in METHODS if METHODS[name].family == family)
        for family, title in FAMILIES.items()
    ]
    of_project = {field.name for field in fields(ProjectSettings)}
    brought = {
        kind.section(method): kind.settings_class(method)
        for method in methods.values()
        for kind in registry.kinds_of(method)
        if kind.section(method) not in of_project
    }
    return [
        "\n".join([f"## Methods\n\n{METHODS_LEAD}", *index, ""]),
        *(_shared_section(kind, methods) for kind in shared),
        *(_entry(method, shared) for method in methods.values()),
        *(section(title, kind, level="###") for title, kind in brought.items()),
    ]


def shared_classes(methods: Mapping[str, Method]) -> list[type]:
    """The dataclasses that give keys to two methods or more, in the order in which methods first have them."""
    every = dict.fromkeys(kind for method in methods.values() for kind in classes_of(method))
    return [kind for kind in every if sum(kind in classes_of(method) for method in methods.values()) > 1]


def classes_of(method: Method) -> list[type]:
    """The dataclasses of a method's settings with keys of their own, bases first: a later one overrides a key."""
    return [kind for kind in reversed(method.settings.__mro__) if is_dataclass(kind) and rows_of_class(kind)]


def rows_of_class(kind: type) -> list[Row]:
    """The keys that a dataclass itself declares."""
    return [row for row in rows(kind) if row.key in get_annotations(kind)]


def own_rows(method: Method, shared: list[type]) -> list[Row]:
    """The keys of the dataclasses that a method alone has."""
    alone = [kind for kind in classes_of(method) if kind not in shared]
    return list({row.key: row for kind in alone for row in rows_of_class(kind)}.values())


def title_of(kind: type) -> str:
    """Heading of the table of a shared dataclass: the written one, else its name in words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__.removesuffix("Settings")).lower()
    return SHARED.format(TITLES.get(kind.__name__, words))


def _shared_section(kind: type, methods: Mapping[str, Method]) -> str:
    """The table of a shared dataclass; one that is all of a method's settings is described in the method's entry."""
    whole = any(method.settings is kind for method in methods.values())
    return f"### {title_of(kind)}\n\n" + ("" if whole else f"{_summary(kind)}\n") + table(rows_of_class(kind))


def _entry(method: Method, shared: list[type]) -> str:
    """One method: what it is, what it reads, the shared tables of its keys, its variants, and its own keys."""
    links = {kind.name: link(kind.section(method)) for kind in registry.kinds_of(method)}
    reads = [registry.kind_of(name).reads.format(**links) for name in method.needs]
    titles = [title_of(kind) for kind in classes_of(method) if kind in shared]
    tables = [link(title, title.removeprefix(SHARED.format(""))) for title in titles]
    own = own_rows(method, shared)
    sentences = [
        " ".join([f"**{method.title}.**", *summaries().get(method.name, ())]),
        f"Reads {' and '.join(reads) or 'no imaging'}.",
        *([f"Shared keys: {', '.join(tables)}."] if tables else []),
        *([] if tables or own else ["No keys."]),
        *_variants(method),
    ]
    return f"### {HEADING.format(method.name)}\n\n{' '.join(sentences)}\n" + (f"\n{table(own)}" if own else "")


@cache
def summaries() -> dict[str, list[str]]:
    """Method -> the lines of the first paragraph below its declaration, a string that no job reads."""
    paragraphs: dict[str, list[str]] = {}
    for module in {module for name, module in sys.modules.items() if DECLARATION.fullmatch(name)}:
        for declared, below in pairwise(ast.parse(inspect.getsource(module)).body):
            match declared, below:
                case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                    if isinstance(method := vars(module)[name], Method):
                        paragraphs[method.name] = inspect.cleandoc(text).partition("\n\n")[0].splitlines()
    return paragraphs


def _variants(method: Method) -> Iterator[str]:
    """The shipped variants, with the settings that differ; those on request apart; nothing for the defaults alone."""
    if method.variants == {method.name: {}} and not method.on_request:
        return
    for words, asked in (("Variants", False), ("Variants on request", True)):
        if named := [name for name in method.variants if (name in method.on_request) is asked]:
            yield f"{words}: " + ", ".join(f"`{name}`{_differing(method.variants[name])}" for name in named) + "."


def _differing(settings: Mapping[str, Any]) -> str:
    """Settings on one line of YAML in brackets; nothing without any."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    flow = yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=sys.maxsize).strip()[1:-1]
    return f" (`{flow}`)" if flow else ""


# The page.


def manual() -> str:
    """The page: the keys that most studies change, every key of a study, every key of the methods."""
    sections = [first_keys(), *study_sections(), *method_sections()]
    titles = [title for part in sections[1:] for title in re.findall("^## (.*)$", part, re.M)]
    contents = ", ".join(link(title) for title in titles if "." not in title.removesuffix(".NAME"))
    return "\n".join([PREAMBLE, f"All parts: {contents}.\n", *sections])


PREAMBLE = """\
<!-- `python -m brainfed.configuration.manual` writes this page from the settings dataclasses: edit these. -->

# Every key of a config

A config is a YAML file: `snakemake --cores all --configfile config/abide.yaml` runs this one, and without the option
Snakemake reads `config/config.yaml`, a simulated cohort. An unknown key, a value of the wrong type or a name that does
not exist stops the run before any job starts, and the message names the nearest valid one. NAME stands for a name of
your choice, of letters, digits, `-`, `_` and `.`. A config of your own may be as short as

```yaml
project: my-study
cohorts:
  my-cohort:
    source: nifti
    phenotype: resources/participants.tsv
    series: resources/{subject}_bold.nii.gz
    parcellation: resources/atlas.nii.gz
    labels: resources/atlas.tsv
```

or a few lines laid over another one:

```yaml
extends: config/abide.yaml
project: abide-k5
graph: {k: 5}
```
"""

VARIANTS = """\
## variants.NAME

One row of a table. `method` names one of the [methods](#methods); the method's settings stand beside it.

| key | type | default | meaning |
|---|---|---|---|
| `method` | name of a [method](#methods) | required | What is trained. |
STAGES
| ... | keys of the method | the method's | Settings of the method. |

A list where one value belongs is a sweep: `width: {method: fedgcn, graph: {k: [5, 10]}}` becomes the variants
`width-k5` and `width-k10`; an experiment may name `width` for both. Every method comes with variants of its own,
which need no entry here and may be redefined by one of the same name. The graph's `scope` is the one that the method
needs (CentralGCN: `global`; the others: `global_cut`, or `local` where `graph` says so) unless the variant sets it.
"""

EXPERIMENTS = """\
Each is a target: `snakemake --cores all NAME` computes it and writes `results/reports/{project}-NAME.html`,
`NAME-quick` the same with one repeat, `paper` and `paper-quick` all that have `default: false`. `config/paper.yaml`
holds the tables and figures of FedNI.

"""

METHODS_LEAD = """\
An entry of a method lists the keys that it alone has. Keys that several methods share are listed once, in tables whose
headings begin with `shared`, and the entry links to them. A key may be in several of these places: the method's own
table has precedence, then the last of the links. Variants on request are trained only in experiments that name them. A
method without variants in its entry has one, of its own name and with the defaults.
"""

FAMILIES = {
    "baseline": "Baselines",
    "linear": "Linear models, alone and pooled",
    "graph": "Networks, alone and pooled",
    "federated": "Federated",
}
"""Family of a method -> its name in the index."""

TITLES = {
    "FederationSettings": "rounds",
    "EpochSettings": "epochs",
    "InputSettings": "scaling",
    "FedGCNSettings": "skip",
    "GINSettings": "GIN",
    "SoloGINSettings": "GIN epochs",
    "FederatedGINSettings": "GIN rounds",
    "SeriesNetworkSettings": "windows",
    "STGCNSettings": "ST-GCN",
    "RegionGNNSettings": "region GNN",
    "SoloSubjectSettings": "window epochs",
    "FederatedSubjectSettings": "window rounds",
    "PrivateSchedule": "private rounds",
    "PrivateRowSettings": "private rows",
    "CropSettings": "crops",
    "StepSettings": "crop rounds",
    "AssignmentSettings": "network kinds",
    "OneRecurrentSettings": "single network",
    "DistilledSettings": "distillation",
}
"""Settings dataclass -> title of its table, where the words of its name are none."""


def main() -> None:
    """Write `config/README.md` and `workflow/schemas/config.schema.json`."""
    workflow = Path(__file__).resolve().parents[2]
    (workflow / "schemas").mkdir(exist_ok=True)
    (workflow / "schemas" / "config.schema.json").write_text(schema(), encoding="utf-8")
    (workflow.parent / "config" / "README.md").write_text(manual(), encoding="utf-8")


if __name__ == "__main__":
    main()
