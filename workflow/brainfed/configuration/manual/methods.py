"""The manual's part on methods: the keys that several share, then an entry for each method with its own alone."""

import sys
from collections.abc import Mapping
from typing import Any

import yaml

from brainfed.configuration.manual.rows import link, table
from brainfed.configuration.manual.sections import Part, section
from brainfed.configuration.manual.shared import Group, groups_of, own_rows, shared_groups
from brainfed.configuration.manual.texts import FAMILIES, METHODS_LEAD
from brainfed.configuration.stages import registry
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS

HEADING = "method: {}"


def method_sections() -> list[str]:
    """The index of methods, the shared groups, the methods, and the settings of stages that methods bring."""
    groups = shared_groups()
    return [
        f"## Methods\n\n{METHODS_LEAD}\n{_index()}",
        *map(_group_section, groups),
        *(_entry(method, groups) for method in METHODS.values()),
        *_further_sections(),
    ]


def _index() -> str:
    """A line of links for each family, in the order of the registry."""
    lines = []
    for family, title in FAMILIES.items():
        names = [method.name for method in METHODS.values() if method.family == family]
        lines.append(f"- {title}: " + ", ".join(link(HEADING.format(name), name) for name in names))
    return "\n".join(lines) + "\n"


def _group_section(group: Group) -> str:
    lead = f"{group.lead}\n\n" if group.lead else ""
    return f"### {group.heading}\n\n{lead}{table(group.rows)}"


def _entry(method: Method, groups: tuple[Group, ...]) -> str:
    """One method: what it is, what it reads, its shared groups, its variants, and its own keys."""
    links = {kind.name: link(kind.section(method)) for kind in registry.kinds_of(method)}
    reads = [registry.kind_of(name).reads.format(**links) for name in method.needs]
    held = [link(group.heading, group.title) for group in groups_of(method, groups)]
    own = own_rows(method, groups)
    sentences = [
        f"**{method.title}.** {method.summary}",
        f"Reads {' and '.join(reads) or 'no imaging'}.",
        *([f"Shared keys: {', '.join(held)}."] if held else []),
        *([] if held or own else ["No keys."]),
        _variants(method),
    ]
    entry = f"### {HEADING.format(method.name)}\n\n{' '.join(filter(None, sentences))}\n"
    return f"{entry}\n{table(own)}" if own else entry


def _variants(method: Method) -> str:
    """The shipped variants, with the settings that differ; those on request apart; empty for the plain method alone."""
    if method.variants == {method.name: {}} and not method.on_request:
        return ""
    usual = [_variant(name, method.variants[name]) for name in method.variants if name not in method.on_request]
    named = [_variant(name, method.variants[name]) for name in method.variants if name in method.on_request]
    sentences = [f"Variants: {', '.join(usual)}."] if usual else []
    return " ".join([*sentences, *([f"Variants on request: {', '.join(named)}."] if named else [])])


def _variant(name: str, differing: Mapping[str, Any]) -> str:
    return f"`{name}`" + (f" (`{_flow(differing)}`)" if differing else "")


def _flow(settings: Mapping[str, Any]) -> str:
    """Settings on one line of YAML, without the outer braces."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    return yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=sys.maxsize).strip()[1:-1]


def _further_sections() -> list[str]:
    """Settings of stages that a method brings and that the project has no defaults for, each class once."""
    found: dict[str, type] = {}
    for method in METHODS.values():
        for kind in registry.kinds_of(method):
            if kind.section(method) != kind.key:
                found.setdefault(kind.section(method), kind.settings_class(method))
    return [section(Part(title, settings), level="###") for title, settings in found.items()]
