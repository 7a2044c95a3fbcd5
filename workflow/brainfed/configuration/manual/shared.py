"""Keys that several methods share, printed once: derived from the methods' settings dataclasses.

A group holds the keys that one dataclass gives to two methods or more, or the same row of three methods or more whose
dataclasses have no such ancestor. Methods name their groups so that the last one counts where two hold one key.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import get_annotations

from brainfed.configuration.manual.rows import Row, rows
from brainfed.configuration.manual.texts import GROUPS
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS

FEWEST_OF_A_CLASS = 2
"""Methods that share a dataclass, from which on its keys are a group."""
FEWEST_OF_A_ROW = 3
"""Methods that share a row without a common dataclass, from which on it belongs to a group."""


@dataclass(frozen=True)
class Group:
    """Keys that several methods share.

    Attributes:
        title: its heading, after `shared: `.
        lead: a sentence; empty without one.
        rows: its keys.
        origin: the dataclass that declares them; None where each method declares its own.
        methods: names of those that have it.
    """

    title: str
    lead: str
    rows: tuple[Row, ...]
    origin: type | None
    methods: tuple[str, ...]

    @property
    def heading(self) -> str:
        """The heading of its table."""
        return f"shared: {self.title}"


def shared_groups(methods: Mapping[str, Method] = METHODS) -> tuple[Group, ...]:
    """All groups, in the order in which methods first name them."""
    every = tuple(methods.values())
    of_class: dict[type, dict[Row, None]] = {}
    holders: dict[type, dict[str, None]] = {}
    for method in every:
        for row in rows(method.settings):
            origin = _origin(method, row, every)
            of_class.setdefault(origin, {})[row] = None
            holders.setdefault(origin, {})[method.name] = None
    groups = tuple(
        Group(_title(origin), _lead(origin, every), _in_order(origin, of_class[origin]), origin, tuple(names))
        for origin, names in holders.items()
        if len(names) >= FEWEST_OF_A_CLASS
    )
    return groups + _groups_of_equal_rows(every, groups)


def groups_of(method: Method, groups: tuple[Group, ...]) -> list[Group]:
    """The groups that a method has, those of base classes first, as their keys may be overridden."""
    bases = [*reversed(method.settings.__mro__), None]
    return sorted((group for group in groups if method.name in group.methods), key=lambda one: bases.index(one.origin))


def own_rows(method: Method, groups: tuple[Group, ...]) -> list[Row]:
    """The keys of a method that are not, or not so, in its groups."""
    given = {row.key: row for group in groups_of(method, groups) for row in group.rows}
    return [row for row in rows(method.settings) if given.get(row.key) != row]


def _origin(method: Method, row: Row, methods: tuple[Method, ...]) -> type:
    """The most basic dataclass all of whose methods have this row, else the one from which the method has it."""
    declaring = [kind for kind in reversed(method.settings.__mro__) if row.key in get_annotations(kind)]
    for kind in declaring:
        if all(row in rows(one.settings) for one in methods if kind in one.settings.__mro__):
            return kind
    return declaring[-1]


def _groups_of_equal_rows(methods: tuple[Method, ...], groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Of the rows that no group holds, those that enough methods have; the same methods, the same group."""
    left = {method.name: own_rows(method, groups) for method in methods}
    counts = Counter(row for listed in left.values() for row in listed)
    together: dict[tuple[str, ...], list[Row]] = {}
    for row, count in counts.items():
        if count >= FEWEST_OF_A_ROW:
            names = tuple(name for name, listed in left.items() if row in listed)
            together.setdefault(names, []).append(row)
    return tuple(
        Group(f"{', '.join(names[:-1])} and {names[-1]}", "", tuple(listed), None, names)
        for names, listed in together.items()
    )


def _in_order(origin: type, listed: Mapping[Row, None]) -> tuple[Row, ...]:
    """Rows in the order in which their dataclass declares them."""
    declared = list(get_annotations(origin))
    return tuple(sorted(listed, key=lambda row: declared.index(row.key)))


def _title(origin: type) -> str:
    """The title of a dataclass's group: the written one, else its name in words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", origin.__name__.removesuffix("Settings"))
    return GROUPS.get(origin.__name__, words.lower())


def _lead(origin: type, methods: tuple[Method, ...]) -> str:
    """First line of the dataclass's docstring; empty if it is about the whole settings of a method."""
    whole = any(method.settings is origin for method in methods)
    return "" if whole else (origin.__doc__ or "").strip().splitlines()[0]
