"""From the dictionary that Snakemake read to a plan, or one sentence with the change to make."""

import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from brainfed.cohort.settings.cohort import expanded
from brainfed.configuration.planning.plan import Plan, make_plan
from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.unique_keys import read_yaml
from brainfed.configuration.validation import validate
from brainfed.runtime.errors import UserError

PATHS = frozenset(
    ("phenotype", "series", "confounds", "parcellation", "labels", "derivatives", "tables", "subjects_dir", "folder")
)
"""Keys of a cohort whose values stay as typed, as files have their names."""
NESTED = ("bids", "freesurfer", "tudataset")
"""Keys of a cohort that hold such keys."""


def load_plan(config: Mapping[str, Any], files: Iterable[str | Path] = ()) -> Plan:
    """Validate a whole config and resolve its stages.

    Args:
        config: the keys that Snakemake read.
        files: the files that it read, in which it accepts duplicate keys.

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
    if "extends" not in config:
        return own
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


def composed(held: Any, place: tuple[str, ...] = ()) -> Any:
    """Keys and text of a config in the composed form of Unicode (NFC), as cells of tables: one letter has one spelling.

    Paths stay as typed, as files have their names.

    Raises:
        UserError: two keys are one name.
    """
    if isinstance(held, str):
        return unicodedata.normalize("NFC", held)
    if isinstance(held, list):
        return [composed(value, place) for value in held]
    if not isinstance(held, Mapping):
        return held
    made: dict[Any, Any] = {}
    for key, value in held.items():
        name = composed(key)
        here = (*place, str(name))
        if name in made:
            raise UserError(
                f"config: {'.'.join(here)}: expected every key once, found two that Unicode spells apart; remove one."
            )
        made[name] = value if _is_path(here) else composed(value, here)
    return made


def _is_path(place: tuple[str, ...]) -> bool:
    """Whether a key holds paths of a cohort."""
    held = place[2:-1]
    return place[0] == "cohorts" and place[-1] in PATHS and (len(place) == 3 or (len(held) == 1 and held[0] in NESTED))


def extends(config: Mapping[str, Any]) -> list[Path]:
    """The files that a config lies over, the last on top.

    Raises:
        UserError: `extends` names no path.
    """
    if "extends" not in config:
        return []
    named = config["extends"]
    each = named if isinstance(named, list) else [named]
    if not each or not all(isinstance(path, str) and path for path in each):
        raise UserError(f"config: `extends`: expected a path or a list of paths, found {named!r}; name another config.")
    return [Path(expanded(path)) for path in each]


def read_config(path: Path) -> Mapping[str, Any]:
    """The keys of a YAML file.

    Raises:
        UserError: the file does not exist, is no YAML, holds no keys, or a key twice.
    """
    if not path.is_file():
        raise UserError(f"{path}: expected a config here, found no file; give its path from {Path.cwd()}.")
    content = read_yaml(path)
    if not isinstance(content, Mapping):
        # Its content may be a table of subjects, which no message repeats.
        found = {str: "a text", list: "a list", type(None): "nothing"}.get(type(content), "a single value")
        raise UserError(f"{path}: expected keys with values, found {found}; fix the file, or name the config.")
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
