"""Sections of the manual: the settings of a part of a study, and of the parts within it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from brainfed.configuration.manual.rows import Row, dataclass_in, link, many, rows, table
from brainfed.configuration.manual.texts import EXPERIMENTS, EXTENDS, VARIANTS
from brainfed.configuration.project import ExperimentSettings, ProjectSettings
from brainfed.configuration.stages import registry
from brainfed.configuration.validation import type_hints

LEAST_IN_COMMON = 3
"""Keys that a part has in common with the part around it, from which on they are not printed again."""


@dataclass(frozen=True)
class Part:
    """A part of a config.

    Attributes:
        title: heading of its section, the path of its keys.
        kind: its settings dataclass.
    """

    title: str
    kind: type

    @property
    def rows(self) -> tuple[Row, ...]:
        """All its keys."""
        return rows(self.kind, f"{self.title}.")


def study_sections() -> list[str]:
    """The project's own keys, then those of its parts in the order of a study."""
    extends = Row("extends", "text or list of texts", "none", EXTENDS)
    sections = [f"## The project\n\n{_summary(ProjectSettings)}\n{table([extends, *rows(ProjectSettings)])}"]
    hints = type_hints(ProjectSettings)
    for field in fields(ProjectSettings):
        inner = dataclass_in(hints[field.name])
        if field.name == "variants":
            sections.append(_variants())
        elif inner is not None:
            sections += _nested(Part(field.name + many(hints[field.name]), inner), None)
    return sections


def section(part: Part, around: Part | None = None, level: str = "##") -> str:
    """One table of keys under its heading.

    Args:
        part: what it is about.
        around: the part that holds it; its keys are not printed again where both have several in common.
        level: mark of the heading.
    """
    lead = f"{EXPERIMENTS if part.kind is ExperimentSettings else ''}{_summary(part.kind)}"
    listed: Sequence[Row] = part.rows
    common = [row for row in listed if around is not None and row in around.rows]
    if around is not None and len(common) >= LEAST_IN_COMMON:
        listed = [row for row in listed if row not in common]
        besides = [f"`{row.key}`" for row in around.rows if row not in common]
        lead += f"It has the keys of {link(around.title)}, except {', '.join(besides)}, and:\n"
    return f"{level} {part.title}\n\n{lead}" + (f"\n{table(listed)}" if listed else "")


def _nested(part: Part, around: Part | None) -> Iterator[str]:
    yield section(part, around)
    hints = type_hints(part.kind)
    for field in fields(part.kind):
        inner = dataclass_in(hints[field.name])
        if inner is not None:
            yield from _nested(Part(f"{part.title}.{field.name}{many(hints[field.name])}", inner), part)


def _summary(kind: Any) -> str:
    """First line of a dataclass's docstring, and its end."""
    return f"{(kind.__doc__ or '').strip().splitlines()[0]}\n"


def _variants() -> str:
    """The section on variants, with a row for each kind of stage."""
    stages = "\n".join(f"| `{kind.key}` | {kind.manual} |" for kind in registry.KINDS)
    return VARIANTS.replace("STAGES", stages)
