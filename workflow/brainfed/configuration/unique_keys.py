"""YAML without duplicate keys: PyYAML's own loaders keep the last of them silently."""

from pathlib import Path
from typing import Any

import yaml

from brainfed.runtime.errors import UserError


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


def read_yaml(path: Path) -> Any:
    """The content of a YAML or JSON file.

    Raises:
        UserError: the file is no YAML, is not UTF-8, or has a key twice.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except _DuplicateKeyError as error:
        raise UserError(f"{path}: expected every key once, found {error}; remove or rename one of them.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: expected YAML ({' '.join(str(error).split())}); fix the file.") from None
