"""From a config to a plan: YAML that reads one way, extended configs, targets of the command line."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from brainfed.cohort.settings import expanded
from brainfed.configuration._project import PAPER, QUICK, ProjectSettings, defaults_of
from brainfed.configuration._validation import validate
from brainfed.configuration.planning import Experiment, Plan, make_plan, swept_values
from brainfed.configuration.stages.registry import kinds_of
from brainfed.methods import Method
from brainfed.runtime import UserError, flat_settings

# YAML without duplicate keys, of which PyYAML keeps the last, and without numbers that YAML 1.1 and 1.2 read apart.

PLAIN_NUMBER = re.compile(
    r"0|-?[1-9]\d*|[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII
)
"""Numbers that mean what they spell, in every version of YAML."""
SCIENTIFIC = re.compile(r"-?\d+[eE][-+]?\d+", re.ASCII)
"""Further numbers on a command line, which are text in a file."""
REWRITTEN = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp"))


class _DuplicateKeyError(yaml.YAMLError):
    """A key that stands twice, with both lines."""

    def __init__(self, key: str, first: int, second: int) -> None:
        super().__init__(f"the key {key!r} in lines {first} and {second}")


class _Loader(yaml.SafeLoader):
    """The safe loader; keys are compared as written, as values and as text.

    1 and "1" are one code, and so are 1 and 01 (YAML's octal), 1 and 1.0, `yes` and `true`.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, Any], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                line = key.start_mark.line + 1
                value = self.construct_object(key)
                for form in (("written", key.value), ("value", value), ("text", str(value))):
                    if form in lines:
                        raise _DuplicateKeyError(key.value, lines[form], line)
                    lines[form] = line
        return node


def _rewritten(node: yaml.Node, key: str) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Key and node of every scalar that is read as something else than it spells."""
    if isinstance(node, yaml.ScalarNode):
        if node.style is None and node.tag in REWRITTEN and not PLAIN_NUMBER.fullmatch(node.value):
            yield key, node
    elif isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from _rewritten(part, key)
    elif isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield from _rewritten(name, key)
            yield from _rewritten(value, f"{key}.{name.value}".lstrip("."))


def refuse_rewritten(arguments: Iterable[str]) -> None:
    """Refuse (UserError) values of Snakemake's `--config` (KEY=VALUE) that it reads as other numbers: 010, 1_0, inf."""
    for argument in arguments:
        text = argument.partition("=")[2].strip().strip("\"'").strip()  # Snakemake takes quotes off, too.
        try:
            meaning = float(text)
        except ValueError:
            continue
        if not PLAIN_NUMBER.fullmatch(text) and not SCIENTIFIC.fullmatch(text):
            raise UserError(
                f"--config {argument}: expected a plain number or text, found {text}, which Snakemake reads as "
                f"{meaning:g}; write the number itself, or, if it is text, put it in quotes in a config file."
            )


def read_yaml(path: Path) -> Any:
    """The content of a YAML or JSON file.

    Raises:
        UserError: the file is no YAML, is not UTF-8, has a key twice, or a number such as 010, 1_0 or 12:30.
    """
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if node is None:
            return None
        for key, scalar in _rewritten(node, ""):
            meaning = loader.construct_object(scalar)
            raise UserError(
                f"{path}, line {scalar.start_mark.line + 1}: {key or 'config'}: expected a plain number or text, found "
                f"{scalar.value}, which YAML 1.1 reads as {meaning}; put it in quotes if it is text, else write the "
                "number itself."
            )
        return loader.construct_document(node)
    except _DuplicateKeyError as error:
        raise UserError(f"{path}: expected every key once, found {error}; remove or rename one of them.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected YAML in UTF-8 ({error}); save it as UTF-8.") from None
    except yaml.MarkedYAMLError as error:
        raise UserError(f"{path}{_fault(error)}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: expected YAML ({' '.join(str(error).split())}); fix the file.") from None


def _fault(error: yaml.MarkedYAMLError) -> str:
    """Line, cause and remedy of what is no YAML, without the line's content."""
    problem, mark, begin = error.problem or "", error.problem_mark or error.context_mark, error.context_mark
    where = "" if mark is None else f", line {mark.line + 1}"
    if "'\\t'" in problem:
        return f"{where}: expected blanks at the begin of a line or value, found a tab; write blanks."
    if mark and begin and "but found '<block" in problem:
        return (
            f"{where}: expected a line that begins where others of its block do, as line {begin.line + 1} in column "
            f"{begin.column + 1}, found it in column {mark.column + 1}; indent it as the lines that it belongs to."
        )
    if "mapping values are not allowed" in problem:
        return (
            f"{where}: expected no colon here, found one; indent this line as the one above, put a blank after the "
            "colon above, or put quotes around a text with a colon."
        )
    begun = f" from line {begin.line + 1}" if begin and mark and begin.line < mark.line else ""
    within = f"{error.context}{begun}: " if error.context else ""
    return f"{where}: expected YAML, found an error ({within}{problem}); fix the line or the one above."


def shipped_settings(method: Method) -> dict[str, Any]:
    """Every default of a method, its own (`rounds`) and its stages' (`graph.k`), from which ablations differ."""
    stages = {kind.key: asdict(kind.settings_class(method)(**kind.of_method(method))) for kind in kinds_of(method)}
    return flat_settings(defaults_of(method.settings), stages)


def targets_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Target -> its experiments: one, a sweep of splits, or all that a plain run leaves out."""
    groups = dict.fromkeys(experiment.group for experiment in plan.experiments.values())
    targets = {group: tuple(experiment.name for experiment in plan.group(group)) for group in groups}
    named = [group for group, experiment in plan.project.experiments.items() if not experiment.default]
    for ending in ("", QUICK) if named else ():
        targets[PAPER + ending] = tuple(name for group in named for name in targets[group + ending])
    return targets


def reports_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Name of a report -> its experiments: the project's own, and one a target."""
    default = tuple(name for name, experiment in plan.experiments.items() if experiment.default)
    project = plan.project.project
    return {project: default} | {f"{project}-{target}": names for target, names in targets_of(plan).items()}


def config_of(plan: Plan, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """The resolved config with these experiments alone, and with the variants that they name."""
    config = asdict(plan.project)
    shown = {experiment.group.removesuffix(QUICK) for experiment in experiments}
    named = {f"{name}-" for experiment in experiments for name in experiment.settings.variants}
    config["experiments"] = {name: value for name, value in config["experiments"].items() if name in shown}
    config["variants"] = {
        name: value
        for name, value in config["variants"].items()
        if any(member.startswith(f"{name}-") for member in named)
    }
    return config


def swept_split(plan: Plan, experiment: Experiment) -> dict[str, Any]:
    """The swept keys of its group's split, with this experiment's values; empty without a sweep."""
    split = plan.project.experiments[experiment.group.removesuffix(QUICK)].split
    return {key: experiment.settings.split[key] for key in swept_values(split)}


PATHS = frozenset(
    ("phenotype", "series", "confounds", "parcellation", "labels", "derivatives", "tables", "subjects_dir", "folder")
)
"""Keys of a cohort whose values stay as typed, as files have their names."""
NESTED = ("bids", "freesurfer", "tudataset")
"""Keys of a cohort that hold such keys."""


def load_plan(config: Mapping[str, Any], files: Iterable[str | Path] = ()) -> Plan:
    """The plan of the keys that Snakemake read, and of the files that it read, in which it accepts duplicate keys.

    Raises:
        UserError: names the key, the value found, what is allowed and the nearest valid name.
    """
    for file in files:
        read_config(Path(file))
    return make_plan(validate(ProjectSettings, extended(config), "config"))


def extended(config: Mapping[str, Any], above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The config laid over those that its key `extends` names (paths from the working directory), the last on top.

    Raises:
        UserError: such a file does not exist, holds no keys, or extends itself by way of `above`; or no path is named.
    """
    own: dict[str, Any] = composed({key: value for key, value in config.items() if key != "extends"})
    base: dict[str, Any] = {}
    for path in extends(config):
        if path.resolve() in above:
            raise UserError(f"config: `extends` leads from {path} back to itself; remove it in one of the files.")
        if not path.is_file():
            raise UserError(
                f"config: `extends`: {path}: expected a config here, found no file; give its path from {Path.cwd()}."
            )
        base = overlay(base, extended(read_config(path), (*above, path.resolve())))
    return overlay(base, own)


def composed(content: Any, place: tuple[str, ...] = ()) -> Any:
    """Keys and text of a config in the composed form of Unicode (NFC), as cells of tables: one letter has one spelling.

    Paths stay as typed, as files have their names.

    Raises:
        UserError: two keys are one name.
    """
    if isinstance(content, str):
        return unicodedata.normalize("NFC", content)
    if isinstance(content, list):
        return [composed(value, place) for value in content]
    if not isinstance(content, Mapping):
        return content
    own: dict[Any, Any] = {}
    for key, value in content.items():
        name = composed(key)
        here = (*place, str(name))
        if name in own:
            raise UserError(
                f"config: {'.'.join(here)}: expected every key once, found two that Unicode spells apart; remove one."
            )
        own[name] = value if _is_path(here) else composed(value, here)
    return own


def _is_path(place: tuple[str, ...]) -> bool:
    """Whether a key holds paths of a cohort: `cohorts.NAME.series`, `cohorts.NAME.bids.derivatives`."""
    return (
        len(place) > 2
        and place[0] == "cohorts"
        and place[-1] in PATHS
        and place[2:-1] in {(), *((part,) for part in NESTED)}
    )


def extends(config: Mapping[str, Any]) -> list[Path]:
    """The files that a config lies over, the last on top; a UserError if `extends` names no path."""
    if "extends" not in config:
        return []
    named = config["extends"]
    each = named if isinstance(named, list) else [named]
    if not each or not all(isinstance(path, str) and path for path in each):
        raise UserError(f"config: `extends`: expected a path or a list of paths, found {named!r}; name another config.")
    return [Path(expanded(path)) for path in each]


def read_config(path: Path) -> Mapping[str, Any]:
    """The keys of a YAML file; a UserError if there is no file, no YAML, no key, or a key twice."""
    if not path.is_file():
        raise UserError(f"{path}: expected a config here, found no file; give its path from {Path.cwd()}.")
    content = read_yaml(path)
    if not isinstance(content, Mapping):
        # Its content may be a table of subjects, which no message repeats.
        kind = {str: "a text", list: "a list", type(None): "nothing"}.get(type(content), "a single value")
        raise UserError(f"{path}: expected keys with values, found {kind}; fix the file, or name the config.")
    return content


def overlay(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`: mappings are merged key by key, or removed by null; everything else is replaced.

    Keys are compared as text: the code 1 of one file is the code "1" of the other.
    """
    merged = dict(base)
    written = {str(key): key for key in base}
    for own, value in top.items():
        key = written.get(str(own), own)
        below = merged.get(key)
        if isinstance(below, Mapping) and value is None:
            del merged[key]
        elif isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = overlay(below, value)
        else:
            merged[key] = value
    return merged
