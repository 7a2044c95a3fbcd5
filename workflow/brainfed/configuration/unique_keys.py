"""YAML without duplicate keys, of which PyYAML keeps the last, and without numbers that YAML 1.1 and 1.2 read apart."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from brainfed.runtime.errors import UserError

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
    """Refuse values of Snakemake's `--config` that it reads as other numbers than they spell.

    Args:
        arguments: as given, KEY=VALUE.

    Raises:
        UserError: a value such as 010, 1_0 or inf.
    """
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
