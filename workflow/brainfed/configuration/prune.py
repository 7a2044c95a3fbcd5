"""Delete results of stages and variants that no config names any more.

python -m brainfed.configuration.prune config/*.yaml [--yes]

Files without a project count through the configs that extend them.
"""

import argparse
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

from brainfed.configuration._loading import extended, load_plan, read_config
from brainfed.configuration._project import ProjectSettings
from brainfed.configuration._validation import adapter
from brainfed.configuration.layout import lock_files
from brainfed.configuration.planning import Plan
from brainfed.configuration.stages import registry
from brainfed.methods import METHODS
from brainfed.runtime import UserError, hold


def stage_folders() -> list[str]:
    """The folders under `results/{cohort}` with folders that a plan names."""
    return [*(name for kind in registry.KINDS for name in (kind.folder, *kind.further)), "splits", "methods", "models"]


def kept_folders(plan: Plan, results: Path) -> Iterator[Path]:
    """Every folder of a named stage or variant that `plan` still uses."""
    for cohort in plan.project.cohorts:
        folder = results / cohort
        for kind in registry.KINDS:
            for stage in plan.stages[kind.name].values():
                yield from (folder / own for own in kind.folders(stage))
        yield from (folder / "splits" / name for name in plan.splits)
        for experiment in plan.experiments.values():
            yield from (folder / "methods" / experiment.regime.name / variant.name for variant in experiment.variants)
        yield from (folder / "models" / model.variant.name for model in plan.models if model.cohort == cohort)


def stale_folders(plans: Sequence[Plan], results: Path) -> list[Path]:
    """Folders of stages and variants that no plan uses, in the plans' cohorts; parents stand for their children."""
    kept = {path for plan in plans for path in kept_folders(plan, results)}
    cohorts = {name for plan in plans for name in plan.project.cohorts}
    parents = {parent for path in kept for parent in path.parents}
    stale = []
    for folder in stage_folders():
        for path in sorted(path for name in cohorts for path in results.glob(f"{name}/{folder}/*")):
            if path not in kept and path not in parents:
                stale.append(path)
            elif path not in kept:
                stale.extend(child for child in sorted(path.iterdir()) if child not in kept)
    return stale


def _locks(plan: Plan, results: Path) -> list[Path]:
    standing = [name for name in plan.project.cohorts if (results / name).is_dir()]
    return lock_files(results, standing, plan.project.project)


def main() -> None:
    """List stale folders, and delete them with --yes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--yes", action="store_true", help="delete; without it the folders are only listed")
    arguments = parser.parse_args()
    plans = []
    for path in arguments.configs:
        try:
            content = extended(read_config(path))
            plans += [load_plan(content)] if "project" in content else []
        except UserError as error:
            parser.exit(1, f"{path}: {error} Nothing is removed before every config is valid.\n")
    stale = stale_folders(plans, arguments.results)
    with ExitStack() as locks:
        if arguments.yes:
            try:
                hold(locks, (lock for plan in plans for lock in _locks(plan, arguments.results)))
            except UserError as error:
                parser.exit(1, f"{error} Nothing is removed.\n")
        for path in stale:
            print(path)
            if arguments.yes:
                shutil.rmtree(path)
    if not stale:
        print("Nothing to remove: a config names every folder of results.")
    elif arguments.yes:
        print(f"{len(stale)} folder(s) removed")
    else:
        print(f"{len(stale)} folder(s) would be removed; `make prune YES=1` (or --yes) removes them")


if __name__ == "__main__":
    main()


# The JSON schema of a config, for editors, from the settings dataclasses.

EXTENDS = (
    "Another config (a path from the working directory) that this one is laid over, key by key, or a list of them, "
    "each laid over the one before; lists are replaced, and null takes away a cohort, a variant or an experiment."
)


def schema() -> str:
    """JSON schema of one config file; a file that extends another may leave everything out."""
    definitions = adapter(ProjectSettings).json_schema()["$defs"]
    project = definitions.pop("ProjectSettings")
    properties = project["properties"]
    properties["extends"] = {
        "description": EXTENDS,
        "title": "Extends",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    }
    properties["variants"]["additionalProperties"] = _variant_schema()
    definitions["CohortSettings"]["required"] = []
    for key in ("cohorts", "variants", "experiments"):
        properties[key]["additionalProperties"] = {"anyOf": [properties[key]["additionalProperties"], {"type": "null"}]}
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
        **project,
        "required": [],
        "anyOf": [{"required": ["extends"]}, {"required": project["required"]}],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _variant_schema() -> dict[str, Any]:
    """Any method with any of the methods' keys: combinations are checked when the config is read."""
    keys = {field.name for method in METHODS.values() for field in fields(method.settings)}
    open_keys: dict[str, Any] = {key: {} for key in sorted(keys | set(registry.stage_keys()))}
    properties = {"method": {"enum": sorted(METHODS), "type": "string"}} | open_keys
    return {"additionalProperties": False, "properties": properties, "type": "object"}
