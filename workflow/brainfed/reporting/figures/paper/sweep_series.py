"""Variants of a sweep as lines: their groups, and their positions on the swept axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brainfed.reporting.sweep_titles import setting_in_words
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import canonical_json


@dataclass(frozen=True)
class Series:
    """Variants that differ in the swept setting alone, in ascending order of it."""

    title: str
    values: tuple[Any, ...]
    variants: tuple[ShownVariant, ...]

    @property
    def swept(self) -> bool:
        """Whether it has more than one point."""
        return len(self.variants) > 1


def sweep_series(variants: Sequence[ShownVariant], axis: str) -> list[Series]:
    """One line for each group of variants that differ in `axis` alone; a lone variant is a line of one point."""
    groups: dict[str, list[ShownVariant]] = {}
    for variant in variants:
        groups.setdefault(_rest(variant, axis), []).append(variant)
    swept = [group[0].method for group in groups.values() if len(group) > 1]
    found = []
    for group in groups.values():
        ordered = sorted(group, key=lambda variant: _place(variant.setting(axis)))
        title = group[0].title
        if len(group) > 1:
            title = group[0].method_title if swept.count(group[0].method) == 1 else group[0].unswept_title
        found.append(Series(title, tuple(variant.setting(axis) for variant in ordered), tuple(ordered)))
    return found


def axis_title(axis: str) -> str:
    """`k` for `graph.k`, `local epochs` for `local_epochs`."""
    return setting_in_words(axis.rpartition(".")[2], "").removesuffix(" = ")


def _rest(variant: ShownVariant, axis: str) -> str:
    stage, _, name = axis.rpartition(".")
    settings: Mapping[str, Any] = {**variant.stages, "": variant.settings}
    kept = {
        part: {key: value for key, value in held.items() if (part, key) != (stage, name)}
        for part, held in settings.items()
    }
    has = variant.setting(axis) is not None
    return canonical_json([variant.method, kept, "" if has else variant.name])


def _place(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, int | float)
    return (0, float(value), "") if number else (1, 0.0, str(value))
