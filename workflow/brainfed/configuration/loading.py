"""From the dictionary that Snakemake read to a plan, or one sentence that says what to change."""

from collections.abc import Mapping
from typing import Any

from brainfed.configuration.plan import Plan, make_plan
from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.validation import validate


def load_plan(config: Mapping[str, Any]) -> Plan:
    """Validate a whole config and resolve its stages.

    Raises:
        UserError: names the key, the value found, what is allowed and the nearest valid name.
    """
    return make_plan(validate(ProjectSettings, dict(config), "config"))
